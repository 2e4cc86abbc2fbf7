package main

import (
	"context"
	"fmt"
	"io"
	"net/url"

	"busbar.dev/fleet"
	"busbar.dev/internal/texttab"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// figures are what an order measured: the rows of a collective, or the middle and the least of pairs.
type figures struct {
	Results result.Sweeps `json:"records,omitempty"`
	Rate    *spread       `json:"rate_GBps,omitempty"`
	Latency *spread       `json:"latency_us,omitempty"`
}

// spread is the middle of all directions, and the worst of them.
type spread struct {
	Median float64    `json:"median"`
	Worst  float64    `json:"worst"`
	From   fleet.Name `json:"from"`
	To     fleet.Name `json:"to"`
}

// figuresOf asks for what an order measured.
func figuresOf(ctx context.Context, cl *client, got *fleet.OrderReply) (*figures, error) {
	f := &figures{}
	switch {
	case got.Good == 0 || got.Job != "": // what checks measure is not kept
		return f, nil
	case got.What.Measure == fleet.MeasureCollective:
		var kept struct{ Collectives []fleet.Collective }
		if err := cl.call(ctx, "GET", "/api/fleet/collectives", nil, &kept); err != nil {
			return nil, err
		}
		for _, c := range kept.Collectives {
			if c.Order == got.ID && c.Sweep == got.Sweep {
				f.Results = c.Results
			}
		}
		return f, nil
	}
	var err error
	if f.Rate, err = spreadOf(ctx, cl, fleet.FigureRate, got.ID); err != nil {
		return nil, err
	}
	f.Latency, err = spreadOf(ctx, cl, fleet.FigureLatency, got.ID)
	return f, err
}

// spreadOf is of what the order's last sweep measured, and not of what is known from before; nil where that is
// nothing.
func spreadOf(ctx context.Context, cl *client, what fleet.Figure, order string) (*spread, error) {
	q := url.Values{"figure": {string(what)}, "order": {order}}
	var heat fleet.Heat
	if err := cl.call(ctx, "GET", "/api/fleet/pairs?"+q.Encode(), nil, &heat); err != nil {
		return nil, err
	}
	var s *spread
	for i, row := range heat.Values {
		for j, v := range row {
			if v == nil || i >= len(heat.Names) || j >= len(heat.Names) {
				continue
			}
			if worse := s == nil || (*v < s.Worst) == (what != fleet.FigureLatency) && *v != s.Worst; worse {
				s = &spread{heat.Median, *v, heat.Names[i], heat.Names[j]}
			}
		}
	}
	return s, nil
}

// print writes them.
func (f *figures) print(w io.Writer) error {
	if s := f.Rate; s != nil {
		fmt.Fprintf(w, "rate: %v in the middle, %v at least (%s to %s)\n", unit.Rate(s.Median*1e9), unit.Rate(s.Worst*1e9), s.From, s.To)
	}
	if s := f.Latency; s != nil {
		fmt.Fprintf(w, "latency: %v in the middle, %v at most (%s to %s)\n", unit.Micros(s.Median), unit.Micros(s.Worst), s.From, s.To)
	}
	if len(f.Results) == 0 {
		return nil
	}
	right := texttab.Right
	t := texttab.Table{Columns: []texttab.Column{{Head: "collective"}, {Head: "ranks", Align: right}, {Head: "size", Align: right}, {Head: "place"}, {Head: "algorithm"}, {Head: "time", Align: right}, {Head: "busbw", Align: right}}}
	for _, r := range f.Results.Rows() {
		place := "out"
		if r.InPlace {
			place = "in"
		}
		t.Row(r.Op.String(), fmt.Sprint(r.Ranks), r.Size.String(), place, texttab.Clean(r.Algo), unit.Micros(r.Middle()).String(), r.BusBW().String())
	}
	return t.Write(w)
}

// shownReasons is how many reasons a summary shows; --json has more.
const shownReasons = 3

// printReasons says why parts were not measured, the commonest reason first.
func printReasons(w io.Writer, got *fleet.OrderReply) {
	list := got.Reasons
	for _, r := range list[:min(len(list), shownReasons)] {
		what := "failed"
		if r.Left {
			what = "left out"
		}
		who := ""
		if len(r.Nodes) > 0 {
			who = formatNames(r.Nodes) + ": "
		}
		fmt.Fprintf(w, "%s %s: %s%s\n", counted(r.Parts, "part"), what, who, texttab.Clean(r.Why))
	}
	if more := len(list) - shownReasons; more > 0 {
		fmt.Fprintf(w, "and %s (--json)\n", counted(more, "reason")+" more")
	}
}
