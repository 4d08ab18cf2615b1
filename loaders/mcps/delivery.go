package mcps

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// arrivalLimit is how long a server may have got a call that was written and not have
// begun to answer. Until it has, or this is over, nothing is said that ends the call.
const arrivalLimit = 500 * time.Millisecond

// A delivery is the way of a call to a server over HTTP, in an era in which a message
// of its own cancels the call. That travels on another connection and must not be
// there first: a server passes over the cancellation of a call that it does not know
// yet, and does the call for nobody. The methods of a nil delivery do nothing.
type delivery struct {
	written atomic.Int64  // when the POST was, in Unix nanoseconds; 0 before
	arrived chan struct{} // closed when the server begins to answer, or the POST is over
}

func newDelivery() *delivery { return &delivery{arrived: make(chan struct{})} }

// doPost sends a body. A delivery is told how far it came, and is used once.
func (e *httpEnd) doPost(ctx context.Context, address string, header http.Header, body []byte, d *delivery) (*http.Response, error) {
	if d != nil {
		defer close(d.arrived)
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				d.written.Store(time.Now().UnixNano())
			}
		}})
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = header
	return e.do(req)
}

// left is how much longer the POST of a call that was given up is kept, for the
// server to get it: no time when it is not written, since closing it is enough then.
func (d *delivery) left() time.Duration {
	if d == nil {
		return 0
	}
	written := d.written.Load()
	if written == 0 {
		return 0
	}
	return max(0, time.Until(time.Unix(0, written).Add(arrivalLimit)))
}

// await waits until the server has a call that was given up, or never will, and
// reports whether there is something to cancel.
func (d *delivery) await(ctx context.Context) bool {
	if d == nil {
		return false
	}
	var limit <-chan time.Time // of one that is not written: it is being closed, which ends it
	if d.written.Load() != 0 {
		timer := time.NewTimer(d.left())
		defer timer.Stop()
		limit = timer.C
	}
	select {
	case <-d.arrived:
	case <-limit:
	case <-ctx.Done():
	}
	return d.written.Load() != 0
}
