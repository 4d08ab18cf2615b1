package mcps

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/propagation"

	"zenmcp/core/rawjson"
)

// withTrace adds the trace that ctx belongs to, if any, to the members of a
// request's _meta, where MCP carries W3C Trace Context.
func withTrace(ctx context.Context, meta []byte) []byte {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	meta = slices.Clip(meta) // others append to the same bytes
	for _, key := range (propagation.TraceContext{}).Fields() {
		if value := carrier.Get(key); value != "" {
			if len(meta) > 0 {
				meta = append(meta, ',')
			}
			meta = append(rawjson.AppendString(meta, key), ':')
			meta = rawjson.AppendString(meta, value)
		}
	}
	return meta
}
