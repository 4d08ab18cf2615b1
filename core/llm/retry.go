package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/openai/openai-go/v3/option"

	"zenmcp/core"
)

const (
	// chatAttempts and imageAttempts are how often one request is sent. A chat
	// has more to lose; an image may be made, and paid, although the answer does
	// not arrive.
	chatAttempts, imageAttempts = 5, 3
	// firstDelay is the time before the second attempt; it doubles each time.
	firstDelay = 500 * time.Millisecond
	// maxRetryAfter is the longest that a service may ask to wait.
	maxRetryAfter = time.Minute
	// idleTimeout is how long a service may send nothing. Models that think
	// before they answer are silent for minutes.
	idleTimeout = 5 * time.Minute
)

var errIdle = fmt.Errorf("nothing was received for %v", idleTimeout)

// A failure is an attempt that came to nothing.
type failure struct {
	err    error
	status int           // HTTP's, when there was an answer
	again  bool          // another attempt may succeed
	after  time.Duration // that the service asks to wait; 0 when it does not say
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// retry makes attempts until one succeeds, one fails for good, there were most of
// them, or ctx ends. The error names the endpoint, and the number of attempts if
// there were several.
func (e *endpoint) retry(ctx context.Context, most int, attempt func(ctx context.Context, w *watch) error) error {
	for n := 1; ; n++ {
		err := watched(ctx, attempt)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f := asFailure(err)
		silent := errors.Is(err, errIdle) && n > 1 // waiting on and on helps nobody
		if !f.again || n == most || silent || f.after > maxRetryAfter {
			return e.failed(f, n)
		}
		timer := time.NewTimer(delay(n, f.after))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// failed words the error of the last attempt.
func (e *endpoint) failed(f *failure, attempts int) error {
	text := f.Error()
	if f.after > maxRetryAfter {
		text += fmt.Sprintf(" (it asks to wait %v)", f.after)
	}
	if attempts > 1 {
		text += fmt.Sprintf(" (after %d attempts)", attempts)
	}
	return fmt.Errorf("endpoint %q: %s", e.id, core.Masker(e.key).Replace(text)) // services repeat the key
}

// delay is the time before attempt n+1. It varies, so that many agents that were
// refused at once do not come back at once.
func delay(n int, after time.Duration) time.Duration {
	d := firstDelay << (n - 1)
	d += time.Duration(rand.Int64N(int64(d / 4)))
	return max(d, after)
}

// asFailure decides about errors that are none yet: those of the connection,
// which may be better next time.
func asFailure(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	var u *url.Error // it names the URL, which may hold a secret
	if errors.As(err, &u) {
		err = u.Err
	}
	return &failure{err: err, again: true}
}

// A watch cancels an attempt when the service falls silent.
type watch struct{ timer *time.Timer }

func watched(ctx context.Context, attempt func(ctx context.Context, w *watch) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &watch{time.AfterFunc(idleTimeout, func() { cancel(errIdle) })}
	defer w.timer.Stop()
	err := attempt(ctx, w)
	if err != nil && errors.Is(context.Cause(ctx), errIdle) {
		return &failure{err: errIdle, again: true}
	}
	return err
}

// body is a response's body, whose every piece is a sign of life.
func (w *watch) body(rc io.ReadCloser) io.ReadCloser { return &watchedBody{rc, w} }

type watchedBody struct {
	io.ReadCloser
	watch *watch
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.watch.timer.Reset(idleTimeout)
	}
	return n, err
}

// refuseStatus makes errors of responses that are none of success, before the
// library makes its own: those lose bodies that are not JSON.
func refuseStatus(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	res, err := next(req)
	if err != nil || res.StatusCode < 400 {
		return res, err
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	said := saidError(body)
	f := &failure{
		err:    fmt.Errorf("%d %s: %s", res.StatusCode, http.StatusText(res.StatusCode), said.text()),
		status: res.StatusCode,
		again:  res.StatusCode == http.StatusRequestTimeout || res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= 500,
		after:  retryAfter(res.Header.Get("Retry-After"), time.Now()),
	}
	if said.Code == "insufficient_quota" { // 429 as well, but waiting does not help
		f.again = false
	}
	return nil, f
}

// retryAfter reads a Retry-After header: seconds or a date (RFC 9110, 10.2.3).
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseFloat(header, 64); err == nil && seconds > 0 && seconds < 1e9 {
		return time.Duration(seconds * float64(time.Second))
	}
	if date, err := http.ParseTime(header); err == nil {
		return max(0, date.Sub(now))
	}
	return 0
}

// An apiError is what a service says about an error, in one of several forms:
// {"error": {"message", "code", "type"}}, {"error": "text"}, {"message"}, text.
type apiError struct {
	Message string
	Code    looseText
	Type    string
}

func saidError(body []byte) apiError {
	var outer struct {
		Error  json.RawMessage
		Detail json.RawMessage // as FastAPI has it
		apiError
	}
	if json.Unmarshal(body, &outer) != nil {
		return apiError{Message: string(body)}
	}
	for _, raw := range []json.RawMessage{outer.Error, outer.Detail} {
		var inner apiError
		var text string
		switch {
		case json.Unmarshal(raw, &inner) == nil && inner.Message != "":
			return inner
		case json.Unmarshal(raw, &text) == nil && text != "":
			return apiError{Message: text, Code: outer.Code}
		case len(raw) > 0 && string(raw) != "null":
			return apiError{Message: string(raw)}
		}
	}
	if outer.Message != "" {
		return outer.apiError
	}
	return apiError{Message: string(body)}
}

// maxSaid is how much of a service's error is repeated, in code points.
const maxSaid = 500

func (a apiError) text() string {
	text := strings.Join(strings.Fields(a.Message), " ")
	if text == "" {
		text = "(no text)"
	}
	if a.Code != "" && !strings.Contains(text, string(a.Code)) {
		text += fmt.Sprintf(" (%s)", a.Code)
	}
	return core.Clip(text, maxSaid)
}

// passing reports whether an error that came within an answer sounds as if it
// would pass: the status is 200 then and tells nothing.
func (a apiError) passing() bool {
	if code, err := strconv.Atoi(string(a.Code)); err == nil {
		return code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500
	}
	kind := strings.ToLower(string(a.Code) + " " + a.Type)
	for _, word := range []string{"overload", "rate_limit", "server", "timeout", "unavailable", "internal"} {
		if strings.Contains(kind, word) {
			return true
		}
	}
	return false
}
