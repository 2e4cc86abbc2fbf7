package report

import (
	"fmt"
	"strings"

	"busbar.dev/internal/svg"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
)

// Scale prints a job on more and more nodes.
func Scale(p *Page, d *query.ScaleDoc) {
	jobLine(p, d.Cluster, d.GPU, &d.Job, d.Strong)
	wide := 1.0
	for _, r := range d.Rows {
		if r.Step > 0 {
			wide = max(wide, float64(r.High/r.Step))
		}
	}
	p.printf("step times are expected within ×%.2f (from clusters left out of the fit)\n", wide)
	if d.Knee > 0 {
		p.printf("knee at %s: the next doubling gives less than 80%% of its nodes' rate\n",
			words.Plural(d.Knee, "node"))
	} else {
		p.printf("no knee up to %s: every doubling gives at least 80%% of its nodes' rate\n",
			words.Plural(d.Rows[len(d.Rows)-1].Nodes, "node"))
	}
	p.table(scaleTable(d))
	for _, s := range d.Skipped {
		why, _, _ := strings.Cut(s.Reason, ";")
		p.printf("%s left out: %s\n", words.Plural(s.Nodes, "node"), either(p.Verbose, s.Reason, why))
	}
}

func scaleTitle(d *query.ScaleDoc) string {
	return fmt.Sprintf("%s on %s, %s scaling", d.Job.Model, d.Cluster, either(d.Strong, "strong", "weak"))
}

// counted is what rates count.
func counted(pictures bool) string {
	return either(pictures, "samples", "tokens")
}

// scaleTable is a row for every number of nodes.
func scaleTable(d *query.ScaleDoc) *texttab.Table {
	of := counted(d.Pictures)
	t := texttab.New(">nodes", ">GPUs", ">step", ">exposed", ">"+of+"/s|%.0f", ">"+of+"/s/GPU|%.0f", ">MFU|%.1f%%",
		">memory", texttab.If(d.Rows[0].Goodput > 0, ">goodput|%.1f%%"), ">efficiency|%.1f%%", "", "limit", "parallel",
		">micro-batch",
		"recompute", "?against fewer nodes")
	for _, r := range d.Rows {
		bar := strings.Repeat("▇", max(0, int(r.Efficiency*20+0.5)))
		t.Add(r.Nodes, r.GPUs, r.Step, r.Exposed, r.Counted(), r.Counted()/float64(r.GPUs), 100*r.MFU,
			memoryOf(r.Memory, r.Has), 100*r.Goodput, 100*r.Efficiency, bar+when(r.Knee, " knee"), r.Bottleneck, r.Parallel,
			r.Micro, r.Recompute, r.Why)
	}
	return t
}

// ScaleCurve draws efficiency over nodes, nodes by doublings, with the knee marked.
func ScaleCurve(d *query.ScaleDoc) (*svg.Picture, error) {
	if len(d.Rows) == 0 {
		return nil, fmt.Errorf("no points to draw")
	}
	title, points := scaleTitle(d), []point(nil)
	for _, r := range d.Rows {
		p := point{
			x: float64(r.Nodes), y: 100 * r.Efficiency, ringed: r.Nodes == d.Knee, note: fmt.Sprintf("%.0f%%", 100*r.Efficiency),
		}
		p.tip = fmt.Sprintf("%d nodes: %.1f%%, %.3g %s/s", r.Nodes, 100*r.Efficiency, r.Counted(), counted(d.Pictures))
		if p.ringed {
			p.note += fmt.Sprintf(", knee: %d nodes", d.Knee)
		}
		points = append(points, p)
	}
	const width = 860.0
	c := &picture{}
	top := c.heading(width, title, "efficiency: "+counted(d.Pictures)+"/s per node, relative to the fewest nodes") + 39
	p := plot{box: box{74, top, width - 174, 324}, across: "nodes", lines: [][]point{points}}
	number := func(suffix string) func(float64) string {
		return func(v float64) string { return fmt.Sprintf("%g%s", v, suffix) }
	}
	p.xTick, p.yTick = number(""), number("%")
	p.draw(c)
	return c.Picture(title, width, p.bottom()+56), nil
}
