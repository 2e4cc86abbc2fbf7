package report

import (
	"fmt"
	"math"

	"busbar.dev/finding"
	"busbar.dev/internal/svg"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// Measures of the heat map.
const (
	heatCell  = 26.0
	heatLeft  = 120.0
	heatTop   = 110.0
	heatBelow = 30.0
	maxHeat   = 256 // ranks; beyond, cells are smaller than a dot
)

// Heat draws the bandwidth of every pair as a map: rows send, columns receive. Light
// is fast and dark is slow, so that it prints in grey; pairs and hosts that stand out
// are outlined and named below.
func Heat(t *pairs.Table) (*svg.Picture, error) {
	n := len(t.Names)
	if n == 0 {
		return nil, fmt.Errorf("no ranks to draw")
	}
	if n > maxHeat {
		return nil, fmt.Errorf("a map of %d ranks; at most %d can be drawn, use the table", n, maxHeat)
	}
	cell := math.Max(4, math.Min(heatCell, 900/float64(n)))
	findings := t.Findings()
	c := &svg.Canvas{}
	side := float64(n) * cell
	heatCells(c, t, cell)
	heatNames(c, t, cell)
	heatMarks(c, findings, cell, side)
	y := heatTop + side + heatBelow
	for i, f := range findings {
		if i == 12 {
			c.Text(heatLeft, y, fmt.Sprintf("and %d more", len(findings)-i), svg.Type{Size: 12, Fill: "#333333"})
			y += 18
			break
		}
		c.Text(heatLeft, y, svg.Fit(f.Text, svg.Type{Size: 12}, math.Max(side, 640)), svg.Type{Size: 12, Fill: "#333333"})
		y += 18
	}
	return c.Picture(heatLeft+math.Max(side, 640)+40, y+10, "bandwidth of every pair", "#ffffff"), nil
}

// heatCells paints the cells by their part of the fastest.
func heatCells(c *svg.Canvas, t *pairs.Table, cell float64) {
	most := 0.0
	for _, m := range t.Cells {
		most = math.Max(most, float64(m.Rate))
	}
	for _, m := range t.Cells {
		if m.From < 0 || m.To < 0 || m.From >= len(t.Names) || m.To >= len(t.Names) || m.Rate <= 0 {
			continue
		}
		x, y := heatLeft+float64(m.To)*cell, heatTop+float64(m.From)*cell
		c.Open("pair", fmt.Sprintf("%s to %s: %v, latency %v", t.Names[m.From], t.Names[m.To], m.Rate, m.Latency))
		c.Rect(x, y, cell-1, cell-1, 1, svg.Paint{Fill: shade(float64(m.Rate) / most)})
		c.Close()
	}
}

// heatScale says what the colours stand for.
func heatScale(t *pairs.Table) string {
	least, most := unit.Rate(math.Inf(1)), unit.Rate(0)
	for _, m := range t.Cells {
		if m.Rate > 0 {
			least, most = min(least, m.Rate), max(most, m.Rate)
		}
	}
	if most == 0 {
		return "dark is slow"
	}
	return fmt.Sprintf("dark is slow: from %v to %v", least, most)
}

// shade goes from dark blue (nothing) to nearly white (the fastest), evenly to the
// eye and without hues that print alike.
func shade(part float64) string {
	part = math.Max(0, math.Min(1, part))
	mix := func(dark, light float64) int { return int(dark + (light-dark)*part) }
	return fmt.Sprintf("#%02x%02x%02x", mix(20, 232), mix(45, 240), mix(100, 250))
}

// heatNames writes rows and columns, thinned out where there are too many.
func heatNames(c *svg.Canvas, t *pairs.Table, cell float64) {
	every := int(math.Ceil(14 / cell))
	label := svg.Type{Size: 11, Fill: "#333333", Anchor: svg.End}
	for i, name := range t.Names {
		if i%every != 0 {
			continue
		}
		c.Text(heatLeft-6, heatTop+float64(i)*cell+cell/2+4, svg.FitEnds(name, label, heatLeft-10), label)
		c.Text(heatLeft+float64(i)*cell+cell/2, heatTop-8, fmt.Sprint(i), svg.Type{
			Size: 10, Fill: "#333333", Anchor: svg.Middle,
		})
	}
	c.Text(heatLeft, 34, "Bandwidth of every pair, one direction", svg.Type{Size: 16, Fill: "#111111"})
	c.Text(heatLeft, 56, "rows send, columns receive; "+heatScale(t), svg.Type{Size: 12, Fill: "#555555"})
}

// heatMarks outlines what stands out.
func heatMarks(c *svg.Canvas, findings []finding.Finding, cell, side float64) {
	mark := svg.Paint{Stroke: "#c0392b", Width: 2}
	for _, f := range findings {
		if f.Figure != "bandwidth" {
			continue
		}
		switch f.Kind {
		case pairs.SlowHost, pairs.SlowOut, pairs.SlowIn:
			for _, rank := range f.Ranks {
				a := float64(rank) * cell
				if f.Kind != pairs.SlowIn {
					c.Rect(heatLeft-1, heatTop+a-1, side, cell, 1, mark)
				}
				if f.Kind != pairs.SlowOut {
					c.Rect(heatLeft+a-1, heatTop-1, cell, side, 1, mark)
				}
			}
		default:
			a, b := float64(f.Ranks[0])*cell, float64(f.Ranks[1])*cell
			c.Rect(heatLeft+b-1, heatTop+a-1, cell, cell, 1, mark)
			if f.Kind == pairs.SlowPair {
				c.Rect(heatLeft+a-1, heatTop+b-1, cell, cell, 1, mark)
			}
		}
	}
}
