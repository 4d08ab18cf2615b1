package mcps

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/propagation"
)

func TestTheTraceGoesOn(t *testing.T) {
	t.Parallel()
	const parent, state = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "vendor=value"
	traced := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": parent, "tracestate": state})
	shared := make([]byte, 0, 200)
	shared = append(shared, `"a":1`...)
	for _, c := range []struct {
		ctx        context.Context
		meta, want string
	}{
		{context.Background(), `"a":1`, `"a":1`},
		{context.Background(), "", ""},
		{traced, `"a":1`, `"a":1,"traceparent":"` + parent + `","tracestate":"vendor=value"`},
		{traced, "", `"traceparent":"` + parent + `","tracestate":"vendor=value"`},
	} {
		if got := string(withTrace(c.ctx, shared[:len(c.meta)])); got != c.want {
			t.Errorf("withTrace(%s) = %s; want %s", c.meta, got, c.want)
		}
	}
	if spare := string(shared[5:9][:4]); spare != "\x00\x00\x00\x00" {
		t.Errorf("bytes that others use were written: %q", spare)
	}
}
