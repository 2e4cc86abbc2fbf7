package hub

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"busbar.dev/fleet"
)

// tracer sends spans to an OpenTelemetry collector as OTLP over HTTP in JSON
// (opentelemetry.io/docs/specs/otlp, OTLP/HTTP): one trace for each sweep of an order, with
// spans of its rounds and parts.
type tracer struct {
	url    string
	warn   func(error)
	client *http.Client

	queue   chan *span
	dropped atomic.Int64
	sent    atomic.Int64
}

// span is one step. A nil span takes everything and does nothing.
type span struct {
	t        *tracer
	trace    string // 32 hexadecimal digits
	id       string // 16
	parent   string
	name     string
	from, to time.Time
	failed   string

	mu   sync.Mutex // guards attr
	attr []attribute
}

// The shapes of OTLP's JSON that are needed. 64-bit numbers are texts there.
type attribute struct {
	Key   string    `json:"key"`
	Value attrValue `json:"value"`
}

type attrValue struct {
	String *string `json:"stringValue,omitempty"`
	Int    *string `json:"intValue,omitempty"`
}

type otlpSpan struct {
	TraceID string      `json:"traceId"`
	SpanID  string      `json:"spanId"`
	Parent  string      `json:"parentSpanId,omitempty"`
	Name    string      `json:"name"`
	Kind    int         `json:"kind"` // 1: internal
	Start   string      `json:"startTimeUnixNano"`
	End     string      `json:"endTimeUnixNano"`
	Attrs   []attribute `json:"attributes,omitempty"`
	Status  otlpStatus  `json:"status"`
}

type otlpStatus struct {
	Code    int    `json:"code"` // 1 good, 2 an error
	Message string `json:"message,omitempty"`
}

func textAttr(key, v string) attribute { return attribute{key, attrValue{String: &v}} }

func intAttr(key string, v int) attribute {
	s := strconv.Itoa(v)
	return attribute{key, attrValue{Int: &s}}
}

// newTracer makes a tracer; url is the collector's, with or without /v1/traces, empty for none.
func newTracer(url string, warn func(error)) *tracer {
	if url != "" && !strings.HasSuffix(url, "/v1/traces") {
		url = strings.TrimSuffix(url, "/") + "/v1/traces"
	}
	return &tracer{url: url, warn: warn, client: &http.Client{Timeout: 10 * time.Second}, queue: make(chan *span, 4096)}
}

// begin starts a span of an order's sweep; without a parent it is the trace's first.
func (t *tracer) begin(o *fleet.Order, parent *span, name string, at time.Time) *span {
	if t.url == "" {
		return nil
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "busbar order %s sweep %d", o.ID, o.Sweep))
	var id [8]byte
	rand.Read(id[:])
	s := &span{t: t, trace: hex.EncodeToString(sum[:16]), id: hex.EncodeToString(id[:]), name: name, from: at}
	if parent != nil {
		s.parent = parent.id
		return s
	}
	s.name = fmt.Sprintf("order %s", o.What.Measure)
	s.attr = []attribute{textAttr("busbar.order", o.ID), textAttr("busbar.by", o.By), intAttr("busbar.sweep", o.Sweep), intAttr("busbar.parts", o.Parts)}
	if o.Job != "" {
		s.attr = append(s.attr, textAttr("busbar.job", o.Job))
	}
	return s
}

func (s *span) set(key, v string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attr = append(s.attr, textAttr(key, v))
}

// end closes a span and queues it; where the collector is too slow it is dropped and counted.
func (s *span) end(at time.Time, failed string) {
	if s == nil {
		return
	}
	s.to, s.failed = at, failed
	if at.Before(s.from) {
		s.to = s.from // the clock was set back
	}
	select {
	case s.t.queue <- s:
	default:
		s.t.dropped.Add(1)
	}
}

// run sends what is queued, in batches, until the context ends; then what is left, briefly.
func (t *tracer) run(ctx context.Context) error {
	if t.url == "" {
		return nil
	}
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	var batch []*span
	for {
		select {
		case s := <-t.queue:
			if batch = append(batch, s); len(batch) < 256 {
				continue
			}
		case <-tick.C:
		case <-ctx.Done():
			for len(t.queue) > 0 && len(batch) < 4096 {
				batch = append(batch, <-t.queue)
			}
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			t.send(last, batch, 1)
			return nil
		}
		t.send(ctx, batch, 3)
		batch = nil
	}
}

func (t *tracer) send(ctx context.Context, batch []*span, tries int) {
	if len(batch) == 0 {
		return
	}
	body, err := json.Marshal(document(batch))
	for i := range tries {
		if err != nil {
			break
		}
		var again bool
		if again, err = t.post(ctx, body); err == nil {
			t.sent.Add(int64(len(batch)))
			return
		}
		if !again || i == tries-1 {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(i+1) * time.Second):
		}
	}
	t.dropped.Add(int64(len(batch)))
	t.warn(fmt.Errorf("%d spans are lost: %w", len(batch), err))
}

func (t *tracer) post(ctx context.Context, body []byte) (again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := t.client.Do(r)
	if err != nil {
		return true, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	if resp.StatusCode >= 300 {
		return resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests, fmt.Errorf("%s answers %s", t.url, resp.Status)
	}
	return false, nil
}

// document is an ExportTraceServiceRequest.
func document(batch []*span) any {
	spans := make([]otlpSpan, len(batch))
	for i, s := range batch {
		s.mu.Lock()
		spans[i] = otlpSpan{
			TraceID: s.trace, SpanID: s.id, Parent: s.parent, Name: s.name, Kind: 1,
			Start: strconv.FormatInt(s.from.UnixNano(), 10), End: strconv.FormatInt(s.to.UnixNano(), 10),
			Attrs: s.attr, Status: otlpStatus{Code: 1},
		}
		s.mu.Unlock()
		if s.failed != "" {
			spans[i].Status = otlpStatus{2, s.failed}
		}
	}
	return map[string]any{"resourceSpans": []any{map[string]any{
		"resource":   map[string]any{"attributes": []attribute{textAttr("service.name", "busbar")}},
		"scopeSpans": []any{map[string]any{"scope": map[string]any{"name": "busbar/fleet/hub"}, "spans": spans}},
	}}}
}
