package hub

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/osdep"
)

// perPair is the number of nodes up to which every pair has a figure of its own: their number
// grows with the square.
const perPair = 16

// page writes metrics in Prometheus' text format, version 0.0.4.
type page struct {
	w   io.Writer
	err error
}

// head begins a metric.
func (p *page) head(name, kind, help string) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
}

// line is one figure; labels come as names and values in turn.
func (p *page) line(name string, v float64, labels ...string) {
	if p.err != nil {
		return
	}
	var text strings.Builder
	for i := 0; i+1 < len(labels); i += 2 {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, "%s=\"%s\"", labels[i], escape.Replace(labels[i+1]))
	}
	if text.Len() > 0 {
		name += "{" + text.String() + "}"
	}
	_, p.err = fmt.Fprintf(p.w, "%s %s\n", name, strconv.FormatFloat(v, 'g', -1, 64))
}

var escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func (p *page) one(name, kind, help string, v float64) {
	p.head(name, kind, help)
	p.line(name, v)
}

// Metrics writes what Prometheus asks for.
func (h *Hub) Metrics(ctx context.Context, w io.Writer) error {
	p := &page{w: w}
	if _, reading := h.Reading(); !reading { // else it is not what is
		h.nodeMetrics(p)
		h.orderMetrics(p)
		h.findingMetrics(p)
		h.jobMetrics(p)
	}
	h.busMetrics(ctx, p)
	ownMetrics(p)
	return p.err
}

func (h *Hub) nodeMetrics(p *page) {
	nodes := h.Nodes()
	count := map[fleet.NodeStatus]int{fleet.NodeUp: 0, fleet.NodeUnreachable: 0, fleet.NodeLeft: 0, fleet.NodeStarting: 0}
	for _, n := range nodes {
		count[n.State]++
	}
	p.head("busbar_nodes", "gauge", "Nodes by state.")
	for _, s := range slices.Sorted(maps.Keys(count)) {
		p.line("busbar_nodes", float64(count[s]), "state", string(s))
	}
	each := func(name, help string, of func(fleet.NodeState) (float64, bool)) {
		p.head(name, "gauge", help)
		for _, n := range nodes {
			if v, ok := of(n); ok {
				p.line(name, v, "node", string(n.Name))
			}
		}
	}
	flag := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	each("busbar_node_up", "Whether a node sends heartbeats (1) or not (0).", func(n fleet.NodeState) (float64, bool) {
		return flag(n.State == fleet.NodeUp), n.State != fleet.NodeLeft
	})
	each("busbar_node_beat_age_seconds", "Time since a node's last heartbeat.",
		func(n fleet.NodeState) (float64, bool) { return n.AgeS, n.AgeS >= 0 && n.State != fleet.NodeLeft })
	each("busbar_node_bad", "Whether there is a reason to keep jobs off a node.",
		func(n fleet.NodeState) (float64, bool) { return flag(n.Unhealthy), n.State != fleet.NodeLeft })
	each("busbar_node_load", "The processors' one-minute load.",
		func(n fleet.NodeState) (float64, bool) { return n.Load, n.State == fleet.NodeUp })
	each("busbar_node_waiting_news", "Events of a node that the store has not acknowledged.",
		func(n fleet.NodeState) (float64, bool) { return float64(n.Waiting), n.State == fleet.NodeUp })
	p.head("busbar_node_pair_rate_bytes_per_second", "gauge", "Rates of the pairs that a node is in, as last measured.")
	for _, by := range fleet.Transports() {
		rates := h.view.nodeRates(by)
		for _, n := range nodes {
			if r, ok := rates[n.Name]; ok && n.State != fleet.NodeLeft {
				p.line("busbar_node_pair_rate_bytes_per_second", r[0], "node", string(n.Name), "stat", "min", "transport",
					by.Text())
				p.line("busbar_node_pair_rate_bytes_per_second", r[1], "node", string(n.Name), "stat", "median", "transport",
					by.Text())
			}
		}
	}
	if count[fleet.NodeUp]+count[fleet.NodeUnreachable]+count[fleet.NodeStarting] > perPair {
		return
	}
	p.head("busbar_pair_rate_bytes_per_second", "gauge",
		"Rate of a direction of a pair, as last measured; in small fleets only.")
	for _, by := range fleet.Transports() {
		heat := h.view.Heat(fleet.FigureRate, by, nil)
		for i, row := range heat.Values {
			for j, v := range row {
				if v != nil {
					p.line("busbar_pair_rate_bytes_per_second", *v*1e9, "from", string(heat.Names[i]), "to", string(heat.Names[j]),
						"transport", by.Text())
				}
			}
		}
	}
}

func (h *Hub) orderMetrics(p *page) {
	count := map[fleet.State]int{fleet.Waiting: 0, fleet.Running: 0, fleet.Done: 0, fleet.Cancelled: 0, fleet.Failed: 0}
	for _, o := range h.view.Orders(h.cfg.Now()) {
		count[o.State]++
	}
	p.head("busbar_orders", "gauge", "Orders by state, of those that are remembered.")
	for _, s := range slices.Sorted(maps.Keys(count)) {
		p.line("busbar_orders", float64(count[s]), "state", string(s))
	}
	p.head("busbar_parts_total", "counter", "Parts of orders that this server ran, by result.")
	for k := range h.counts.parts {
		p.line("busbar_parts_total", float64(h.counts.parts[k].Load()), "result", partKind(k).String())
	}
}

func (h *Hub) findingMetrics(p *page) {
	count := map[[2]string]int{}
	for _, f := range h.view.Findings() {
		if f.Cleared.IsZero() {
			count[[2]string{f.Severity.String(), string(f.Kind)}]++
		}
	}
	p.head("busbar_findings", "gauge", "Open findings, by severity and kind.")
	for _, k := range slices.SortedFunc(maps.Keys(count), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		p.line("busbar_findings", float64(count[k]), "severity", k[0], "kind", k[1])
	}
	p.head("busbar_alerts_total", "counter", "Alerts by whether webhooks accepted them.")
	p.line("busbar_alerts_total", float64(h.counts.alerted.Load()), "result", "taken")
	p.line("busbar_alerts_total", float64(h.counts.refused.Load()), "result", "refused")
	p.one("busbar_looks_total", "counter", "Number of health evaluations.", float64(h.counts.looks.Load()))
	p.one("busbar_look_seconds_total", "counter", "What that took.", float64(h.counts.lookNS.Load())/1e9)
}

func (h *Hub) busMetrics(ctx context.Context, p *page) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	seq := h.view.Seq()
	p.one("busbar_stream_read", "gauge", "The number of the last entry of the stream that was read.", float64(seq))
	if last, err := h.cfg.Bus.Last(ctx); err == nil {
		p.one("busbar_stream_lag", "gauge", "Stream entries not yet read.", float64(last-min(seq, last)))
	}
	p.head("busbar_news_ignored_total", "counter", "Stream entries that were rejected, by reason.")
	ignored := h.view.Ignored()
	for _, k := range slices.Sorted(maps.Keys(ignored)) {
		p.line("busbar_news_ignored_total", float64(ignored[k]), "reason", k)
	}
	p.one("busbar_news_unsaid_total", "counter", "Failed attempts to store events.", float64(h.counts.unsent.Load()))
	p.one("busbar_deaf_seconds_total", "counter", "Seconds in which heartbeats of nodes were lost on this server's side.",
		float64(h.counts.deaf.Load()))
	p.one("busbar_store_missing", "gauge", "Events that the store had acknowledged and does not have.",
		float64(countMissing(h.Missing())))
	h.live.mu.Lock()
	beats := h.live.count
	h.live.mu.Unlock()
	p.one("busbar_beats_total", "counter", "Beats that came.", float64(beats))
	leads := 0.0
	if h.Leads() {
		leads = 1
	}
	p.one("busbar_leads", "gauge", "Whether this server runs orders (1) or stands by (0).", leads)
}

// ownMetrics are what the process itself takes, under the names that other exporters use.
func ownMetrics(p *page) {
	if seconds, ok := osdep.CPUSeconds(); ok {
		p.one("process_cpu_seconds_total", "counter", "Processor time of this process.", seconds)
	}
	if data, err := os.ReadFile("/proc/self/statm"); err == nil {
		if f := strings.Fields(string(data)); len(f) > 1 {
			if n, err := strconv.ParseFloat(f[1], 64); err == nil {
				p.one("process_resident_memory_bytes", "gauge", "Resident memory of this process.", n*float64(os.Getpagesize()))
			}
		}
	}
	p.one("go_goroutines", "gauge", "Goroutines of this process.", float64(runtime.NumGoroutine()))
}
