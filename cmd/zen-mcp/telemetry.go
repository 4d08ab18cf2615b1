package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// flushTime is how long the last spans may take to leave.
const flushTime = 2 * time.Second

// openTelemetry makes the tracer that OpenTelemetry's own variables ask for, and
// what sends the last spans; nil when none of them names a place to send spans to.
// The exporter reads all others itself: headers, timeouts, sampling.
func openTelemetry(ctx context.Context, getenv func(string) string) (trace.Tracer, func() error, error) {
	off := strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || getenv("OTEL_TRACES_EXPORTER") == "none"
	asked := getenv("OTEL_TRACES_EXPORTER") + getenv("OTEL_EXPORTER_OTLP_ENDPOINT") + getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	if off || asked == "" {
		return nil, func() error { return nil }, nil
	}
	for name, supported := range map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"} {
		if value := getenv(name); value != "" && value != supported {
			return nil, nil, errUsage{fmt.Errorf("%s=%s: only %s is supported", name, value, supported)}
		}
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("OpenTelemetry: %w", err)
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "zen-mcp"), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv()) // the last one wins
	if err != nil {
		return nil, nil, fmt.Errorf("OpenTelemetry: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	stop := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), flushTime)
		defer cancel()
		return provider.Shutdown(ctx)
	}
	return provider.Tracer("zenmcp"), stop, nil
}
