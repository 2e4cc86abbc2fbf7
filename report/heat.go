package report

import (
	"fmt"
	"math"

	"busbar.dev/finding"
	"busbar.dev/internal/svg"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

const (
	heatLeft = 120.0
	maxHeat  = 256 // ranks; beyond, cells are smaller than a dot
)

// Heat draws the bandwidth of every pair as a map: rows send, columns receive. Light
// is fast and dark is slow, so that it prints in grey; pairs and hosts that stand out
// are outlined and named below.
func Heat(t *pairs.Table) (*Picture, error) {
	n := len(t.Names)
	if n == 0 {
		return nil, fmt.Errorf("no ranks to draw")
	}
	if n > maxHeat {
		return nil, fmt.Errorf("a map of %d ranks; at most %d can be drawn, use the table", n, maxHeat)
	}
	cell := max(4, min(26, 900/float64(n)))
	side := cell * float64(n)
	width := heatLeft + max(side, 640) + 40
	least, most := unit.Rate(math.Inf(1)), unit.Rate(0)
	for _, m := range t.Cells {
		if m.Rate > 0 {
			least, most = min(least, m.Rate), max(most, m.Rate)
		}
	}
	scale := "rows send, columns receive; dark is slow" + when(most > 0, fmt.Sprintf(": from %v to %v", least, most))
	c := &picture{}
	at := box{heatLeft, c.heading(width, "Bandwidth of every pair, one direction", scale) + 40, side, side}
	for _, m := range t.Cells {
		if m.From < 0 || m.To < 0 || m.From >= n || m.To >= n || m.Rate <= 0 {
			continue
		}
		c.Open("pair", fmt.Sprintf("%s to %s: %v, latency %v", t.Names[m.From], t.Names[m.To], m.Rate, m.Latency), "")
		c.Rect(at.x+float64(m.To)*cell, at.y+float64(m.From)*cell, cell-1, cell-1, 1,
			brush{Fill: shade(float64(m.Rate / most))})
		c.Close()
	}
	row, column := font{Size: 11, Fill: ink, Anchor: svg.End}, font{Size: 10, Fill: ink, Anchor: svg.Middle}
	for i := 0; i < n; i += int(math.Ceil(14 / cell)) { // thinned out where there are too many
		mid := float64(i)*cell + cell/2
		c.Text(at.x-6, at.y+mid+4, svg.FitEnds(t.Names[i], row, at.x-10), row)
		c.Text(at.x+mid, at.y-8, fmt.Sprint(i), column)
	}
	y := at.bottom() + 30
	for i, f := range t.Findings() {
		drawOutline(c, f, at, cell)
		ty := font{Size: 12, Fill: ink}
		for _, line := range svg.Wrap(f.Text, ty, width-2*edge, 3) {
			if i < 12 {
				c.Text(edge, y, line, ty)
				y += 16
			}
		}
	}
	return c.Picture("bandwidth of every pair", width, y+10), nil
}

// shade goes from dark blue (nothing) to nearly white (the fastest), evenly to the
// eye and without hues that print alike.
func shade(part float64) string {
	mix := func(dark, light float64) int { return int(dark + (light-dark)*part) }
	return fmt.Sprintf("#%02x%02x%02x", mix(20, 232), mix(45, 240), mix(100, 250))
}

// drawOutline outlines what stands out: the row or column of a host, or the cells of a pair.
func drawOutline(c *picture, f finding.Finding, at box, cell float64) {
	if f.Figure != "bandwidth" {
		return
	}
	outline := func(row, column int, rows, columns float64) {
		c.Rect(at.x+float64(column)*cell-1, at.y+float64(row)*cell-1, columns*cell, rows*cell, 1,
			brush{Stroke: red, Width: 2})
	}
	all := at.w / cell
	switch f.Kind {
	case pairs.SlowHost, pairs.SlowOut, pairs.SlowIn:
		for _, rank := range f.Ranks {
			if f.Kind != pairs.SlowIn {
				outline(rank, 0, 1, all)
			}
			if f.Kind != pairs.SlowOut {
				outline(0, rank, all, 1)
			}
		}
	default:
		outline(f.Ranks[0], f.Ranks[1], 1, 1)
		if f.Kind == pairs.SlowPair {
			outline(f.Ranks[1], f.Ranks[0], 1, 1)
		}
	}
}
