package report

import (
	"fmt"
	"io"
	"math"

	"busbar.dev/internal/svg"
)

// ScalePoint is the efficiency of a job on so many nodes; 1 is that of the fewest.
type ScalePoint struct {
	Nodes      int
	Efficiency float64
	Label      string
}

// ScaleCurve is a job on more and more nodes. Knee is the number of nodes after which more give
// little, 0 where that was not reached.
type ScaleCurve struct {
	Title  string
	Points []ScalePoint
	Knee   int
}

// Scaling draws efficiency over nodes, nodes by doublings, with the knee marked.
func Scaling(w io.Writer, s ScaleCurve) error {
	if len(s.Points) == 0 {
		return fmt.Errorf("no points to draw")
	}
	const width, height, left, top, right, bottom = 860.0, 480.0, 70.0, 96.0, 30.0, 60.0
	c := &svg.Canvas{}
	c.Text(left, 32, s.Title, svg.Type{Size: 17, Bold: true})
	c.Text(left, 52, "efficiency: tokens/s a node, against the fewest nodes", svg.Type{Size: 12, Fill: "#555555"})
	most := 1.0
	for _, p := range s.Points {
		most = math.Max(most, p.Efficiency)
	}
	most = math.Ceil(most*10-1e-9) / 10
	low, high := math.Log2(float64(s.Points[0].Nodes)), math.Log2(float64(s.Points[len(s.Points)-1].Nodes))
	if high == low {
		high = low + 1
	}
	x := func(n int) float64 {
		return left + 20 + (math.Log2(float64(n))-low)/(high-low)*(width-left-right-60)
	}
	y := func(e float64) float64 { return height - bottom - e/most*(height-top-bottom) }
	for e := 0.0; e <= most+1e-9; e += 0.2 {
		c.Line(left, y(e), width-right, y(e), svg.Paint{Stroke: "#dddddd"})
		c.Text(left-8, y(e)+4, fmt.Sprintf("%.0f %%", 100*e), svg.Type{Anchor: svg.End, Fill: "#555555"})
	}
	path := &svg.Pen{}
	for i, p := range s.Points {
		if i == 0 {
			path.Move(x(p.Nodes), y(p.Efficiency))
			continue
		}
		path.Line(x(p.Nodes), y(p.Efficiency))
	}
	if s.Knee > 0 {
		c.Line(x(s.Knee), top, x(s.Knee), height-bottom, svg.Paint{Stroke: "#c0392b", Dash: "5 4"})
		c.Text(x(s.Knee)+6, height-bottom-10, fmt.Sprintf("knee: %d nodes", s.Knee), svg.Type{Bold: true, Fill: "#c0392b"})
	}
	c.Path(path.String(), svg.Paint{Stroke: "#1f5fa8", Width: 2.5, Round: true})
	for _, p := range s.Points {
		c.Open("point", fmt.Sprintf("%d nodes: %.1f %%, %s", p.Nodes, 100*p.Efficiency, p.Label))
		c.Circle(x(p.Nodes), y(p.Efficiency), 4.5, svg.Paint{Fill: "#1f5fa8", Stroke: "#ffffff"})
		c.Close()
		c.Text(x(p.Nodes), height-bottom+20, fmt.Sprint(p.Nodes), svg.Type{Anchor: svg.Middle})
		if len(s.Points) <= 12 {
			c.Text(x(p.Nodes)+4, y(p.Efficiency)-10, fmt.Sprintf("%.0f %%", 100*p.Efficiency), svg.Type{Size: 11})
		}
	}
	c.Text(left+(width-left-right)/2, height-16, "nodes", svg.Type{Anchor: svg.Middle, Fill: "#555555"})
	return c.Write(w, width, height, s.Title, "#ffffff")
}
