package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestSpansGoWhereTheVariablesSay is not parallel: the exporter reads the
// environment itself.
func TestSpansGoWhereTheVariablesSay(t *testing.T) {
	received := make(chan string, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		received <- r.URL.Path + " " + r.Header.Get("X-Key") + " " + string(body)
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=k")
	env := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL}
	tracer, stop, err := openTelemetry(t.Context(), func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracer.Start(context.Background(), "a span of a test")
	span.End()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	got := <-received
	if !strings.HasPrefix(got, "/v1/traces k ") || !strings.Contains(got, "a span of a test") || !strings.Contains(got, "zen-mcp") {
		t.Errorf("collector got %q", got)
	}
}

func TestTracesAreOffUnlessAskedFor(t *testing.T) {
	t.Parallel()
	for _, env := range []map[string]string{{}, {"OTEL_SERVICE_NAME": "x"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318", "OTEL_SDK_DISABLED": "true"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318", "OTEL_TRACES_EXPORTER": "none"}} {
		if tracer, _, err := openTelemetry(t.Context(), func(name string) string { return env[name] }); tracer != nil || err != nil {
			t.Errorf("%v: %v, %v", env, tracer, err)
		}
	}
	env := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
	if _, _, err := openTelemetry(t.Context(), func(name string) string { return env[name] }); err == nil || !strings.Contains(err.Error(), "only http/protobuf") {
		t.Errorf("gRPC: %v", err)
	}
}
