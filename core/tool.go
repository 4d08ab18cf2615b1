package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"zenmcp/core/rawjson"
)

// A Tool is one callable: what a model is shown, and what runs. It is a value,
// so it can be listed, compared and wrapped.
type Tool struct {
	Name        string
	Title       string // for people
	Description string // for a model: short, English
	Input       *jsonschema.Schema
	Hints       Hints
	Output      Output         // how much it may have to say
	Pace        Pace           // how long a call takes, and where it may run
	Meta        map[string]any // _meta in tools/list

	// Run runs one call. Its error is for the model: it names the thing, says
	// what is wrong and what to do next. Run ends soon after ctx does.
	Run func(ctx context.Context, call *Call) (*Result, error)
}

// Hints tell a client what calling a tool may do. The zero value is the
// cautious one: it may change things that are here.
type Hints struct {
	ReadOnly    bool // changes nothing
	Destructive bool // may overwrite or delete, not only add
	Idempotent  bool // the same call again changes nothing more
	OpenWorld   bool // reaches beyond this machine
}

// Pace says where a call may run: the goroutine that has received it, and must
// soon receive the next one, is the place where a small one is quickest.
type Pace int

const (
	// PaceLong is for calls that get a goroutine of their own.
	PaceLong Pace = iota
	// PaceBrief is for calls that are a few operations on files, one after the
	// other on the calling goroutine. Before they wait for anything else, or for a
	// disk to take data, they call [Waits].
	PaceBrief
	// PaceParks is for calls that besides that wait for another server, with what
	// [ParkerOf] gives.
	PaceParks
)

// A Call is one call of a tool.
type Call struct {
	// Arguments are the bytes as the caller sent them; nil is {}.
	Arguments json.RawMessage
	// Scope is the client that calls. A bound tool sets it.
	Scope *Scope
	// Progress, if not nil, is told how far the call is. See [Call.Report].
	Progress func(Progress)
	// Sessionless says that the caller has no session, so that nothing which it
	// did before this call can be asked of it (decision 26).
	Sessionless bool
	// Elicit, if not nil, asks the client's user, with the params of
	// elicitation/create and its result. Nil means that nobody can be asked.
	Elicit func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)
}

// Progress is how far a call is: Done of Total in whatever unit the tool counts,
// Total 0 when unknown, and a line for people.
type Progress struct {
	Done, Total float64
	Message     string
}

// Report passes progress on if the caller asked for it. Done must increase from
// report to report.
func (c *Call) Report(p Progress) {
	if c.Progress != nil {
		c.Progress(p)
	}
}

// InputJSON is the input schema as JSON. One without arguments has an empty
// properties member, which the library leaves out and some clients insist on.
func (t Tool) InputJSON() (json.RawMessage, error) {
	var encoded json.RawMessage
	var err error
	if wordless(t.Input) {
		encoded, err = rawjson.Marshal(t.Input)
	} else {
		encoded, err = encodeSchema(t.Input)
	}
	if err != nil || len(t.Input.Properties) > 0 {
		return encoded, err
	}
	members, err := rawjson.Members(encoded)
	if err != nil {
		return nil, err
	}
	return rawjson.JoinMembers(setMember(members, "properties", json.RawMessage("{}"))), nil
}

// Do runs one call so that neither an error nor a panic leaves it: both become
// results.
func (t Tool) Do(ctx context.Context, log *slog.Logger, call *Call) (res *Result) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic in a tool", "tool", t.Name, "panic", p, "stack", string(debug.Stack()))
			res = ErrorResult(fmt.Errorf("internal error in %s; the server goes on", t.Name))
		}
	}()
	res, err := t.Run(ctx, call)
	if err != nil {
		return ErrorResult(err)
	}
	if res == nil {
		return &Result{}
	}
	return res
}

// A Definition is a tool that is not bound to a scope yet.
type Definition struct {
	Tool // Run takes the scope from the call
	// Available reports why the tool is of no use with a configuration and an
	// agent; nil means that it always is.
	Available func(Config, AgentDefinition) error
	// Usable reports why the tool cannot be offered in a scope, whose roots it
	// would not keep to, for one; nil means that it always can.
	Usable func(*Scope) error
}

// UsableIn reports why the tool cannot be offered in a scope; nil if it can.
func (d Definition) UsableIn(scope *Scope) error {
	if d.Usable == nil {
		return nil
	}
	return d.Usable(scope)
}

// Bind returns the tool for one scope.
func (d Definition) Bind(scope *Scope) Tool {
	t, run := d.Tool, d.Run
	t.Run = func(ctx context.Context, call *Call) (*Result, error) {
		bound := *call
		bound.Scope = scope
		return run(ctx, &bound)
	}
	return t
}

// Define makes a tool from a function with typed arguments. Unless tool.Input is
// given, the schema is inferred from In: required fields are those without
// omitempty, descriptions come from `jsonschema` tags, and the zero value of an
// optional field is its default unless `default` is set in the schema. Before
// run sees the arguments they are repaired where that is unambiguous, filled
// with defaults, checked and decoded, see [Arguments]. What was ignored is noted
// at the end of the result or error. A nil result of run is an empty one.
//
// Define panics when the schema cannot be made: that is a mistake in the program.
func Define[In any](tool Tool, run func(ctx context.Context, call *Call, in In) (*Result, error)) Definition {
	if tool.Input == nil {
		tool.Input = SchemaFor[In]()
	}
	args, err := NewArguments(tool.Input, !tool.Hints.ReadOnly)
	if err != nil {
		panic("core: tool " + tool.Name + ": " + err.Error())
	}
	tool.Run = args.around(func(ctx context.Context, call *Call, fixed json.RawMessage) (*Result, error) {
		var in In
		if err := json.Unmarshal(fixed, &in); err != nil {
			return nil, decodeError(err)
		}
		return run(ctx, call, in)
	})
	return Definition{Tool: tool}
}

// around checks the arguments before run sees them, and notes what was ignored.
func (a *Arguments) around(run func(context.Context, *Call, json.RawMessage) (*Result, error)) func(context.Context, *Call) (*Result, error) {
	return func(ctx context.Context, call *Call) (*Result, error) {
		fixed, notes, err := a.Check(call.Arguments)
		if err != nil {
			return nil, err
		}
		res, err := run(ctx, call, fixed)
		if err != nil {
			return nil, withNotes(err, notes)
		}
		if res == nil {
			res = &Result{}
		}
		for _, n := range notes {
			if res.Whole == nil { // which is another program's, and passed on as it is
				res.Blocks = append(res.Blocks, Text(n))
			}
		}
		return res, nil
	}
}

// SchemaFor infers the input schema of a tool from the struct In. Slices and
// pointers do not admit null: clients exist that fail on a list of types.
func SchemaFor[In any]() *jsonschema.Schema {
	s, err := jsonschema.For[In](nil)
	if err != nil {
		panic("core: " + err.Error())
	}
	mendSchema(s)
	return s
}

// decodeError words what is left for encoding/json to find: values that fit the
// schema and not the Go type, such as a number that is too large.
func decodeError(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) || wrong.Field == "" {
		return errors.New(Clip(err.Error(), 300))
	}
	value := strings.TrimPrefix(wrong.Value, "number ")
	return InField(wrong.Field, fmt.Errorf("%s does not fit into %v", Clip(value, 40), wrong.Type))
}
