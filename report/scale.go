package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"busbar.dev/internal/svg"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
	"busbar.dev/unit"
)

// Scale prints a job on more and more nodes.
func Scale(w io.Writer, d *query.ScaleDoc) error {
	fmt.Fprintln(w, scaleTitle(d))
	if err := scaleTable(d).Write(w); err != nil {
		return err
	}
	wide := 1.0
	for _, r := range d.Rows {
		if r.Step > 0 {
			wide = max(wide, float64(r.High/r.Step))
		}
	}
	fmt.Fprintf(w, "step times are expected within ×%.2f (from clusters left out of the fit)\n", wide)
	if d.Knee > 0 {
		fmt.Fprintf(w, "knee at %s: the next doubling gives less than 80%% of its nodes' rate\n",
			words.Plural(d.Knee, "node"))
	} else {
		fmt.Fprintf(w, "no knee up to %s: every doubling gives at least 80%% of its nodes' rate\n",
			words.Plural(d.Rows[len(d.Rows)-1].Nodes, "node"))
	}
	for i := len(d.Rows) - 1; i >= 0; i-- { // the most nodes that are not enough say what would be
		if r := &d.Rows[i]; r.Misfit != "" {
			fmt.Fprintf(w, "on %s the job %s\n", words.Plural(r.Nodes, "node"), r.Misfit)
			break
		}
	}
	for _, s := range d.Skipped {
		fmt.Fprintf(w, "%s left out: %s\n", words.Plural(s.Nodes, "node"), s.Reason)
	}
	return nil
}

func scaleTitle(d *query.ScaleDoc) string {
	kind := "weak"
	if d.Strong {
		kind = "strong"
	}
	return fmt.Sprintf("%s on %s, %s scaling", d.Model, d.Cluster, kind)
}

// counted is what rates count.
func counted(pictures bool) string {
	if pictures {
		return "samples"
	}
	return "tokens"
}

// scaleTable is a row for every number of nodes.
func scaleTable(d *query.ScaleDoc) *texttab.Table {
	t := texttab.New(">nodes", ">GPUs", ">step", ">exposed", ">"+counted(d.Pictures)+"/s",
		">"+counted(d.Pictures)+"/s/GPU", ">MFU", ">memory", ">goodput", ">efficiency", "", "limit", "parallel")
	t.Columns[8].Hidden = !(d.Rows[0].Goodput > 0)
	for i := range d.Rows {
		r := &d.Rows[i]
		mark := strings.Repeat("▇", max(0, int(r.Efficiency*20+0.5)))
		if r.Knee {
			mark += " knee"
		}
		t.Row(
			fmt.Sprint(r.Nodes), fmt.Sprint(r.GPUs), r.Step.Short(), r.Exposed.Short(), fmt.Sprintf("%.0f", r.Counted()),
			fmt.Sprintf("%.0f", r.Counted()/float64(r.GPUs)), fmt.Sprintf("%.1f%%", 100*r.MFU),
			memoryOf(unit.Volume(r.Memory), r.Has),
			fmt.Sprintf("%.1f%%", 100*r.Goodput), fmt.Sprintf("%.1f%%", 100*r.Efficiency), mark, r.Bottleneck, r.Parallel,
		)
	}
	return t
}

// ScaleCurve draws efficiency over nodes, nodes by doublings, with the knee marked.
func ScaleCurve(d *query.ScaleDoc) (*svg.Picture, error) {
	if len(d.Rows) == 0 {
		return nil, fmt.Errorf("no points to draw")
	}
	const width, height, left, top, right, bottom = 860.0, 480.0, 70.0, 96.0, 30.0, 60.0
	title := scaleTitle(d)
	c := &svg.Canvas{}
	c.Text(left, 32, title, svg.Type{Size: 17, Bold: true})
	c.Text(left, 52, "efficiency: "+counted(d.Pictures)+"/s per node, relative to the fewest nodes", svg.Type{
		Size: 12, Fill: "#555555",
	})
	most := 1.0
	for _, p := range d.Rows {
		most = math.Max(most, p.Efficiency)
	}
	most = math.Ceil(most*10-1e-9) / 10
	low, high := math.Log2(float64(d.Rows[0].Nodes)), math.Log2(float64(d.Rows[len(d.Rows)-1].Nodes))
	if high == low {
		high = low + 1
	}
	x := func(n int) float64 {
		return left + 20 + (math.Log2(float64(n))-low)/(high-low)*(width-left-right-60)
	}
	y := func(e float64) float64 { return height - bottom - e/most*(height-top-bottom) }
	for e := 0.0; e <= most+1e-9; e += 0.2 {
		c.Line(left, y(e), width-right, y(e), svg.Paint{Stroke: "#dddddd"})
		c.Text(left-8, y(e)+4, fmt.Sprintf("%.0f%%", 100*e), svg.Type{Anchor: svg.End, Fill: "#555555"})
	}
	path := &svg.Pen{}
	for i, p := range d.Rows {
		if i == 0 {
			path.Move(x(p.Nodes), y(p.Efficiency))
			continue
		}
		path.Line(x(p.Nodes), y(p.Efficiency))
	}
	if d.Knee > 0 {
		c.Line(x(d.Knee), top, x(d.Knee), height-bottom, svg.Paint{Stroke: "#c0392b", Dash: "5 4"})
		c.Text(x(d.Knee)+6, height-bottom-10, fmt.Sprintf("knee: %d nodes", d.Knee), svg.Type{Bold: true, Fill: "#c0392b"})
	}
	c.Path(path.String(), svg.Paint{Stroke: "#1f5fa8", Width: 2.5, Round: true})
	for i := range d.Rows {
		p := &d.Rows[i]
		c.Open("point", fmt.Sprintf("%d nodes: %.1f%%, %.3g %s/s", p.Nodes, 100*p.Efficiency, p.Counted(),
			counted(d.Pictures)))
		c.Circle(x(p.Nodes), y(p.Efficiency), 4.5, svg.Paint{Fill: "#1f5fa8", Stroke: "#ffffff"})
		c.Close()
		c.Text(x(p.Nodes), height-bottom+20, fmt.Sprint(p.Nodes), svg.Type{Anchor: svg.Middle})
		if len(d.Rows) <= 12 {
			c.Text(x(p.Nodes)+4, y(p.Efficiency)-10, fmt.Sprintf("%.0f%%", 100*p.Efficiency), svg.Type{Size: 11})
		}
	}
	c.Text(left+(width-left-right)/2, height-16, "nodes", svg.Type{Anchor: svg.Middle, Fill: "#555555"})
	return c.Picture(width, height, title, "#ffffff"), nil
}
