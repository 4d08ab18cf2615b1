package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"zenmcp/core"
)

func TestLimitsOfAPrincipal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &limiter{Limits: Limits{Calls: 2, PerMinute: 4}}
		enter := func(who, want string) func() {
			t.Helper()
			leave, err := l.enter(who)
			if want == "" && err != nil || want != "" && (!errors.Is(err, errLimited) || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s enters: %v; want %q", who, err, want)
			}
			return leave
		}
		first := enter("a", "")
		enter("a", "")
		enter("a", "2 calls running")
		enter("b", "") // has limits of its own
		first()
		enter("a", "")()
		enter("a", "")()
		// Four have begun; 15 seconds later there is one more.
		enter("a", "4 calls a minute; call again in 16s")
		time.Sleep(15 * time.Second)
		enter("a", "")()
		enter("a", "call again in 16s")
	})
}

func TestIdleAllowancesAreDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &limiter{Limits: Limits{Calls: 1, PerMinute: 60}}
		for i := range manyPrincipals {
			leave, err := l.enter(fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				leave()
			}
		}
		time.Sleep(time.Minute)
		if _, err := l.enter("new"); err != nil || len(l.principals) != 2 {
			t.Errorf("%d allowances, %v; want those of the new one and of the one that calls", len(l.principals), err)
		}
	})
}

func TestCallsAreStoppedInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t)
		s.limits.Timeout = time.Minute
		result := func(do func(context.Context) *core.Result) (string, outcome) {
			c := s.agents[0].observed("echo", nil)
			res, end := s.limit(t.Context(), c, do)
			encoded, err := encodeResult(res)
			if err != nil {
				t.Fatal(err)
			}
			return string(encoded[0].Value), end
		}
		got, end := result(func(ctx context.Context) *core.Result {
			<-ctx.Done()
			return core.TextResult("so far")
		})
		if end != outcomeTimeout || !strings.Contains(got, "so far") || !strings.Contains(got, "stopped after 1m0s") {
			t.Errorf("%s: %s", end, got)
		}
		for want, res := range map[outcome]*core.Result{outcomeOK: core.TextResult("x"), outcomeError: core.ErrorResult(errors.New("x"))} {
			if _, end := result(func(context.Context) *core.Result { return res }); end != want {
				t.Errorf("%s; want %s", end, want)
			}
		}
		s.Close()
	})
}

// TestOverTheLimitIsAResult: a model reads it and comes back.
func TestOverTheLimitIsAResult(t *testing.T) {
	t.Parallel()
	s, at := newHTTP(t, func(o *Options) { o.Limits.PerMinute = 1 })
	call, headers := modernCall("echo", "hello")
	request{"POST", at + "/mcp", call, headers}.do(t)
	got := request{"POST", at + "/mcp", call, headers}.do(t)
	if got.status != 200 || !strings.Contains(got.body, `"isError":true`) || !strings.Contains(got.body, "1 call a minute; call again in") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if s.clients.count() != 0 {
		t.Errorf("%d clients; whoever comes without a credential needs none", s.clients.count())
	}
	var message json.RawMessage
	if err := json.Unmarshal([]byte(got.body), &message); err != nil {
		t.Error(err)
	}
}
