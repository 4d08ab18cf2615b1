package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"zenmcp/mcpserver"
)

func tokenCommand() command {
	var expires string
	return command{
		name: "token", args: "NAME", summary: "make a token, and the line for --token-file that accepts it",
		shared: none,
		flags: func(o *options, set *pflag.FlagSet) {
			set.StringSliceVar(&o.agents, "agent", nil, "accept it for the agent with this `ID` only; repeatable")
			set.StringVar(&expires, "expires", "", "accept it until `DATE`, for example 2027-01-31")
		},
		run: func(_ context.Context, o *options, args []string, std streams) error {
			return runToken(o, args, expires, std)
		},
	}
}

// runToken prints the line, so that it can be appended to the file, and the token
// itself beside it: it is stored nowhere.
func runToken(o *options, args []string, expires string, std streams) error {
	if len(args) != 1 {
		return errUsage{errors.New("token takes one argument: the name of who will use it, for example zen-mcp token ci --agent reader")}
	}
	agents := o.agents
	if len(agents) == 0 {
		agents = []string{"*"}
	}
	for i, id := range agents {
		agents[i] = fmt.Sprintf("%q", id)
	}
	token := mcpserver.NewToken()
	line := fmt.Sprintf("- {name: %q, sha256: %x, agents: [%s]", args[0], sha256.Sum256([]byte(token)), strings.Join(agents, ", "))
	if expires != "" {
		line += fmt.Sprintf(", expires: %q", expires)
	}
	line += "}\n"
	if err := mcpserver.CheckTokens([]byte(line)); err != nil {
		return errUsage{err}
	}
	fmt.Fprintf(std.err, "the client sends  Authorization: Bearer %s\nthe token is shown only now; the line goes into the file of --token-file\n", token)
	_, err := fmt.Fprint(std.out, line)
	return err
}
