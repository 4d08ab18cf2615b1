package mcpserver

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are what a server counts, in a registry of its own.
type metrics struct {
	registry *prometheus.Registry
	calls    *prometheus.HistogramVec
	running  prometheus.Gauge
	refused  *prometheus.CounterVec
}

// callBuckets reach from a tool that looks at memory to the limit of a call.
var callBuckets = []float64{.001, .005, .025, .1, .5, 2.5, 10, 60, 600}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "zenmcp_call_seconds", Buckets: callBuckets,
			Help: "How long calls of tools took; its count is how many there were. Outcomes: ok, error, cancelled, timeout, limited, unknown.",
		}, []string{"agent", "tool", "outcome"}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{Name: "zenmcp_calls_running", Help: "Calls that run now."}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "zenmcp_refused_total",
			Help: "Requests and calls that were refused, by what was wrong: host, origin, token, agent, issuer, session, or limit.",
		}, []string{"reason"}),
	}
	m.registry.MustRegister(m.calls, m.running, m.refused,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "zenmcp_sessions", Help: "Sessions, and credentials in use without one."},
			func() float64 { return float64(s.clients.count()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "zenmcp_sessions_evicted_total", Help: "Sessions that made room for newer ones."},
			func() float64 { return float64(s.clients.evicted.Load()) }))
	if countsChildren() {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "zenmcp_children", Help: "Processes that this one has started and that still are."},
			func() float64 { n, _ := countChildren(); return float64(n) }))
	}
	return m
}

// handler serves them in the text format of Prometheus.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// runs counts a call that runs, until what it returns is called.
func (m *metrics) runs() (end func()) {
	if m == nil {
		return func() {}
	}
	m.running.Inc()
	return m.running.Dec
}

func (m *metrics) saw(c *observed, end outcome, took time.Duration) {
	if m == nil {
		return
	}
	tool := c.tool
	if end == outcomeUnknown {
		tool = "" // anybody can make up names
	}
	m.calls.WithLabelValues(c.agent, tool, string(end)).Observe(took.Seconds())
	if end == outcomeLimited {
		m.refused.WithLabelValues("limit").Inc()
	}
}
