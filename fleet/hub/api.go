package hub

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/fleet/health"
	"busbar.dev/input/clusterfile"
	"busbar.dev/unit"
)

// Endpoint is one thing that can be asked over HTTP.
type Endpoint struct {
	Method, Path string
	// Orders tells that the right to give orders is needed; else that to read is.
	Orders bool
	// Waits tells that it may wait for something to happen, rather than compute.
	Waits bool
	// Serve answers; by is who asks.
	Serve func(w http.ResponseWriter, r *http.Request, by string)
}

// question is what an endpoint answers: a document, or why there is none. by is who asks.
type question func(r *http.Request, by string) (any, error)

// Endpoints are all that a hub answers.
func (h *Hub) Endpoints() []Endpoint {
	read := func(path string, ask question) Endpoint {
		return Endpoint{Method: http.MethodGet, Path: "/api/fleet/" + path, Serve: h.answer(ask)}
	}
	show := func(path string, doc func() any) Endpoint {
		return read(path, func(*http.Request, string) (any, error) { return doc(), nil })
	}
	order := func(method, path string, ask question) Endpoint {
		return Endpoint{Method: method, Path: "/api/fleet/" + path, Orders: true, Waits: true, Serve: h.answer(ask)}
	}
	wait := read("orders/{id}", h.getOrder)
	wait.Waits = true
	return []Endpoint{
		read("nodes", h.getNodes), read("pairs", h.getPairs), read("link", h.getLink), read("cluster", h.getCluster), wait,
		show("findings", func() any {
			none := []finding.Finding{}
			return fleet.FindingsReply{Findings: append(none, h.view.Findings()...), Past: append(none, h.view.Past()...)}
		}),
		show("collectives", func() any { return fleet.CollectivesReply{Collectives: h.view.Collectives()} }),
		show("jobs", func() any { return h.jobs.last.Load() }),
		show("orders", func() any { return fleet.OrdersReply{Orders: h.view.Orders(h.cfg.Now())} }),
		order(http.MethodPost, "orders", h.postOrder),
		order(http.MethodDelete, "orders/{id}", func(r *http.Request, by string) (any, error) {
			s, err := h.Cancel(r.Context(), r.PathValue("id"), by)
			return fleet.OrderReply{OrderState: s}, err
		}),
		order(http.MethodDelete, "nodes/{name}", func(r *http.Request, by string) (any, error) {
			n := r.PathValue("name")
			return map[string]string{"forgotten": n}, h.Forget(r.Context(), fleet.Name(n), by)
		}),
		{Method: http.MethodGet, Path: "/metrics", Serve: func(w http.ResponseWriter, r *http.Request, _ string) {
			open, kind := strings.Contains(r.Header.Get("Accept"), "application/openmetrics-text"), "text/plain; version=0.0.4"
			if open {
				kind = "application/openmetrics-text; version=1.0.0"
			}
			w.Header().Set("Content-Type", kind+"; charset=utf-8")
			_ = h.Metrics(r.Context(), w, open) // the client has gone
		}},
	}
}

// apiError is an error of what was asked, with its HTTP status.
type apiError struct {
	code int
	error
}

// refused is an error of a question that cannot be answered, or of an order that will not be carried out.
func refused(format string, a ...any) error {
	return apiError{http.StatusBadRequest, fmt.Errorf(format, a...)}
}

// longest is how long a question may take, beyond what it waits for on purpose.
const longest = 20 * time.Second

// answer answers only when all that was stored has been read: half of the past is not what is, and names nodes that
// were bad a month ago.
func (h *Hub) answer(ask question) func(http.ResponseWriter, *http.Request, string) {
	return func(w http.ResponseWriter, r *http.Request, by string) {
		if share, reading := h.Reading(); reading {
			w.Header().Set("Retry-After", "1")
			reply(w, http.StatusServiceUnavailable, map[string]any{
				"error": fmt.Sprintf("the server is starting: it has read %.0f%% of its stored events; try again in a moment",
					math.Floor(100*share)), "reading": share,
			})
			return
		}
		limit := longest
		if r.Method == http.MethodGet {
			limit += mostWait
		}
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		doc, err := ask(r.WithContext(ctx), by)
		code := http.StatusOK
		var asked apiError
		var big *http.MaxBytesError
		switch {
		case errors.As(err, &big):
			code = http.StatusRequestEntityTooLarge
		case errors.As(err, &asked):
			code = asked.code
		case err != nil:
			code = http.StatusServiceUnavailable
		case r.Method == http.MethodPost:
			code = http.StatusCreated
		}
		if err != nil {
			doc = map[string]string{"error": err.Error()}
		}
		reply(w, code, doc)
	}
}

// yaml is a document that is sent as it is.
type yaml []byte

func reply(w http.ResponseWriter, code int, doc any) {
	kind := "application/json; charset=utf-8"
	data, text := doc.(yaml)
	if text {
		kind = "application/yaml; charset=utf-8"
	} else {
		var err error
		if data, err = json.Marshal(doc); err != nil {
			code, data = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written"}`)
		}
		data = append(data, '\n')
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(data) // the client has gone
}

func (h *Hub) getNodes(r *http.Request, _ string) (any, error) {
	names, err := namesOf(r.URL.Query().Get("nodes"))
	if err != nil {
		return nil, err
	}
	out := fleet.NodesReply{Nodes: h.Nodes(names...), Leads: h.Leads(), Read: h.view.Seq()}
	if r.URL.Query().Get("brief") != "" {
		for i := range out.Nodes {
			out.Nodes[i] = brief(out.Nodes[i])
		}
	}
	return out, nil
}

func (h *Hub) getPairs(r *http.Request, _ string) (any, error) {
	q := r.URL.Query()
	f := cmp.Or(fleet.Figure(q.Get("figure")), fleet.FigureRate)
	if !slices.Contains([]fleet.Figure{fleet.FigureRate, fleet.FigureBoth, fleet.FigureLatency}, f) {
		return nil, refused("figure %.40q: expected rate, both or latency", f)
	}
	names, err := namesOf(q.Get("nodes"))
	if err != nil {
		return nil, err
	}
	by, err := transportOf(r)
	if err != nil {
		return nil, err
	}
	id := q.Get("order")
	o, known := h.view.Order(id, h.cfg.Now())
	switch {
	case id != "" && names != nil:
		return nil, refused("order and nodes: expected only one of them, since an order has its own nodes")
	case id != "" && !known:
		return nil, errUnknown
	case names == nil:
		names = h.view.asked(&o.Order)
	}
	if n := len(names); n > mostHeat {
		return nil, refused("a table of all %d nodes has %d cells; expected nodes= with at most %d of them", n, n*n, mostHeat)
	}
	return h.view.Heat(f, by, names, id), nil
}

// transportOf is the one that is asked for, TCP where none is.
func transportOf(r *http.Request) (fleet.Transport, error) {
	by := fleet.Transport(r.URL.Query().Get("by"))
	if by == "tcp" {
		by = fleet.TCP
	}
	if !slices.Contains(fleet.Transports(), by) {
		return by, refused("by %.40q: expected tcp, %s or %s", by, fleet.RDMA, fleet.NCCL)
	}
	return by, nil
}

// mostHeat bounds the nodes of a table: a cell takes some thirty bytes on its way.
const mostHeat = 3000

// namesOf reads a hostlist; an empty one is nil.
func namesOf(list string) ([]fleet.Name, error) {
	if list == "" {
		return nil, nil
	}
	hosts, err := cluster.NewBudget(cluster.Limits{Names: mostHeat}, nil).ParseHosts(list)
	if err != nil {
		return nil, refused("nodes: %w", err)
	}
	names := make([]fleet.Name, len(hosts))
	for i, s := range hosts {
		if names[i], err = fleet.ParseName(s); err != nil {
			return nil, refused("nodes: %w", err)
		}
	}
	return names, nil
}

func (h *Hub) getLink(r *http.Request, _ string) (any, error) {
	q := r.URL.Query()
	from, err1 := fleet.ParseName(q.Get("from"))
	to, err2 := fleet.ParseName(q.Get("to"))
	if err := errors.Join(err1, err2); err != nil || from == to {
		return nil, refused("%w", errors.Join(errors.New("from and to must name two nodes"), err))
	}
	by, err := transportOf(r)
	if err != nil {
		return nil, err
	}
	out := struct {
		From fleet.Name     `json:"from"`
		To   fleet.Name     `json:"to"`
		Way  health.Way     `json:"way"`
		Ways []health.Way   `json:"ways,omitempty"` // that it was measured over, where there are others than TCP
		Out  []health.Point `json:"there"`
		Back []health.Point `json:"back"`
	}{From: from, To: to, Out: []health.Point{}, Back: []health.Point{}}
	h.view.ask(func(s *health.History) { // the oldest first
		out.Way, out.Ways = wayOf(s, from, to, by, q.Get("rail"))
		out.Out = append(out.Out, s.Pair(string(from), string(to), out.Way)...)
		out.Back = append(out.Back, s.Pair(string(to), string(from), out.Way)...)
	})
	if len(out.Out)+len(out.Back) == 0 { // a node that is gone may have left a history
		for _, n := range []fleet.Name{from, to} {
			if _, ok := h.Node(n); !ok {
				return nil, fmt.Errorf("node %s %s: %w; busbar fleet nodes lists those that did", n, fleet.NeverJoined, errNoNode)
			}
		}
	}
	return out, nil
}

// wayOf is the transport and rail that are asked for, the first of a transport's rails where none is, and all that the
// pair has.
func wayOf(s *health.History, from, to fleet.Name, by fleet.Transport, rail string) (health.Way, []health.Way) {
	all := s.Ways(string(from), string(to))
	way := health.Way{By: string(by), Rail: rail}
	if i := slices.IndexFunc(all, func(w health.Way) bool { return w.By == way.By }); rail == "" && i >= 0 {
		way = all[i]
	}
	if len(all) == 1 && all[0] == (health.Way{}) {
		all = nil
	}
	return way, all
}

func (h *Hub) getCluster(r *http.Request, _ string) (any, error) {
	c := h.Cluster()
	if r.URL.Query().Get("format") == "yaml" {
		var b bytes.Buffer
		err := clusterfile.Write(&b, c)
		return yaml(b.Bytes()), err
	}
	return struct {
		*cluster.Document
		Summary cluster.Summary `json:"summary"`
	}{c.Document(), c.Summary()}, nil
}

// mostWait is how long a request may wait for an order to end.
const mostWait = time.Minute

func (h *Hub) getOrder(r *http.Request, _ string) (any, error) {
	id := r.PathValue("id")
	if text := r.URL.Query().Get("wait"); text != "" {
		s, err := strconv.ParseFloat(text, 64)
		if err != nil || !(s >= 0 && s <= mostWait.Seconds()) {
			return nil, refused("wait %.20q: expected seconds from 0 to %g", text, mostWait.Seconds())
		}
		ctx, cancel := context.WithTimeout(r.Context(), time.Duration(s*float64(time.Second)))
		defer cancel()
		_ = h.until(ctx, func() bool { return h.over(id) }) // what is, is told
	}
	s, ok := h.view.Order(id, h.cfg.Now())
	if !ok {
		return nil, errUnknown
	}
	out := fleet.OrderReply{OrderState: s}
	if s.Sweep > 0 {
		out.Verdict, _ = h.Verdict(id) // forgotten in this moment
	}
	return out, nil
}

// errNoOrder is the error of a body without an order; an order without any field is {}.
var errNoOrder = refused("%s",
	`the order: the body has none; expected an object, such as {"what": {"measure": "pairs"}}, or {} for all pairs once`)

func (h *Hub) postOrder(r *http.Request, by string) (any, error) {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	var o *fleet.Order
	err := d.Decode(&o)
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return nil, err
	case errors.Is(err, io.EOF), err == nil && o == nil:
		return nil, errNoOrder
	case err == nil && d.More():
		return nil, refused("the order: unexpected data after it")
	case err != nil:
		return nil, refused("the order: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	o.By = by
	Fill(o)
	s, err := h.Give(r.Context(), *o)
	return fleet.OrderReply{OrderState: s}, err
}

// Fill gives an order the usual figures where it has none.
func Fill(o *fleet.Order) {
	w := &o.What
	w.Measure = cmp.Or(w.Measure, fleet.MeasurePairs)
	switch {
	case w.Measure == fleet.MeasurePairs:
		w.Small = cmp.Or(w.Small, 8)
		w.Large = cmp.Or(w.Large, 4*unit.MiB)
	case len(w.Sizes) == 0:
		w.Sizes = []unit.Bytes{unit.MiB, 16 * unit.MiB}
	}
	if w.Iters == 0 {
		w.Iters, w.Warm = 10, max(w.Warm, 2)
	}
}
