package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/texttab"
	"busbar.dev/plan/campaign"
	"busbar.dev/report"
	"busbar.dev/unit"
)

type scaleCmd struct {
	common
	jobFlags
	failFlags
	Nodes  int    `least:"1" placeholder:"N" help:"The most nodes; all of the cluster's without it."`
	Output string `short:"o" placeholder:"FILE" help:"Also write a picture: FILE.svg."`
}

// Help ends with examples.
func (scaleCmd) Help() string {
	return "How a job scales from one node to N: tokens a second and efficiency against the smallest number of nodes that it fits, with the knee marked: the last doubling that still gives at least 1.6 times as much. " +
		"Every node gets as much work (weak scaling); with --global-batch the work is divided (strong scaling). Replicas fill what --parallel leaves. With --goodput or one of the figures about failures, tokens are those that count: more GPUs fail more often.\n\n" +
		"Examples:\n" +
		"  busbar scale -c dgx-h100 -m llama2-7b --parallel zero=3 --nodes 64\n" +
		"  busbar scale -c dgx-a100 -m gpt3-13b --parallel tp=8 --global-batch 512 --nodes 128 -o scale.svg\n" +
		"  busbar scale -c dgx-h100 -m llama3-70b --parallel tp=8,pp=4,zero=1 --nodes 16384 --goodput\n" +
		"  busbar scale -c baskerville -m gpt2-large --micro-batch 8 --nodes 16 --json"
}

// kneeGain is how much a doubling must give at least.
const kneeGain = 1.6

// scaleRow is one number of nodes.
type scaleRow struct {
	Nodes      int       `json:"nodes"`
	GPUs       int       `json:"gpus"`
	Step       unit.Span `json:"step_s"`
	Exposed    unit.Span `json:"exposed_comm_s"`
	Tokens     float64   `json:"tokens_per_s"`
	MFU        float64   `json:"mfu"`
	Efficiency float64   `json:"efficiency"`
	Goodput    float64   `json:"goodput,omitempty"`             // the share of time that goes into steps that count
	Useful     float64   `json:"useful_tokens_per_s,omitempty"` // tokens of those steps; efficiency is then of them
	Fits       bool      `json:"fits"`
	Bottleneck string    `json:"bottleneck"`
	Knee       bool      `json:"knee,omitempty"`
	parallel   string
	misfit     string // "" where it fits
}

// scaleDoc is the answer.
type scaleDoc struct {
	Cluster string      `json:"cluster"`
	Model   string      `json:"model"`
	Strong  bool        `json:"strong"`
	Rows    []scaleRow  `json:"rows"`
	Skipped []scaleSkip `json:"skipped"`
	Knee    int         `json:"knee_nodes"` // 0: not reached
}

type scaleSkip struct {
	Nodes  int    `json:"nodes"`
	Reason string `json:"reason"`
}

// Run prices every doubling.
func (c *scaleCmd) Run(e *env) error {
	if c.Compare != "" || c.Layout != "" {
		return errors.New("scale varies the layout; expected --nodes instead of -l and --compare")
	}
	if c.Nodes < 0 {
		return fmt.Errorf("--nodes %d; expected at least 1", c.Nodes)
	}
	if c.Output != "" && !strings.HasSuffix(c.Output, ".svg") {
		return fmt.Errorf("-o %s: expected a name that ends in .svg", c.Output)
	}
	a, err := c.ask(e, c.common)
	if err != nil {
		return err
	}
	if a.split.DP > 0 {
		return errors.New("--parallel dp: replicas are what scale varies; leave dp out")
	}
	per := len(a.cluster.TypeOf(0).Of(cluster.GPU))
	most := c.Nodes
	if most == 0 {
		most = len(a.cluster.Hosts)
	}
	if most > len(a.cluster.Hosts) {
		if a.cluster, err = c.more(e, common{Quiet: true}, []shape{{nodes: most, gpus: per}}); err != nil {
			return err
		}
	}
	fails, err := c.failFlags.read()
	if err != nil {
		return err
	}
	done := e.later(c.common, "pricing the step on more and more nodes")
	defer done()
	d := c.rows(e, a, fails, per, most)
	done()
	if err := e.ctx.Err(); err != nil {
		return err
	}
	if len(d.Rows) == 0 {
		return fmt.Errorf("the job runs on none of 1 to %d nodes: %s", most, d.Skipped[0].Reason)
	}
	if c.Output != "" {
		if err := e.writeFile(c.Output, func(w io.Writer) error { return report.Scaling(w, d.picture()) }); err != nil {
			return err
		}
	}
	if c.JSON {
		return writeIndented(e.stdout, d)
	}
	return d.print(e.stdout)
}

// rows prices 1, 2, 4, … and the most nodes.
func (c *scaleCmd) rows(e *env, a *asked, fails *whole, per, most int) *scaleDoc {
	d := &scaleDoc{Cluster: a.cluster.Name, Model: a.model.Name, Strong: c.Global > 0, Rows: []scaleRow{}, Skipped: []scaleSkip{}}
	for n := 1; e.ctx.Err() == nil; n = min(2*n, most) {
		r, err := c.price(a.cluster, shape{nodes: n, gpus: per, text: fmt.Sprintf("%dx%d", n, per)}, a)
		share := 0.0
		if err == nil && fails.failures {
			var g *campaign.Goodput
			if g, _, err = fails.fails(r, n, r.Step, r.TokensPerSecond()); err == nil {
				share = g.Share
			}
		}
		if err != nil {
			d.Skipped = append(d.Skipped, scaleSkip{n, err.Error()})
		} else {
			d.Rows = append(d.Rows, scaleRow{
				Nodes: n, GPUs: r.Ranks, Step: r.Step, Exposed: r.Exposed, Tokens: r.TokensPerSecond(), MFU: r.MFU, Fits: r.Memory.Total() <= unit.Volume(r.gpu.Memory),
				Bottleneck: r.Limit(r.job, r.gpu.Memory).Kind, parallel: r.job.Split.String(), misfit: r.misfit(), Goodput: share, Useful: share * r.Tokens / r.Step.Seconds(),
			})
		}
		if n >= most {
			break
		}
	}
	d.mark()
	return d
}

// mark works out efficiencies against the first row that fits, or the first where
// none does, and the knee.
func (d *scaleDoc) mark() {
	base := max(0, slices.IndexFunc(d.Rows, func(r scaleRow) bool { return r.Fits }))
	for i := range d.Rows {
		r, first := &d.Rows[i], &d.Rows[base]
		r.Efficiency = r.counted() / float64(r.Nodes) / (first.counted() / float64(first.Nodes))
		if i == 0 || d.Knee > 0 {
			continue
		}
		was := &d.Rows[i-1]
		share := r.counted() / was.counted() / (float64(r.Nodes) / float64(was.Nodes)) // of a full gain
		if share < kneeGain/2 {
			d.Knee, was.Knee = was.Nodes, true
		}
	}
}

// counted is the tokens a second that count.
func (r *scaleRow) counted() float64 {
	if r.Goodput > 0 {
		return r.Useful
	}
	return r.Tokens
}

// picture is the rows as the drawing takes them.
func (d *scaleDoc) picture() report.ScaleCurve {
	p := report.ScaleCurve{Title: fmt.Sprintf("%s on %s, %s scaling", d.Model, d.Cluster, d.kind()), Knee: d.Knee}
	for _, r := range d.Rows {
		p.Points = append(p.Points, report.ScalePoint{Nodes: r.Nodes, Efficiency: r.Efficiency, Label: fmt.Sprintf("%.3g tokens/s", r.counted())})
	}
	return p
}

func (d *scaleDoc) kind() string {
	if d.Strong {
		return "strong"
	}
	return "weak"
}

// print writes the table.
func (d *scaleDoc) print(w io.Writer) error {
	fmt.Fprintf(w, "%s on %s, %s scaling\n", d.Model, d.Cluster, d.kind())
	right := texttab.Right
	t := texttab.Table{Columns: []texttab.Column{
		{Head: "nodes", Align: right},
		{Head: "GPUs", Align: right},
		{Head: "step", Align: right},
		{Head: "exposed", Align: right},
		{Head: "tokens/s", Align: right},
		{Head: "MFU", Align: right},
		{Head: "efficiency", Align: right},
		{Head: ""},
		{Head: "limit"},
		{Head: "parallel"},
	}}
	failing := d.Rows[0].Goodput > 0
	if failing {
		t.Columns = slices.Insert(t.Columns, 6, texttab.Column{Head: "goodput", Align: right})
	}
	for _, r := range d.Rows {
		mark := strings.Repeat("▇", max(0, int(r.Efficiency*20+0.5)))
		if r.Knee {
			mark += " knee"
		}
		cells := []string{
			fmt.Sprint(r.Nodes), fmt.Sprint(r.GPUs), seconds(r.Step), seconds(r.Exposed), fmt.Sprintf("%.0f", r.counted()), fmt.Sprintf("%.1f%%", 100*r.MFU),
			fmt.Sprintf("%.1f%%", 100*r.Efficiency), mark, r.Bottleneck, r.parallel,
		}
		if failing {
			cells = slices.Insert(cells, 6, fmt.Sprintf("%.1f%%", 100*r.Goodput))
		}
		t.Row(cells...)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	last := d.Rows[len(d.Rows)-1]
	if d.Knee > 0 {
		fmt.Fprintf(w, "knee at nodes = %d: the next step gives less than 80%% of what its nodes could\n", d.Knee)
	} else {
		fmt.Fprintf(w, "no knee up to %d nodes: every step gives at least 80%% of what its nodes could\n", last.Nodes)
	}
	for i := len(d.Rows) - 1; i >= 0; i-- { // the most nodes that are not enough say what would be
		if r := &d.Rows[i]; r.misfit != "" {
			fmt.Fprintf(w, "on %s the job %s\n", counted(r.Nodes, "node"), r.misfit)
			break
		}
	}
	for _, s := range d.Skipped {
		fmt.Fprintf(w, "%d nodes left out: %s\n", s.Nodes, s.Reason)
	}
	return nil
}
