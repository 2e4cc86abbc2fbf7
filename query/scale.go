package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/step"
	"busbar.dev/unit"
)

// Scale asks how a job scales from one node to many: tokens per second and efficiency against the fewest nodes that it
// fits, with the knee marked. Every node gets as much work (weak scaling); with a global batch the work is divided
// (strong scaling).
type Scale struct {
	Job
	Failures
	Nodes string `placeholder:"1-N" help:"From one node to so many: 1-64, 64, or all (default: all)."`
	Every bool   `help:"Every number of nodes, 3 and 5 too, up to 64; beyond that doublings (default: doublings)."`
}

// ScaleDoc is the answer to Scale.
type ScaleDoc struct {
	Cluster string      `json:"cluster"`
	Model   string      `json:"model"`
	Strong  bool        `json:"strong"` // the work is divided, not repeated
	Rows    []ScaleRow  `json:"rows"`   // by nodes
	Skipped []scaleSkip `json:"skipped"`
	Knee    int         `json:"knee_nodes"` // the last doubling that gives at least 1.6 times as much; 0: not reached

	Pictures bool `json:"samples,omitempty"` // rates count samples, not tokens
	Noted
}

// ScaleRow is the job on some nodes.
type ScaleRow struct {
	Nodes      int       `json:"nodes"`
	GPUs       int       `json:"gpus"`
	Step       unit.Span `json:"step_s"`
	Exposed    unit.Span `json:"exposed_comm_s"`
	Tokens     float64   `json:"tokens_per_s"`
	PerGPU     float64   `json:"tokens_per_s_per_gpu"`
	MFU        float64   `json:"mfu"`
	Low        unit.Span `json:"low_s"` // the error bar of the step
	High       unit.Span `json:"high_s"`
	Efficiency float64   `json:"efficiency"`
	Goodput    float64   `json:"goodput,omitempty"`             // the share of time that goes into steps that count
	Useful     float64   `json:"useful_tokens_per_s,omitempty"` // tokens of those steps; efficiency is then of them
	Fits       bool      `json:"fits"`
	Bottleneck string    `json:"bottleneck"`
	Knee       bool      `json:"knee,omitempty"`

	Memory unit.Bytes `json:"memory_bytes"` // of a GPU
	Has    unit.Bytes `json:"gpu_memory_bytes"`

	Parallel string `json:"parallel"`
	Misfit   string `json:"misfit,omitempty"` // why it does not fit
}

// scaleSkip is a number of nodes that the job does not run on.
type scaleSkip struct {
	Nodes  int    `json:"nodes"`
	Reason string `json:"reason"`
}

// kneeGain is how much a doubling must give at least.
const kneeGain = 1.6

// Run prices every doubling.
func (q Scale) Run(ctx context.Context, env Env) (doc *ScaleDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := prepare(&q); err != nil {
		return nil, err
	}
	if q.Compare != "" || q.Layout != "" {
		return nil, errors.New("scale varies the layout; expected --nodes instead of -l and --compare")
	}
	t, err := q.Job.read(ctx, &env)
	if err != nil {
		return nil, err
	}
	if t.job.Split.DP > 0 {
		return nil, errors.New("--parallel dp: replicas are what scale varies; leave dp out")
	}
	per := len(t.cluster.TypeOf(0).Of(cluster.GPU))
	most, err := q.most(len(t.cluster.Hosts))
	if err != nil {
		return nil, err
	}
	if most > len(t.cluster.Hosts) {
		quiet := env // which was told of the cluster already
		quiet.Note, quiet.Verbose = nil, nil
		if t.cluster, err = q.load(ctx, &quiet, []shape{{nodes: most, gpus: per}}); err != nil {
			return nil, err
		}
	}
	fails, err := q.Failures.read()
	if err != nil {
		return nil, err
	}
	defer env.working("pricing the step on more and more nodes")()
	d := &ScaleDoc{
		Cluster: t.cluster.Name, Model: t.job.Model.Name, Strong: q.Global > 0, Pictures: t.job.Model.Pictures(),
		Rows: []ScaleRow{}, Skipped: []scaleSkip{},
	}
	d.price(ctx, &env, t, fails, per, most, q.Every)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(d.Rows) == 0 {
		return nil, fmt.Errorf("the job runs on none of 1 to %d nodes: %s", most, d.Skipped[0].Reason)
	}
	d.mark()
	return d, nil
}

// most is the largest number of nodes that is asked about.
func (q *Scale) most(all int) (int, error) {
	if q.Nodes == "" || q.Nodes == "all" {
		return all, nil
	}
	n, err := strconv.Atoi(strings.TrimPrefix(q.Nodes, "1-"))
	if err != nil || n < 1 {
		return 0, fmt.Errorf("--nodes %.40q; expected 1-N, such as 1-64, or all", q.Nodes)
	}
	return n, nil
}

// everyNodes is up to where every number of nodes is priced.
const everyNodes = 64

// price prices 1, 2, 4, … and the most nodes; or every number while there are few.
func (d *ScaleDoc) price(ctx context.Context, env *Env, t *training, fails failing, per, most int, every bool) {
	next := func(n int) int {
		if every && n < everyNodes {
			return n + 1
		}
		return min(2*n, most)
	}
	total := 1
	for n := 1; n < most; n = next(n) {
		total++
	}
	for n, done := 1, 0; ctx.Err() == nil; n = next(n) {
		env.steps(done, total)
		done++
		if row, err := scaleRow(t, fails, n, per); err != nil {
			d.Skipped = append(d.Skipped, scaleSkip{Nodes: n, Reason: err.Error()})
		} else {
			d.Rows = append(d.Rows, row)
		}
		if n >= most {
			env.steps(done, total)
			return
		}
	}
}

// scaleRow is the job on so many nodes with so many GPUs each.
func scaleRow(t *training, fails failing, nodes, per int) (ScaleRow, error) {
	p, err := t.price(t.cluster, shape{nodes: nodes, gpus: per, text: fmt.Sprintf("%dx%d", nodes, per)})
	if err != nil {
		return ScaleRow{}, err
	}
	margin := unit.Span(step.Margin(p.job, p.model))
	row := ScaleRow{
		Nodes: nodes, GPUs: p.Ranks, Step: p.Step, Exposed: p.Exposed, Tokens: p.TokensPerSecond(),
		PerGPU: p.TokensPerSecond() / float64(p.Ranks), MFU: p.MFU,
		Low: p.Step / margin, High: p.Step * margin, Memory: p.Memory.Total().Bytes(), Has: p.model.Memory, Fits: p.fits(),
		Bottleneck: p.limit().Kind, Parallel: p.job.Split.String(), Misfit: p.memoryShortfall(),
	}
	if fails.asked {
		g, err := fails.goodput(p, nodes, p.Step, p.TokensPerSecond())
		if err != nil {
			return ScaleRow{}, err
		}
		row.Goodput, row.Useful = g.Share, g.Share*p.Tokens/p.Step.Seconds()
	}
	return row, nil
}

// mark works out efficiencies against the first row that fits, or the first where none does, and the knee.
func (d *ScaleDoc) mark() {
	base := max(0, slices.IndexFunc(d.Rows, func(r ScaleRow) bool { return r.Fits }))
	for i := range d.Rows {
		r, first := &d.Rows[i], &d.Rows[base]
		r.Efficiency = r.Counted() / float64(r.Nodes) / (first.Counted() / float64(first.Nodes))
		half := slices.IndexFunc(d.Rows[:i], func(x ScaleRow) bool { return 2*x.Nodes == r.Nodes })
		if half < 0 {
			half = i - 1
			if i == 0 || r.Nodes < 2*d.Rows[half].Nodes && i+1 < len(d.Rows) {
				continue // between doublings
			}
		}
		if d.Knee > 0 {
			continue
		}
		was := &d.Rows[half]
		share := r.Counted() / was.Counted() / (float64(r.Nodes) / float64(was.Nodes)) // of a full gain
		if share < kneeGain/2 {
			d.Knee, was.Knee = was.Nodes, true
		}
	}
}

// Counted is the tokens per second that count: those that failures leave, where they were asked about.
func (r *ScaleRow) Counted() float64 {
	if r.Goodput > 0 {
		return r.Useful
	}
	return r.Tokens
}
