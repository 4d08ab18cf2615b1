package mcpserver

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// propagator reads and writes W3C Trace Context. In MCP it travels in _meta.
var propagator = propagation.TraceContext{}

const traceParent = "traceparent"

// A metaCarrier is the _meta of a request as a carrier of trace context.
type metaCarrier mcp.Meta

// Get implements propagation.TextMapCarrier.
func (m metaCarrier) Get(key string) string { s, _ := m[key].(string); return s }

// Set implements propagation.TextMapCarrier.
func (m metaCarrier) Set(key, value string) { m[key] = value }

// Keys implements propagation.TextMapCarrier.
func (m metaCarrier) Keys() []string { return slices.Collect(maps.Keys(m)) }

// withTrace puts the caller's trace context into ctx, from where it goes to the
// servers that tools call, whether spans are recorded here or not.
func withTrace(ctx context.Context, meta mcp.Meta, header http.Header) context.Context {
	switch {
	case meta[traceParent] != nil:
		return propagator.Extract(ctx, metaCarrier(meta))
	case header.Get(traceParent) != "":
		return propagator.Extract(ctx, propagation.HeaderCarrier(header))
	}
	return ctx
}

// span begins the span of a call, named as OpenTelemetry's conventions for MCP
// say; nil without a tracer.
func (s *Server) span(ctx context.Context, c *observed) (context.Context, trace.Span) {
	if s.tracer == nil {
		return ctx, nil
	}
	return s.tracer.Start(ctx, "tools/call "+c.tool, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("mcp.method.name", "tools/call"),
		attribute.String("gen_ai.operation.name", "execute_tool"),
		attribute.String("gen_ai.tool.name", c.tool),
		attribute.String("gen_ai.agent.id", c.agent),
		attribute.String("enduser.id", c.principal),
		attribute.String("zenmcp.request", c.request),
	))
}

func endSpan(span trace.Span, end outcome) {
	if span == nil {
		return
	}
	if end != outcomeOK {
		span.SetAttributes(attribute.String("error.type", string(end)))
		span.SetStatus(codes.Error, string(end))
	}
	span.End()
}
