package core

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
)

func TestResults(t *testing.T) {
	t.Parallel()
	type answer struct {
		Result string `json:"result"`
	}
	ok, err := JSONResult(answer{"<success>"})
	if err != nil || ok.Text() != `{"result":"<success>"}` || ok.IsError {
		t.Errorf("JSONResult gave %+v, %v", ok, err)
	}
	failed, err := FailJSON(answer{"failed"})
	if err != nil || failed.Text() != `{"result":"failed"}` || !failed.IsError {
		t.Errorf("FailJSON gave %+v, %v", failed, err)
	}
	for _, f := range []func(any) (*Result, error){JSONResult, FailJSON} {
		if r, err := f(func() {}); err == nil {
			t.Errorf("a function became %+v", r)
		}
	}
	if r := ErrorResult(errors.New("bang")); !r.IsError || r.Text() != "bang" {
		t.Errorf("ErrorResult gave %+v", r)
	}
	mixed := &Result{Blocks: []Block{Text("a"), Image{}, Text("b\n"), Raw("{}"), Text("")}}
	if got := mixed.Text(); got != "a\nb\n\n" {
		t.Errorf("Text gave %q", got)
	}
	if got := []string{Plural(0, "file"), Plural(1, "file"), Plural(2, "file")}; !slices.Equal(got, []string{"0 files", "1 file", "2 files"}) {
		t.Errorf("Plural gave %q", got)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	(&Call{}).Report(Progress{Done: 1}) // nobody asked
	var got []Progress
	call := &Call{Progress: func(p Progress) { got = append(got, p) }}
	call.Report(Progress{Done: 1, Total: 2, Message: "half"})
	if !slices.Equal(got, []Progress{{1, 2, "half"}}) {
		t.Errorf("reported %v", got)
	}
	newScope(t, &Env{}).Log().Error("goes nowhere without a log")
}

func TestListResult(t *testing.T) {
	t.Parallel()
	for _, list := range [][]string{{}, {"a"}, {"a/b", `c"d`, "<é>", "line\n", "\xff"}} {
		var got, want []string
		encoded, err := JSONResult(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{json.Unmarshal([]byte(ListResult(list).Text()), &got), json.Unmarshal([]byte(encoded.Text()), &want)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(got, want) || got == nil {
			t.Errorf("%q became %q, want %q", list, got, want)
		}
	}
}

func BenchmarkListResult(b *testing.B) {
	list := slices.Repeat([]string{"src/cmd/compile/internal/ssa/rewriteAMD64.go"}, 10_000)
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			ListResult(list)
		}
	})
	b.Run("json", func(b *testing.B) {
		for b.Loop() {
			if _, err := JSONResult(list); err != nil {
				b.Fatal(err)
			}
		}
	})
}
