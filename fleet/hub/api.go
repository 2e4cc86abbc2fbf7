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

// Endpoints are all that a hub answers.
func (h *Hub) Endpoints() []Endpoint {
	get, del := http.MethodGet, http.MethodDelete
	return []Endpoint{
		{Method: get, Path: "/api/fleet/nodes", Serve: h.answer(h.getNodes)},
		{Method: get, Path: "/api/fleet/pairs", Serve: h.answer(h.getPairs)},
		{Method: get, Path: "/api/fleet/link", Serve: h.answer(h.getLink)},
		{Method: get, Path: "/api/fleet/findings", Serve: h.answer(func(*http.Request, string) (any, error) {
			active := slices.DeleteFunc(h.view.Findings(), func(f finding.Finding) bool { return !f.Cleared.IsZero() })
			return fleet.FindingsReply{Findings: active, Past: append([]finding.Finding{}, h.view.Past()...)}, nil
		})},
		{Method: get, Path: "/api/fleet/collectives", Serve: h.answer(func(*http.Request, string) (any, error) {
			return fleet.CollectivesReply{Collectives: h.view.Collectives()}, nil
		})},
		{Method: get, Path: "/api/fleet/jobs", Serve: h.answer(func(*http.Request, string) (any, error) {
			return h.jobs.last.Load(), nil
		})},
		{Method: get, Path: "/api/fleet/cluster", Serve: h.answer(h.getCluster)},
		{Method: get, Path: "/api/fleet/orders", Serve: h.answer(func(*http.Request, string) (any, error) {
			return fleet.OrdersReply{Orders: h.view.Orders(h.cfg.Now())}, nil
		})},
		{Method: get, Path: "/api/fleet/orders/{id}", Waits: true, Serve: h.answer(h.getOrder)},
		{Method: http.MethodPost, Path: "/api/fleet/orders", Orders: true, Waits: true, Serve: h.answer(h.postOrder)},
		{
			Method: del, Path: "/api/fleet/orders/{id}", Orders: true, Waits: true,
			Serve: h.answer(func(r *http.Request, by string) (any, error) {
				s, err := h.Cancel(r.Context(), r.PathValue("id"), by)
				return fleet.OrderReply{OrderState: s}, err
			}),
		},
		{
			Method: del, Path: "/api/fleet/nodes/{name}", Orders: true, Waits: true,
			Serve: h.answer(func(r *http.Request, by string) (any, error) {
				n := r.PathValue("name")
				return map[string]string{"forgotten": n}, h.Forget(r.Context(), fleet.Name(n), by)
			}),
		},
		{Method: get, Path: "/metrics", Serve: func(w http.ResponseWriter, r *http.Request, _ string) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
			_ = h.Metrics(r.Context(), w) // the client has gone
		}},
	}
}

// longest is how long a question may take, beyond what it waits for on purpose.
const longest = 20 * time.Second

// answer answers with a document, or with why there is none. It does so only when all that was stored has been read:
// half of the past is not what is, and names nodes that were bad a month ago.
func (h *Hub) answer(ask func(*http.Request, string) (any, error)) func(http.ResponseWriter, *http.Request, string) {
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
		if err == nil {
			code := http.StatusOK
			if r.Method == http.MethodPost {
				code = http.StatusCreated
			}
			reply(w, code, doc)
			return
		}
		var refused RefusedError
		var big *http.MaxBytesError
		code := http.StatusServiceUnavailable
		switch {
		case errors.As(err, &big):
			code = http.StatusRequestEntityTooLarge
		case errors.As(err, &refused):
			code = http.StatusBadRequest
		case errors.Is(err, ErrUnknown), errors.Is(err, ErrNoNode):
			code = http.StatusNotFound
		case errors.Is(err, ErrOver), errors.Is(err, ErrBeats):
			code = http.StatusConflict
		}
		reply(w, code, map[string]string{"error": err.Error()})
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
	out := fleet.NodesReply{Nodes: h.Nodes(), Leads: h.Leads(), Read: h.view.Seq()}
	if names != nil {
		out.Nodes = slices.DeleteFunc(out.Nodes, func(n fleet.NodeState) bool { return !slices.Contains(names, n.Name) })
	}
	if r.URL.Query().Get("brief") != "" {
		for i := range out.Nodes {
			out.Nodes[i] = brief(out.Nodes[i])
		}
	}
	return out, nil
}

// refused is an error of what was asked.
func refused(format string, a ...any) error { return RefusedError{fmt.Errorf(format, a...)} }

func (h *Hub) getPairs(r *http.Request, _ string) (any, error) {
	q := r.URL.Query()
	f := cmp.Or(fleet.Figure(q.Get("figure")), fleet.FigureRate)
	if f != fleet.FigureRate && f != fleet.FigureBoth && f != fleet.FigureLatency {
		return nil, refused("figure %.40q: expected rate, both or latency", f)
	}
	names, err := namesOf(q.Get("nodes"))
	if err != nil {
		return nil, err
	}
	id := q.Get("order")
	o, known := h.view.Order(id, h.cfg.Now())
	if n := len(h.view.present()); names == nil && n > mostAllHeat && (!known || o.Nodes == nil) {
		return nil, refused("a table of all %d nodes has %d cells; expected nodes= with at most %d of them", n, n*n, mostHeat)
	}
	if id == "" {
		by, err := transportOf(r)
		if err != nil {
			return nil, err
		}
		return h.view.Heat(f, by, names), nil
	}
	if names != nil {
		return nil, refused("order and nodes: expected only one of them, since an order has its own nodes")
	}
	heat, ok := h.view.SweepHeat(f, id)
	if !ok {
		return nil, ErrUnknown
	}
	return heat, nil
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

// mostHeat bounds the nodes of a table that somebody asks for by names, and mostAllHeat those of a table of all: a cell
// takes some thirty bytes on its way.
const (
	mostHeat    = 2000
	mostAllHeat = 3000
)

// namesOf reads a hostlist; an empty one is nil.
func namesOf(list string) ([]fleet.Name, error) {
	if list == "" {
		return nil, nil
	}
	if len(list) > 64<<10 {
		return nil, refused("nodes: the list is too long")
	}
	hosts, err := cluster.NewBudget(cluster.Limits{Names: mostHeat}, nil).ParseHosts(list)
	if err != nil {
		return nil, refused("nodes: %w", err)
	}
	if len(hosts) > mostHeat {
		return nil, refused("nodes: %d; at most %d can be asked for by name", len(hosts), mostHeat)
	}
	names := make([]fleet.Name, len(hosts))
	for i, s := range hosts {
		if names[i], err = fleet.ParseName(s); err != nil {
			return nil, RefusedError{err}
		}
	}
	return names, nil
}

// LinkSample is one time that a direction of a pair was measured.
type LinkSample struct {
	At      time.Time `json:"at"`
	Sweep   string    `json:"sweep"`
	Rate    unit.Rate `json:"rate_GBps,omitzero"`
	Latency unit.Time `json:"latency_us,omitzero"`
	Failed  bool      `json:"failed,omitempty"`
	Setup   string    `json:"setup,omitempty"` // how it was measured; those that differ cannot be compared
}

func (h *Hub) getLink(r *http.Request, _ string) (any, error) {
	q := r.URL.Query()
	from, err1 := fleet.ParseName(q.Get("from"))
	to, err2 := fleet.ParseName(q.Get("to"))
	if err := errors.Join(err1, err2); err != nil || from == to {
		return nil, RefusedError{errors.Join(errors.New("from and to must name two nodes"), err)}
	}
	by, err := transportOf(r)
	if err != nil {
		return nil, err
	}
	out := struct {
		From        fleet.Name      `json:"from"`
		To          fleet.Name      `json:"to"`
		Way         health.Way      `json:"way"`
		Ways        []health.Way    `json:"ways,omitempty"` // that it was measured over, where there are others than TCP
		Out         []LinkSample    `json:"there"`
		Back        []LinkSample    `json:"back"`
		OutChanges  []health.Change `json:"there_changes,omitempty"`
		BackChanges []health.Change `json:"back_changes,omitempty"`
		OutDaily    []health.Daily  `json:"there_daily,omitempty"`
		BackDaily   []health.Daily  `json:"back_daily,omitempty"`
	}{From: from, To: to}
	var there, back []health.Point // the oldest first
	h.view.ask(func(s *health.History) {
		out.Way, out.Ways = wayOf(s, from, to, by, q.Get("rail"))
		there, back = s.Pair(string(from), string(to), out.Way), s.Pair(string(to), string(from), out.Way)
	})
	if len(there)+len(back) == 0 { // a node that is gone may have left a history
		for _, n := range []fleet.Name{from, to} {
			if _, ok := h.view.Node(n); !ok {
				return nil, fmt.Errorf("node %s never joined: %w; busbar nodes lists those that did", n, ErrNoNode)
			}
		}
	}
	out.Out, out.OutChanges, out.OutDaily = samples(there), health.Changes(there), health.DailySlow(there)
	out.Back, out.BackChanges, out.BackDaily = samples(back), health.Changes(back), health.DailySlow(back)
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

func samples(list []health.Point) []LinkSample {
	out := make([]LinkSample, len(list))
	for i, p := range list {
		out[i] = LinkSample{p.Time.UTC(), p.Sweep, p.Rate, p.Latency, p.Failed, p.Setup}
	}
	return out
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
		return nil, ErrUnknown
	}
	out := fleet.OrderReply{OrderState: s}
	if s.Sweep > 0 {
		out.Verdict, _ = h.Verdict(id) // forgotten in this moment
	}
	return out, nil
}

// errNoOrder is the error of a body without an order; an order without any field is {}.
var errNoOrder = errors.New(
	`the body has no order; expected an object, such as {"what": {"measure": "pairs"}}, or {} for all pairs once`)

func (h *Hub) postOrder(r *http.Request, by string) (any, error) {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	var o *fleet.Order
	err := d.Decode(&o)
	switch {
	case errors.Is(err, io.EOF), err == nil && o == nil:
		err = errNoOrder
	case err == nil && d.More():
		err = errors.New("unexpected data after the order")
	}
	var big *http.MaxBytesError
	if errors.As(err, &big) {
		return nil, err
	}
	if err != nil {
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
