package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/plan"
	"busbar.dev/unit"
	"busbar.dev/workload"
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
	Cluster string           `json:"cluster"`
	Job     workload.Summary `json:"job"` // on the most nodes
	GPU     string           `json:"gpu"`
	Strong  bool             `json:"strong"` // the work is divided, not repeated
	Rows    []ScaleRow       `json:"rows"`   // by nodes
	Skipped []scaleSkip      `json:"skipped"`
	Knee    int              `json:"knee_nodes,omitempty"` // the last doubling that gives at least 1.6 times as much, where it is reached

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

	Parallel  workload.Split `json:"parallel"`
	Micro     int64          `json:"micro_batch"`
	Recompute string         `json:"recompute"`
	// Why says what is longer or shorter than on fewer nodes where the rate of a GPU changes.
	Why string `json:"why,omitempty"`
}

// scaleSkip is a number of nodes that the job does not run on, or does not fit.
type scaleSkip struct {
	Nodes  int    `json:"nodes"`
	Reason string `json:"reason"`
}

// kneeGain is how much a doubling must give at least.
const kneeGain = 1.6

// Run prices every doubling.
func (q Scale) Run(ctx context.Context, env Env) (doc *ScaleDoc, err error) {
	defer prepared(&q, &env, &doc, &err)()
	if err != nil {
		return nil, err
	}
	if q.Compare != "" || q.Layout != "" {
		return nil, errors.New("scale varies the layout; expected --nodes instead of -l and --compare")
	}
	first, least, err := q.bounds()
	if err != nil {
		return nil, err
	}
	t, err := q.Job.read(ctx, &env, least)
	if err != nil {
		return nil, err
	}
	if split, _ := q.Parallel.split(); split.DP > 0 {
		return nil, errors.New("--parallel dp: replicas are what scale varies; leave dp out")
	}
	hosts, per := perHost(t.cluster)
	if devices, _ := parseDevices(q.Devices); len(devices) > 0 {
		per = len(devices)
	}
	most := cmp.Or(least, hosts*len(t.cluster.Hosts))
	if most < 4 {
		if err := unread(&q, "every", "up to 3 nodes every number is there anyway"); err != nil {
			return nil, err
		}
	}
	fails, err := q.Failures.read()
	if err != nil {
		return nil, err
	}
	defer env.working("pricing the step on more and more nodes")()
	d := &ScaleDoc{
		Cluster: t.cluster.Name, Strong: q.Global > 0, Pictures: t.job.Model.Pictures(),
		Rows: []ScaleRow{}, Skipped: []scaleSkip{},
	}
	// All numbers of nodes have the framework of the most, and with weak scaling its batch per GPU.
	whole, err := t.resolve(ctx, t.wholeNodes(most, per))
	if err != nil {
		return nil, err
	}
	if err := unused(&q.Job, whole); err != nil {
		return nil, err
	}
	d.Job, d.GPU = whole.summary(), whole.model.Title
	t.keepFramework(whole)
	each := int64(0)
	if !d.Strong {
		each = whole.job.GlobalBatch / int64(whole.Ranks)
	}
	d.price(ctx, &env, t, fails, whole, first, most, each, q.Every)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d.mark()
	return d, nil
}

// bounds are the fewest and the most nodes that are asked about; 0 is all there are.
func (q *Scale) bounds() (first, most int, err error) {
	from, to, ok := strings.Cut(q.Nodes, "-")
	switch {
	case q.Nodes == "" || q.Nodes == "all":
		return 1, 0, nil
	case !ok:
		from, to = "1", from
	}
	first, err = strconv.Atoi(from)
	if err == nil {
		most, err = strconv.Atoi(to)
	}
	if err != nil || first < 1 || most < first {
		return 0, 0, fmt.Errorf("--nodes %.40q; expected 1-N, such as 1-64, or all", q.Nodes)
	}
	return first, most, nil
}

// wholeNodes is so many nodes with so many GPUs each.
func (t *training) wholeNodes(nodes, gpus int) shape {
	return shape{nodes: nodes, gpus: gpus, text: fmt.Sprintf("%dx%d", nodes, gpus), devices: t.shapes[0].devices}
}

// everyNodes is up to where every number of nodes is priced.
const everyNodes = 64

// price prices the first, twice as many, … and the most nodes; or every number while there are few. each is the batch
// of a GPU; 0 is one batch for all.
func (d *ScaleDoc) price(ctx context.Context, env *Env, t *training, fails failing, whole *pricedStep, first, most int,
	each int64, every bool,
) {
	per := whole.Ranks / most
	next := func(n int) int {
		if every && n < everyNodes {
			return n + 1
		}
		return min(2*n, most)
	}
	total := 1
	for n := first; n < most; n = next(n) {
		total++
	}
	var before *pricedStep
	for n, done := first, 0; ctx.Err() == nil; n = next(n) {
		env.steps(done, total)
		done++
		p, err := whole, error(nil)
		if n < most {
			own := *t
			if each > 0 {
				own.job.GlobalBatch = each * int64(n*per)
			}
			p, err = own.resolve(ctx, t.wholeNodes(n, per))
		}
		var row ScaleRow
		if err == nil {
			row, err = scaleRow(p, before, n, fails)
		}
		if err != nil {
			d.Skipped = append(d.Skipped, scaleSkip{Nodes: n, Reason: err.Error()})
		} else {
			before, d.Rows = p, append(d.Rows, row)
		}
		if n >= most {
			env.steps(done, total)
			return
		}
	}
}

// worthReason is the share by which the rate of a GPU must differ from that on fewer nodes for the row to say why.
const worthReason = 0.03

// scaleRow is a row, beside that of fewer nodes.
func scaleRow(p, before *pricedStep, nodes int, fails failing) (ScaleRow, error) {
	margin := unit.Span(p.gpu.Margin(p.job))
	row := ScaleRow{
		Nodes: nodes, GPUs: p.Ranks, Step: p.Step, Exposed: p.Exposed, Tokens: p.TokensPerSecond(),
		PerGPU: p.TokensPerSecond() / float64(p.Ranks), MFU: p.MFU,
		Low: p.Step / margin, High: p.Step * margin, Memory: p.Memory.Total().Bytes(), Has: p.model.Memory, Fits: true,
		Bottleneck: p.limit().Kind, Parallel: p.job.Split, Micro: p.job.MicroBatch, Recompute: string(p.job.Recompute),
	}
	if before != nil {
		was := before.TokensPerSecond() / float64(before.Ranks)
		if gain := row.PerGPU/was - 1; math.Abs(gain) >= worthReason {
			row.Why = fmt.Sprintf("%+.0f%% per GPU: %s", 100*gain, plan.Differences(before.Result, p.Result))
		}
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

// mark works out efficiencies against the first row, and the knee.
func (d *ScaleDoc) mark() {
	for i := range d.Rows {
		r, first := &d.Rows[i], &d.Rows[0]
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
