package service

import (
	"context"
	"path"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"google.golang.org/grpc/codes"

	recalldv1 "recalld/proto/recalld/v1"
)

// metrics count what the server does. No label holds a name, an id or a text.
type metrics struct {
	calls   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	sources *prometheus.CounterVec
}

func newMetrics() metrics {
	return metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "recalld_calls_total", Help: "Calls answered, by method and gRPC code.",
		}, []string{"method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "recalld_call_seconds", Help: "How long calls took, by method.",
			Buckets: prometheus.ExponentialBuckets(.001, 2, 14),
		}, []string{"method"}),
		sources: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "recalld_sources_total", Help: "What became of the sources of answers (words, meaning, expansion, journal).",
		}, []string{"source", "outcome"}),
	}
}

// call counts a call of a method by its full name.
func (m metrics) call(method string, code codes.Code, took time.Duration) {
	method = path.Base(method)
	m.calls.WithLabelValues(method, code.String()).Inc()
	m.seconds.WithLabelValues(method).Observe(took.Seconds())
}

// answered counts the sources of an answer.
func (m metrics) answered(sources []*recalldv1.SourceOutcome) {
	for _, s := range sources {
		m.sources.WithLabelValues(s.GetSource(), outcomeName(s.GetOutcome())).Inc()
	}
}

// Metrics gathers the server's metrics for Prometheus: its calls, the outcomes
// of sources, what model servers cost and how they fare, and those of the Go
// runtime and the process.
func (s *Server) Metrics() prometheus.Gatherer {
	r := prometheus.NewRegistry()
	r.MustRegister(s.metrics.calls, s.metrics.seconds, s.metrics.sources, modelMetrics{s},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// modelMetrics are read from the store when they are asked for: spending is
// kept there, over restarts.
type modelMetrics struct{ server *Server }

var (
	modelLabels = []string{"purpose", "model"}

	modelCalls = prometheus.NewDesc("recalld_model_calls_total",
		"Calls of model servers, by purpose and model, over restarts.", modelLabels, nil)
	modelTokens = prometheus.NewDesc("recalld_model_tokens_total",
		"Tokens that model servers reported, by purpose and model, over restarts.", modelLabels, nil)
	modelSeconds = prometheus.NewDesc("recalld_model_seconds_total",
		"Time that calls of model servers took, by purpose and model, over restarts.", modelLabels, nil)
	modelFailures = prometheus.NewDesc("recalld_model_failures",
		"Failures in a row of a model server; from three on it is not asked for a while.", modelLabels, nil)
	openMemories = prometheus.NewDesc("recalld_open_memories", "Memories that are open.", nil, nil)
)

func (m modelMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{modelCalls, modelTokens, modelSeconds, modelFailures, openMemories} {
		out <- d
	}
}

// metricsPatience is how long a scrape waits for the store.
const metricsPatience = 5 * time.Second

func (m modelMetrics) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), metricsPatience)
	defer cancel()
	out <- prometheus.MustNewConstMetric(openMemories, prometheus.GaugeValue, float64(m.server.open.count()))
	if m.server.options.Models != nil {
		for _, s := range m.server.options.Models() {
			out <- prometheus.MustNewConstMetric(modelFailures, prometheus.GaugeValue, float64(s.Failures), s.Purpose, name(s.Model))
		}
	}
	spent, err := m.server.store.SpendSoFar(ctx)
	if err != nil {
		out <- prometheus.NewInvalidMetric(modelCalls, err)
		return
	}
	for _, s := range spent {
		labels := []string{s.Purpose, name(s.Model)}
		out <- prometheus.MustNewConstMetric(modelCalls, prometheus.CounterValue, float64(s.Calls), labels...)
		out <- prometheus.MustNewConstMetric(modelTokens, prometheus.CounterValue, float64(s.Tokens), labels...)
		out <- prometheus.MustNewConstMetric(modelSeconds, prometheus.CounterValue, s.Took.Seconds(), labels...)
	}
}
