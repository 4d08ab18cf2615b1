package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"zenmcp/core"
	"zenmcp/core/rawjson"
)

func callCommand() command {
	return command{
		name: "call", args: "TOOL [JSON|-]", summary: "run one call and print its result; exit 1 if that is an error",
		run: runCall,
	}
}

func runCall(ctx context.Context, o *options, args []string, std streams) error {
	if len(args) < 1 || len(args) > 2 {
		return errUsage{errors.New("call takes a tool's name and its arguments as JSON, or - to read them from standard input")}
	}
	arguments, err := callArguments(args[1:], std.in)
	if err != nil {
		return err
	}
	o.signIn = browserSignIn(std.err) // there may be a person at this terminal
	sys, err := assemble(ctx, o, std)
	if err != nil {
		return err
	}
	defer sys.close()
	scope, err := sys.scope(sys.agents[0])
	if err != nil {
		return err
	}
	defer scope.Close()
	published := scope.Tools()
	tool, ok := published.Tool(args[0])
	if !ok {
		return errUsage{published.UnknownTool(args[0])}
	}
	res, err := tool.Run(ctx, &core.Call{Arguments: arguments, Sessionless: true})
	if err != nil {
		res = core.ErrorResult(err)
	}
	return printResult(std.out, res)
}

func callArguments(args []string, in io.Reader) (json.RawMessage, error) {
	if len(args) == 0 {
		return nil, nil
	}
	if args[0] != "-" {
		return json.RawMessage(args[0]), nil
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	return data, nil
}

// printResult prints text as it is and everything else as JSON.
func printResult(w io.Writer, res *core.Result) error {
	isError := res.IsError
	if res.Whole != nil {
		var flag struct {
			IsError bool `json:"isError"`
		}
		if json.Unmarshal(res.Whole, &flag) == nil {
			isError = flag.IsError
		}
		fmt.Fprintln(w, string(res.Whole))
	}
	for _, b := range res.Blocks {
		if text, ok := b.(core.Text); ok {
			fmt.Fprintln(w, text)
			continue
		}
		encoded, err := rawjson.Marshal(b)
		if err != nil {
			return err
		}
		fmt.Fprintln(w, string(encoded))
	}
	if isError {
		return errResult
	}
	return nil
}
