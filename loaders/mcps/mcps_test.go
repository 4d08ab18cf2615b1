package mcps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"zenmcp/core"
)

// A step is a call of one of our tools, or several at once.
type step struct {
	Tool             string
	Args             json.RawMessage
	AbortWhenRunning bool // cancel the call once the server has it
	Parallel         []step
}

// An outcome is what a step must give; what is absent is not looked at.
type outcome struct {
	Whole            string // a foreign result, byte for byte
	Text             string
	Blocks           []string
	Error            []string // words
	Contains         []string
	Tools, Resources *int // counted in a manifest
	Parallel         []outcome
}

type toolVector struct {
	ID, Name, Options string
	Steps             []step
	Want              []outcome
	Starts            *int // of the server's process
}

func TestToolVectors(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors[toolVector](t, "mcp.json") {
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(t.TempDir(), "log")
			h := newHarness(t, map[string]any{"fix": stubServer(t, v.Options, args{"log": log})})
			for i, s := range v.Steps {
				if err := h.step(s, v.Want[i], log); err != nil {
					t.Errorf("%s: step %d: %v\n%s", v.Name, i, err, h.log)
				}
			}
			if n := strings.Count(readFile(t, log), "start\n"); v.Starts != nil && n != *v.Starts {
				t.Errorf("%s: %d processes were started, want %d", v.Name, n, *v.Starts)
			}
		})
	}
}

func (h *harness) step(s step, want outcome, log string) error {
	if s.Parallel != nil {
		var wg sync.WaitGroup
		errs := make([]error, len(s.Parallel))
		for i, p := range s.Parallel {
			wg.Go(func() { errs[i] = h.step(p, want.Parallel[i], log) })
		}
		wg.Wait()
		return errors.Join(errs...)
	}
	ctx, cancel := context.WithCancel(h.t.Context())
	defer cancel()
	if s.AbortWhenRunning {
		go func() {
			waitFor(h.t, log, "call ")
			cancel()
		}()
	}
	res, err := run(ctx, h.scope, s.Tool, &core.Call{Arguments: s.Args})
	return want.check(res, err)
}

func (want outcome) check(res *core.Result, err error) error {
	if want.Error != nil {
		if err == nil {
			return fmt.Errorf("did not fail: %+v", res)
		}
		for _, w := range want.Error {
			if !strings.Contains(err.Error(), w) {
				return fmt.Errorf("the error %q does not say %q", err, w)
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	if string(res.Whole) != want.Whole {
		return fmt.Errorf("got  %s\nwant %s", res.Whole, want.Whole)
	}
	if want.Text != "" && res.Text() != want.Text {
		return fmt.Errorf("got  %s\nwant %s", res.Text(), want.Text)
	}
	for _, w := range want.Contains {
		if !strings.Contains(res.Text(), w) {
			return fmt.Errorf("%s\ndoes not contain %s", res.Text(), w)
		}
	}
	if want.Blocks != nil {
		var blocks []string
		for _, b := range res.Blocks {
			blocks = append(blocks, fmt.Sprintf("%s", b))
		}
		if !slices.Equal(blocks, want.Blocks) {
			return fmt.Errorf("got  %q\nwant %q", blocks, want.Blocks)
		}
	}
	if want.Tools == nil {
		return nil
	}
	var m struct{ Tools, Resources []json.RawMessage }
	if err := json.Unmarshal([]byte(res.Text()), &m); err != nil {
		return fmt.Errorf("%w: %s", err, res.Text())
	}
	if len(m.Tools) != *want.Tools || len(m.Resources) != *want.Resources {
		return fmt.Errorf("%d tools and %d resources, want %d and %d", len(m.Tools), len(m.Resources), *want.Tools, *want.Resources)
	}
	return nil
}
