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
	read := func(path string, serve func(http.ResponseWriter, *http.Request)) Endpoint {
		return Endpoint{
			Method: http.MethodGet, Path: path, Serve: func(w http.ResponseWriter, r *http.Request, _ string) { serve(w, r) },
		}
	}
	list := []Endpoint{
		read("/api/fleet/nodes", h.getNodes),
		read("/api/fleet/pairs", h.getPairs),
		read("/api/fleet/link", h.getLink),
		read("/api/fleet/findings", h.getFindings),
		read("/api/fleet/collectives", func(w http.ResponseWriter, _ *http.Request) {
			reply(w, fleet.CollectivesReply{Collectives: h.view.Collectives()})
		}),
		read("/api/fleet/jobs", func(w http.ResponseWriter, _ *http.Request) { reply(w, h.jobs.last.Load()) }),
		read("/api/fleet/cluster", h.getCluster),
		read("/api/fleet/orders", func(w http.ResponseWriter, _ *http.Request) {
			reply(w, fleet.OrdersReply{Orders: h.view.Orders(h.cfg.Now())})
		}),
		{
			Method: http.MethodGet, Path: "/api/fleet/orders/{id}", Waits: true,
			Serve: func(w http.ResponseWriter, r *http.Request, _ string) { h.getOrder(w, r) },
		},
		{Method: http.MethodPost, Path: "/api/fleet/orders", Orders: true, Waits: true, Serve: h.postOrder},
		{Method: http.MethodDelete, Path: "/api/fleet/orders/{id}", Orders: true, Waits: true, Serve: h.deleteOrder},
		{Method: http.MethodDelete, Path: "/api/fleet/nodes/{name}", Orders: true, Waits: true, Serve: h.deleteNode},
	}
	for i := range list {
		list[i].Serve = h.whenRead(list[i].Serve)
	}
	return append(list, read("/metrics", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_ = h.Metrics(r.Context(), w) // the client has gone
	}))
}

// whenRead answers only when all that was stored has been read: half of the past is not what is, and
// names nodes that were bad a month ago.
func (h *Hub) whenRead(serve func(http.ResponseWriter, *http.Request, string)) func(http.ResponseWriter, *http.Request,
	string) {
	return func(w http.ResponseWriter, r *http.Request, by string) {
		share, reading := h.Reading()
		if !reading {
			serve(w, r, by)
			return
		}
		w.Header().Set("Retry-After", "1")
		replyCode(w, http.StatusServiceUnavailable, map[string]any{
			"error": fmt.Sprintf("the server is starting: it has read %.0f%% of its stored events; try again in a moment",
				math.Floor(100*share)), "reading": share,
		})
	}
}

func reply(w http.ResponseWriter, v any) { replyCode(w, http.StatusOK, v) }

func replyCode(w http.ResponseWriter, code int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(append(data, '\n')) // the client has gone
}

func refuse(w http.ResponseWriter, code int, err error) {
	replyCode(w, code, map[string]string{"error": err.Error()})
}

func (h *Hub) getNodes(w http.ResponseWriter, r *http.Request) {
	names, err := namesOf(r.URL.Query().Get("nodes"))
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
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
	reply(w, out)
}

func (h *Hub) getPairs(w http.ResponseWriter, r *http.Request) {
	f := fleet.Figure(r.URL.Query().Get("figure"))
	switch f {
	case "":
		f = fleet.FigureRate
	case fleet.FigureRate, fleet.FigureBoth, fleet.FigureLatency:
	default:
		refuse(w, http.StatusBadRequest, fmt.Errorf("figure %.40q: expected rate, both or latency", f))
		return
	}
	names, err := namesOf(r.URL.Query().Get("nodes"))
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	id := r.URL.Query().Get("order")
	o, known := h.view.Order(id, h.cfg.Now())
	if n := len(h.view.present()); names == nil && n > mostAllHeat && (!known || o.Nodes == nil) {
		refuse(w, http.StatusBadRequest,
			fmt.Errorf("a table of all %d nodes has %d cells; expected nodes= with at most %d of them", n, n*n, mostHeat))
		return
	}
	if id == "" {
		by, err := transportOf(r)
		if err != nil {
			refuse(w, http.StatusBadRequest, err)
			return
		}
		reply(w, h.view.Heat(f, by, names))
		return
	}
	heat, ok := h.view.SweepHeat(f, id)
	switch {
	case names != nil:
		refuse(w, http.StatusBadRequest,
			errors.New("order and nodes: expected only one of them, since an order has its own nodes"))
	case !ok:
		refuse(w, http.StatusNotFound, ErrUnknown)
	default:
		reply(w, heat)
	}
}

// transportOf is the one that is asked for, TCP where none is.
func transportOf(r *http.Request) (fleet.Transport, error) {
	by := fleet.Transport(r.URL.Query().Get("by"))
	if by == "tcp" {
		by = fleet.TCP
	}
	if !slices.Contains(fleet.Transports(), by) {
		return by, fmt.Errorf("by %.40q: expected tcp, %s or %s", by, fleet.RDMA, fleet.NCCL)
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
		return nil, errors.New("nodes: the list is too long")
	}
	hosts, err := cluster.NewBudget(cluster.Limits{Names: mostHeat}, nil).ParseHosts(list)
	if err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	if len(hosts) > mostHeat {
		return nil, fmt.Errorf("nodes: %d; at most %d can be asked for by name", len(hosts), mostHeat)
	}
	names := make([]fleet.Name, len(hosts))
	for i, s := range hosts {
		if names[i], err = fleet.ParseName(s); err != nil {
			return nil, err
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

func (h *Hub) getLink(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	from, err1 := fleet.ParseName(q.Get("from"))
	to, err2 := fleet.ParseName(q.Get("to"))
	if err := errors.Join(err1, err2); err != nil || from == to {
		refuse(w, http.StatusBadRequest, errors.Join(errors.New("from and to must name two nodes"), err))
		return
	}
	by, err := transportOf(r)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
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
	h.view.ask(func(s *health.History) { out.Way, out.Ways = wayOf(s, from, to, by, q.Get("rail")) })
	there, back := h.link(from, to, out.Way), h.link(to, from, out.Way)
	if len(there)+len(back) == 0 { // a node that is gone may have left a history
		for _, n := range []fleet.Name{from, to} {
			if _, ok := h.view.Node(n); !ok {
				refuse(w, http.StatusNotFound, fmt.Errorf("node %s never joined; busbar nodes lists those that did", n))
				return
			}
		}
	}
	out.Out, out.OutChanges, out.OutDaily = samples(there), health.Changes(there), health.DailySlow(there)
	out.Back, out.BackChanges, out.BackDaily = samples(back), health.Changes(back), health.DailySlow(back)
	reply(w, out)
}

// link is the history of one direction, the oldest first.
func (h *Hub) link(from, to fleet.Name, over health.Way) (list []health.Point) {
	h.view.ask(func(s *health.History) { list = s.Pair(string(from), string(to), over) })
	return list
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

func (h *Hub) getFindings(w http.ResponseWriter, _ *http.Request) {
	active := []finding.Finding{}
	for _, f := range h.view.Findings() {
		if f.Cleared.IsZero() {
			active = append(active, f)
		}
	}
	past := h.view.Past()
	reply(w, fleet.FindingsReply{Findings: active, Past: append([]finding.Finding{}, past...)})
}

func (h *Hub) getCluster(w http.ResponseWriter, r *http.Request) {
	c := h.Cluster()
	var b bytes.Buffer
	var err error
	kind := "application/json; charset=utf-8"
	if r.URL.Query().Get("format") == "yaml" {
		kind = "application/yaml; charset=utf-8"
		err = clusterfile.Write(&b, c)
	} else {
		err = json.NewEncoder(&b).Encode(struct {
			*cluster.Document
			Summary cluster.Summary `json:"summary"`
		}{c.Document(), c.Summary()})
	}
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(b.Bytes()) // the client has gone
}

// mostWait is how long a request may wait for an order to end.
const mostWait = time.Minute

func (h *Hub) getOrder(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if text := r.URL.Query().Get("wait"); text != "" {
		s, err := strconv.ParseFloat(text, 64)
		if err != nil || !(s >= 0 && s <= mostWait.Seconds()) {
			refuse(w, http.StatusBadRequest, fmt.Errorf("wait %.20q: expected seconds from 0 to %g", text, mostWait.Seconds()))
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), time.Duration(s*float64(time.Second)))
		defer cancel()
		_ = h.until(ctx, func() bool { return h.over(id) }) // what is, is told
	}
	s, ok := h.view.Order(id, h.cfg.Now())
	if !ok {
		refuse(w, http.StatusNotFound, ErrUnknown)
		return
	}
	out := fleet.OrderReply{OrderState: s}
	if s.Sweep > 0 {
		out.Verdict, _ = h.Verdict(id) // forgotten in this moment
	}
	reply(w, out)
}

// errNoOrder is the error of a body without an order; an order without any field is {}.
var errNoOrder = errors.New(
	`the body has no order; expected an object, such as {"what": {"measure": "pairs"}}, or {} for all pairs once`)

func (h *Hub) postOrder(w http.ResponseWriter, r *http.Request, by string) {
	var o fleet.Order
	data, err := io.ReadAll(r.Body)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		given := &o
		switch err = d.Decode(&given); {
		case errors.Is(err, io.EOF):
			err = errNoOrder
		case err == nil && given == nil:
			err = errNoOrder // null
		case err == nil && d.More():
			err = errors.New("unexpected data after the order")
		}
	}
	if err != nil {
		var big *http.MaxBytesError
		if errors.As(err, &big) {
			refuse(w, http.StatusRequestEntityTooLarge, err)
			return
		}
		refuse(w, http.StatusBadRequest, fmt.Errorf("the order: %s", strings.TrimPrefix(err.Error(), "json: ")))
		return
	}
	o.By = by
	Fill(&o)
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	s, err := h.Give(ctx, o)
	var refused RefusedError
	switch {
	case errors.As(err, &refused):
		refuse(w, http.StatusBadRequest, err)
	case err != nil:
		refuse(w, http.StatusServiceUnavailable, err)
	default:
		replyCode(w, http.StatusCreated, fleet.OrderReply{OrderState: s})
	}
}

func (h *Hub) deleteOrder(w http.ResponseWriter, r *http.Request, by string) {
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	s, err := h.Cancel(ctx, r.PathValue("id"), by)
	switch {
	case errors.Is(err, ErrUnknown):
		refuse(w, http.StatusNotFound, err)
	case errors.Is(err, ErrOver):
		refuse(w, http.StatusConflict, err)
	case err != nil:
		refuse(w, http.StatusServiceUnavailable, err)
	default:
		reply(w, fleet.OrderReply{OrderState: s})
	}
}

func (h *Hub) deleteNode(w http.ResponseWriter, r *http.Request, by string) {
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	switch err := h.Forget(ctx, fleet.Name(r.PathValue("name")), by); {
	case errors.Is(err, ErrNoNode):
		refuse(w, http.StatusNotFound, err)
	case errors.Is(err, ErrBeats):
		refuse(w, http.StatusConflict, err)
	case err != nil:
		refuse(w, http.StatusServiceUnavailable, err)
	default:
		reply(w, map[string]string{"forgotten": r.PathValue("name")})
	}
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
