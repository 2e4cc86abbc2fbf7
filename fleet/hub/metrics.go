package hub

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"busbar.dev/doctor/rates"
	"busbar.dev/fleet"
)

// emit takes one value of a metric; labels are names and values in turn.
type emit func(v float64, labels ...string)

// metric is one that Prometheus gets; those called _total are counters, _info is a fact, the others are gauges.
type metric struct {
	name, help string
	values     func(emit)
}

// units are the ends of names that say in what a metric counts.
var units = []string{"bytes_per_second", "seconds", "ratio"}

// write writes a metric in Prometheus' text format, version 0.0.4, or as OpenMetrics 1.0, which names a counter without
// its _total, knows facts, and states units. A value that is no number is left out.
func (m metric) write(w io.Writer, open bool) (err error) {
	name, kind := m.name, "gauge"
	if base, ok := strings.CutSuffix(name, "_total"); ok {
		if kind = "counter"; open {
			name = base
		}
	}
	if base, ok := strings.CutSuffix(name, "_info"); ok && open {
		name, kind = base, "info"
	}
	_, err = fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, m.help, name, kind)
	if i := slices.IndexFunc(units, func(u string) bool { return strings.HasSuffix(name, "_"+u) }); open && i >= 0 &&
		err == nil {
		_, err = fmt.Fprintf(w, "# UNIT %s %s\n", name, units[i])
	}
	m.values(func(v float64, labels ...string) {
		var list []string
		for pair := range slices.Chunk(labels, 2) {
			list = append(list, fmt.Sprintf("%s=\"%s\"", pair[0], escape.Replace(pair[1])))
		}
		name := m.name
		if len(list) > 0 {
			name += "{" + strings.Join(list, ",") + "}"
		}
		if err == nil && !math.IsNaN(v) {
			_, err = fmt.Fprintln(w, name, strconv.FormatFloat(v, 'g', -1, 64))
		}
	})
	return err
}

var escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// by is a count by one label.
func by[K cmp.Ordered](label string, count map[K]int) func(emit) {
	return func(e emit) {
		for _, k := range slices.Sorted(maps.Keys(count)) {
			e(float64(count[k]), label, fmt.Sprint(k))
		}
	}
}

// Metrics writes what Prometheus asks for, as OpenMetrics where it asks for that.
func (h *Hub) Metrics(ctx context.Context, w io.Writer, open bool) error {
	list := h.streamMetrics(ctx)
	if _, reading := h.Reading(); !reading { // else it is not what is
		list = slices.Concat(list, h.nodeMetrics(), h.orderMetrics(), jobMetrics(h.jobs.last.Load()))
	}
	for _, m := range list {
		if err := m.write(w, open); err != nil {
			return err
		}
	}
	if !open {
		return nil
	}
	_, err := io.WriteString(w, "# EOF\n")
	return err
}

func (h *Hub) nodeMetrics() []metric {
	nodes := h.Nodes()
	count := map[fleet.NodeStatus]int{fleet.NodeUp: 0, fleet.NodeUnreachable: 0, fleet.NodeLeft: 0, fleet.NodeStarting: 0}
	for _, n := range nodes {
		count[n.State]++
	}
	nodes = slices.DeleteFunc(nodes, func(n fleet.NodeState) bool { return n.State == fleet.NodeLeft })
	each := func(name, help string, of func(fleet.NodeState) float64) metric {
		return metric{name, help, func(e emit) {
			for _, n := range nodes {
				e(of(n), "node", string(n.Name))
			}
		}}
	}
	flag := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	return []metric{
		{"busbar_nodes", "Nodes by state.", by("state", count)},
		each("busbar_node_up", "Whether a node sends heartbeats (1) or not (0).",
			func(n fleet.NodeState) float64 { return flag(n.State == fleet.NodeUp) }),
		each("busbar_node_heartbeat_age_seconds", "Time since a node's last heartbeat; -1 for none yet.",
			func(n fleet.NodeState) float64 { return n.AgeS }),
		each("busbar_node_unhealthy", "Whether there is a reason to keep jobs off a node.",
			func(n fleet.NodeState) float64 { return flag(n.Unhealthy) }),
		{"busbar_node_pair_rate_bytes_per_second", "Rates of the pairs that a node is in, as last measured.", func(e emit) {
			for _, by := range fleet.Transports() {
				rates := h.view.nodeRates(by)
				for _, n := range nodes {
					if r, ok := rates[n.Name]; ok {
						e(r[0], "node", string(n.Name), "stat", "min", "transport", by.Text())
						e(r[1], "node", string(n.Name), "stat", "median", "transport", by.Text())
					}
				}
			}
		}},
	}
}

func (h *Hub) orderMetrics() []metric {
	return []metric{
		{"busbar_parts_total", "Parts of orders that this server ran, by result.", func(e emit) {
			for k := range h.counts.parts {
				e(float64(h.counts.parts[k].Load()), "result", partKind(k).String())
			}
		}},
		{"busbar_findings", "Open findings, by severity and kind.", func(e emit) {
			count := map[[2]string]int{}
			for _, f := range h.view.Findings() {
				count[[2]string{f.Severity.String(), string(f.Kind)}]++
			}
			for k, n := range count {
				e(float64(n), "severity", k[0], "kind", k[1])
			}
		}},
		{"busbar_alerts_total", "Alerts by whether webhooks accepted them.", func(e emit) {
			e(float64(h.counts.alerted.Load()), "result", "taken")
			e(float64(h.counts.refused.Load()), "result", "refused")
		}},
	}
}

// streamMetrics are those of the stream.
func (h *Hub) streamMetrics(ctx context.Context) []metric {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	lag := math.NaN()
	if last, err := h.cfg.Bus.Last(ctx); err == nil {
		lag = float64(last - min(h.view.Seq(), last))
	}
	return []metric{
		{"busbar_build_info", "The version of this server.", func(e emit) {
			e(1, "version", h.cfg.Version, "goversion", runtime.Version())
		}},
		{"busbar_health_evaluations_total", "How often this server looked for nodes that fall behind.", func(e emit) {
			e(float64(h.counts.looked.Load()))
		}},
		{"busbar_stream_lag", "Stream entries not yet read.", func(e emit) { e(lag) }},
		{"busbar_stream_ignored_total", "Stream entries that were rejected, by reason.", by("reason", h.view.Ignored())},
	}
}

// jobMetrics are those of jobs' collectives. Labels are those of NCCL's Inspector, where it has one; job is Prometheus'
// own.
func jobMetrics(r *JobsReply) []metric {
	row := func(name, help string, of func(r *rates.Row) float64) metric {
		return metric{"busbar_collective_" + name, help, func(e emit) {
			for i := range r.Jobs {
				for k := range r.Jobs[i].Rows {
					if x := &r.Jobs[i].Rows[k]; x.Transfer > 0 {
						e(of(x), "slurm_job_id", r.Jobs[i].Name, "comm_name", x.Group, "comm", x.Comm, "n_nodes", fmt.Sprint(x.Nodes),
							"nranks", fmt.Sprint(x.Ranks), "collective", x.Op, "message_size", fmt.Sprint(int64(1)<<x.Class), "algo_proto",
							strings.Trim(x.Algo+"_"+x.Proto, "_"))
					}
				}
			}
		}}
	}
	return []metric{
		row("transfer_seconds", "Median transfer of a job's collective in the last minute.",
			func(r *rates.Row) float64 { return r.Transfer.Seconds() }),
		row("busbw_bytes_per_second", "Bus bandwidth of the median transfer.",
			func(r *rates.Row) float64 { return float64(r.BusBW) }),
		row("expected_seconds", "Transfer that predict expects on the fleet's topology; none where it cannot.",
			func(r *rates.Row) float64 {
				if r.Expected == nil {
					return math.NaN()
				}
				return r.Expected.Time.Seconds()
			}),
		row("expected_ratio", "Measured transfer over the predicted one: 1 is as expected, 2 twice as slow.",
			func(r *rates.Row) float64 {
				if r.Expected == nil || r.Expected.Time <= 0 {
					return math.NaN()
				}
				return r.Transfer.Seconds() / r.Expected.Time.Seconds()
			}),
		{
			"busbar_job_late_ratio", "Share of the last minute that the median rank waited for the rank that comes last; " +
				"none where no rank is late.", func(e emit) {
				for _, j := range r.Jobs {
					if l := j.Late; l != nil {
						e(l.Share, "slurm_job_id", j.Name, "rank", fmt.Sprint(l.Ranks[0]), "node", l.Host)
					}
				}
			},
		},
	}
}
