package main

import (
	"fmt"
	"io"
	"strings"

	"busbar.dev/calibrate"
	"busbar.dev/calibrate/truth"
	"busbar.dev/cluster"
	"busbar.dev/internal/texttab"
	"busbar.dev/sim"
)

// printSite writes what a calibration found.
func printSite(w io.Writer, s *calibrate.Site, file string) error {
	right := texttab.Right
	t := texttab.Table{Columns: []texttab.Column{{Head: "figure"}, {Head: "was", Align: right}, {Head: "is", Align: right}, {Head: "range", Align: right}, {Head: "unit"}}}
	for _, m := range s.Moved {
		t.Row(m.Name, fmt.Sprintf("%.4g", m.Was), fmt.Sprintf("%.4g", m.Value), fmt.Sprintf("%.4g–%.4g", m.Low, m.High), m.Unit)
	}
	if t.Len() == 0 {
		fmt.Fprintln(w, "The measurements pin down no figure that the model has not already.")
	} else if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nerror on the %d points: median %s before, %s after; 90th percentile %s before, %s after\n", s.After.Points,
		percent(s.Before.Median), percent(s.After.Median), percent(s.Before.P90), percent(s.After.P90))
	if s.HeldAfter.Points > 0 {
		fmt.Fprintf(w, "on sizes that were left out of the fit: median %s before, %s after; 90th percentile %s before, %s after\n",
			percent(s.HeldBefore.Median), percent(s.HeldAfter.Median), percent(s.HeldBefore.P90), percent(s.HeldAfter.P90))
	}
	if len(s.Loose) > 0 {
		fmt.Fprintf(w, "left as they are, for the points do not pin them down: %s\n", strings.Join(s.Loose, ", "))
	}
	if s.Points == 1 {
		fmt.Fprintln(w, "one size is one number: it cannot tell latency from rate, nor how either changes with the size; error bars stay as they are")
	}
	if len(s.Ends) > 0 {
		fmt.Fprintf(w, "%s went to the end of what is possible: the description of the cluster, the layout or the run itself is more likely wrong than the model\n", strings.Join(s.Ends, ", "))
	}
	if !s.Better() {
		return printNoBetter(w, s)
	}
	switch {
	case isStdout(file):
		fmt.Fprintln(w, "the cluster with its calibration is on standard output; keep it in a file for predict -c FILE")
	case file != "":
		fmt.Fprintf(w, "written to %s; predict with -c %s\n", file, file)
	default:
		fmt.Fprintln(w, "nothing was written; -o FILE keeps it")
	}
	return nil
}

// printNoBetter says why nothing was written, and where the error is.
func printNoBetter(w io.Writer, s *calibrate.Site) error {
	fmt.Fprintf(w, "the fit is no better than the figures before it; nothing was written\n\n")
	right := texttab.Right
	t := texttab.Table{Columns: []texttab.Column{{Head: "sizes (small < 64 KiB, large > 16 MiB)"}, {Head: "points", Align: right}, {Head: "median before", Align: right}, {Head: "after", Align: right}, {Head: "pred/meas before", Align: right}, {Head: "after", Align: right}}}
	for _, x := range s.Sizes {
		t.Row(x.Name, fmt.Sprint(x.After.Points), percent(x.Before.Median), percent(x.After.Median), fmt.Sprintf("%.2f", x.Before.Bias), fmt.Sprintf("%.2f", x.After.Bias))
	}
	return t.Write(w)
}

type errorsDoc struct {
	Median float64 `json:"median_ape"`
	P90    float64 `json:"p90_ape"`
}

func errorsOf(s truth.Score) errorsDoc { return errorsDoc{s.Median, s.P90} }

func siteDocument(s *calibrate.Site, c *cluster.Calibration, about []taken) any {
	doc := map[string]any{
		"measured": about, "points": s.After.Points, "before": errorsOf(s.Before), "after": errorsOf(s.After),
		"better": s.Better(), "calibration": c, "not_constrained": append([]string{}, s.Loose...), "at_their_ends": append([]string{}, s.Ends...),
	}
	if s.HeldAfter.Points > 0 {
		doc["held_out"] = map[string]any{"before": errorsOf(s.HeldBefore), "after": errorsOf(s.HeldAfter)}
	}
	return doc
}

// developer fits all figures to published points, or cross-validates.
func (c *calibrateCmd) developer(e *env) error {
	sweeps, _, err := e.measured(c.Files)
	if err != nil {
		return err
	}
	if len(sweeps) == 0 {
		if runs, err := c.runs(e); err != nil || len(runs) > 0 {
			if err != nil {
				return err
			}
			return c.steps(e, runs)
		}
	}
	cases, _ := truth.Gather(sweeps, nil)
	if len(cases) == 0 {
		return fmt.Errorf("%s: no measured collective that can be predicted", strings.Join(c.Files, ", "))
	}
	a, err := calibrate.Published(&calibrate.Problem{Cases: cases}).Solve()
	if err != nil {
		return err
	}
	if !c.Cross {
		return c.printFigures(e, cases, a)
	}
	rows, err := calibrate.Cross(cases, &a.Figures, calibrate.Pull, func(machine string, rows []truth.Row) {
		if s := truth.Rate(rows); c.Verbose {
			fmt.Fprintf(e.stderr, "without %s: median %s, 90th percentile %s on its %d points\n", machine, percent(s.Median), percent(s.P90), s.Points)
		}
	})
	if err != nil {
		return err
	}
	if c.Figures && c.JSON {
		return writeIndented(e.stdout, marginsDocument(rows))
	}
	if c.Figures {
		return calibrate.WriteMargins(e.stdout, calibrate.Margins(rows))
	}
	v := newValidation(rows, nil)
	if c.JSON {
		return writeIndented(e.stdout, v.document())
	}
	fmt.Fprintln(e.stdout, "Every machine is predicted by figures that were fitted without its points.")
	fmt.Fprintln(e.stdout)
	return v.print(e.stdout, c.Verbose)
}

type marginDoc struct {
	Class    string  `json:"class"`
	Size     string  `json:"size"`
	Factor   float64 `json:"factor"`
	Points   int     `json:"points"`
	Machines int     `json:"machines"`
}

// marginsDocument is the error bars with the score that they come from.
func marginsDocument(rows []truth.Row) any {
	s := truth.Rate(rows)
	list := []marginDoc{}
	for _, m := range calibrate.Margins(rows) {
		list = append(list, marginDoc{m.Class, m.Size, m.Factor, m.Points, m.Machines})
	}
	return map[string]any{"points": s.Points, "median_ape": s.Median, "p90_ape": s.P90, "margins": list}
}

// printFigures lists the figures, says which no point constrains, and prints the Go
// of sim.Fitted.
func (c *calibrateCmd) printFigures(e *env, cases []*truth.Case, a *calibrate.Answer) error {
	rows, err := truth.Rows(cases, &a.Figures)
	if err != nil {
		return err
	}
	s := truth.Rate(rows)
	if c.JSON {
		list := []map[string]any{}
		for i, v := range a.Figures {
			unit, _, _ := sim.FigureRange(i)
			list = append(list, map[string]any{"name": sim.FigureName(i), "value": v, "unit": unit, "points": a.Touch[i]})
		}
		return writeIndented(e.stdout, map[string]any{"points": s.Points, "median_ape": s.Median, "p90_ape": s.P90, "figures": list})
	}
	right := texttab.Right
	t := texttab.Table{Columns: []texttab.Column{{Head: "figure"}, {Head: "value", Align: right}, {Head: "unit"}, {Head: "points", Align: right}, {Head: ""}}}
	for i, v := range a.Figures {
		unit, _, _ := sim.FigureRange(i)
		note := ""
		if calibrate.Held(sim.FigureName(i)) {
			note = "from the reference case (docs/baskerville.md), not fitted here"
		} else if a.Touch[i] == 0 {
			note = "no point depends on it: as its neighbours or as is usual"
		}
		t.Row(sim.FigureName(i), fmt.Sprintf("%.4g", v), unit, fmt.Sprint(a.Touch[i]), note)
	}
	if err := t.Write(e.stdout); err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "\n%d points: median %s, 90th percentile %s\n\n", s.Points, percent(s.Median), percent(s.P90))
	return calibrate.WriteGo(e.stdout, &a.Figures)
}
