package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"busbar.dev/input/nccltests"
	"busbar.dev/internal/texttab"
	"busbar.dev/result"
	"busbar.dev/result/diff"
	"busbar.dev/unit"
)

type benchDiffCmd struct {
	common
	Old       string  `arg:"" help:"What was measured before: results that bench -o kept, or an output of nccl-tests; - for standard input."`
	New       string  `arg:"" help:"What was measured now."`
	Threshold float64 `default:"5" help:"Exit 1 when something got significantly slower by more than so many percent."`
	Alpha     float64 `default:"0.05" help:"A difference counts when chance makes one as great with a smaller probability than this."`
	All       bool    `help:"Also list rows that only one side has."`
}

// Help ends with examples.
func (benchDiffCmd) Help() string {
	return "Compares results row by row: medians with their 95 % intervals, the change, and the probability p that chance alone makes such a difference (Mann-Whitney U test, corrected for the number of rows by Benjamini and Hochberg: of tables in which nothing changed, a share of --alpha at most show a change). " +
		"± is how far the ends of the median's 95 % interval are from it, of fewer than six observations how far the outermost are. " +
		"~ is no change: p is --alpha or more, the medians differ by less than 3 %, or one of them lies within the other side's ±. " +
		"Keep six runs or more in each file, eight for tables of many rows (bench -o adds to it): then runs are compared with runs, and the noise between them counts. " +
		"Outputs of nccl-tests hold one figure a row: put several runs into one file.\n\n" +
		"Examples:\n" +
		"  busbar bench diff docs/examples/before.jsonl docs/examples/after.jsonl\n" +
		"  busbar bench diff docs/examples/before.jsonl docs/examples/after.jsonl --threshold 10 --json\n" +
		"  for i in 1 2 3 4 5 6; do busbar bench -n 4 -o new.jsonl; done"
}

// Run compares.
func (c *benchDiffCmd) Run(e *env) error {
	switch {
	case !(c.Alpha > 0 && c.Alpha < 1):
		return fmt.Errorf("--alpha %g: expected a probability between 0 and 1", c.Alpha)
	case !(c.Threshold >= 0):
		return fmt.Errorf("--threshold %g: expected percent", c.Threshold)
	case c.Old == "-" && c.New == "-":
		return fmt.Errorf("both sides are standard input; one of them must be a file")
	}
	old, untimed, err := e.results(c.Old)
	if err != nil {
		return err
	}
	now, more, err := e.results(c.New)
	if err != nil {
		return err
	}
	o := diff.Options{Alpha: c.Alpha, Threshold: c.Threshold / 100}
	if o.Threshold == 0 {
		o.Threshold = -1
	}
	rep := diff.Compare(old, now, o)
	for _, x := range []struct {
		name string
		n    int
	}{{c.Old, untimed}, {c.New, more}} {
		if x.n > 0 {
			rep.Notes = append(rep.Notes, fmt.Sprintf("%s: left out %s without a time above 0", inputName(x.name), counted(x.n, "row")))
		}
	}
	if len(rep.Rows) == 0 {
		return fmt.Errorf("%s and %s have no row in common; %s", inputName(c.Old), inputName(c.New), firstDifference(old, now))
	}
	if c.JSON {
		err = writeIndented(e.stdout, c.document(rep))
	} else {
		err = c.print(e.stdout, rep)
	}
	if err == nil && rep.Bad() {
		return errWrong
	}
	return err
}

// results reads kept results, or makes them of nccl-tests' tables. Rows without a time say
// nothing and are left out.
func (e *env) results(name string) (list result.Sweeps, untimed int, err error) {
	data, err := e.measuredText(name)
	if err != nil {
		return nil, 0, err
	}
	switch {
	case result.Match(data):
		if list, err = result.Read(inputName(name), bytes.NewReader(data)); err == nil {
			list, untimed = withTimes(list)
		}
	case nccltests.Match(data):
		var out *nccltests.Output
		if out, err = nccltests.ReadOutput(inputName(name), bytes.NewReader(data)); err == nil {
			list, err = out.Sweeps()
			untimed = out.Untimed
		}
	default:
		return nil, 0, fmt.Errorf("%s: neither results that busbar bench -o kept nor an output of nccl-tests", inputName(name))
	}
	switch {
	case err == nil && len(list) == 0 && untimed > 0:
		err = fmt.Errorf("%s: %s, none with a time above 0", inputName(name), counted(untimed, "row"))
	case err == nil && len(list) == 0:
		err = fmt.Errorf("%s: no results in it", inputName(name))
	}
	return list, untimed, err
}

// withTimes leaves out and counts rows of which some run is said to have taken no time.
func withTimes(list result.Sweeps) (timed result.Sweeps, untimed int) {
	for _, s := range list {
		for i := range s.Points {
			p := &s.Points[i]
			for _, t := range []**result.Timing{&p.Out, &p.In} {
				if x := *t; x != nil && (!(x.Time.Mean > 0) || len(x.Samples) > 0 && !(x.Samples[0] > 0)) { // samples are sorted
					*t = nil
					untimed++
				}
			}
		}
		if len(s.Rows()) > 0 {
			timed = append(timed, s)
		}
	}
	return timed, untimed
}

// firstDifference says in which respect the first sweeps of two sets differ.
func firstDifference(a, b result.Sweeps) string {
	x, y := a[0], b[0]
	for _, d := range []struct{ what, old, new string }{
		{"collective", x.Op.String(), y.Op.String()},
		{"number of ranks", fmt.Sprint(x.Ranks), fmt.Sprint(y.Ranks)},
		{"layout", x.Layout(), y.Layout()},
		{"type", x.Dtype, y.Dtype},
		{"transport", x.Transport, y.Transport},
		{"compression", x.Compress, y.Compress},
		{"setting", fmt.Sprint(x.Env), fmt.Sprint(y.Env)},
	} {
		if d.old != d.new {
			return fmt.Sprintf("the %s is %s there and %s here", d.what, d.old, d.new)
		}
	}
	return "their sizes differ"
}

// print writes the table for people.
func (c *benchDiffCmd) print(w io.Writer, rep *diff.Report) error {
	right := texttab.Right
	head := ""
	var t *texttab.Table
	flush := func() error {
		if t == nil {
			return nil
		}
		return t.Write(w)
	}
	for i := range rep.Rows {
		r := &rep.Rows[i]
		if h := sweepWords(r.Of); h != head {
			if err := flush(); err != nil {
				return err
			}
			if head != "" {
				fmt.Fprintln(w)
			}
			head = h
			fmt.Fprintln(w, head)
			t = &texttab.Table{Columns: []texttab.Column{
				{Head: "size", Align: right},
				{Head: "algorithm"},
				{Head: "old", Align: right},
				{Head: "±", Align: right},
				{Head: "new", Align: right},
				{Head: "±", Align: right},
				{Head: "change", Align: right},
				{Head: "p", Align: right},
				{Head: "n", Align: right},
				{Head: ""},
			}}
		}
		t.Row(r.Of.Size.String(), texttab.Clean(algoChange(r)), microText(r.Old.Median), plusMinus(r.Old), microText(r.New.Median), plusMinus(r.New), changeText(r), chance(r), fmt.Sprintf("%d+%d", r.Old.N, r.New.N), verdictText(r))
	}
	if err := flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s in all: %+.1f%% on average%s\n", counted(len(rep.Rows), "row"), 100*rep.Geomean, noneChanged(rep.Rows))
	c.printAlone(w, "before", rep.OnlyOld)
	c.printAlone(w, "now", rep.OnlyNew)
	for _, n := range rep.Notes {
		fmt.Fprintf(w, "note: %s\n", texttab.Clean(n))
	}
	return nil
}

// noneChanged says of an average over rows none of which is told from noise that it is noise too.
func noneChanged(rows []diff.Row) string {
	for i := range rows {
		if v := rows[i].Verdict; v != diff.Same && v != diff.Unknown {
			return ""
		}
	}
	return ", which is not told from noise"
}

// printAlone tells of rows that one side has.
func (c *benchDiffCmd) printAlone(w io.Writer, when string, list []result.Row) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(w, "measured only %s: %s%s\n", when, counted(len(list), "row"), map[bool]string{true: ":", false: " (--all lists them)"}[c.All])
	for _, r := range list {
		if c.All {
			fmt.Fprintf(w, "  %s, %v\n", texttab.Clean(sweepWords(r)), r.Size)
		}
	}
}

// sweepWords say what rows of one table have in common.
func sweepWords(r result.Row) string {
	parts := []string{r.Op.String(), r.Dtype, fmt.Sprintf("%d ranks", r.Ranks)}
	if r.Nodes > 0 {
		parts = append(parts, fmt.Sprintf("%dx%d", r.Nodes, r.PerNode))
	}
	parts = append(parts, r.Transport)
	if r.Compress != "" && r.Compress != "none" {
		parts = append(parts, r.Compress)
	}
	if r.InPlace {
		parts = append(parts, "in place")
	}
	for _, k := range sortedKeys(r.Env) {
		parts = append(parts, k+"="+r.Env[k])
	}
	return strings.Join(parts, ", ")
}

func algoChange(r *diff.Row) string {
	if r.Old.Algo == r.New.Algo {
		return r.Old.Algo
	}
	return r.Old.Algo + " → " + r.New.Algo
}

func microText(us float64) string { return unit.Time(us * 1e6).String() }

func plusMinus(s diff.Side) string {
	if s.Low == s.High || s.Median <= 0 {
		return ""
	}
	return fmt.Sprintf("%.0f%%", 100*max(s.High-s.Median, s.Median-s.Low)/s.Median)
}

func changeText(r *diff.Row) string {
	if r.Verdict == diff.Same {
		return "~"
	}
	return fmt.Sprintf("%+.1f%%", 100*r.Change)
}

func chance(r *diff.Row) string {
	switch {
	case r.Verdict == diff.Unknown:
		return "?"
	case r.Adjusted < 0.001:
		return "<0.001"
	}
	return fmt.Sprintf("%.3f", r.Adjusted)
}

func verdictText(r *diff.Row) string {
	switch {
	case r.New.Wrong > 0:
		return fmt.Sprintf("%d wrong", r.New.Wrong)
	case r.Bad:
		return "SLOWER"
	case r.Verdict == diff.Slower || r.Verdict == diff.Faster:
		return string(r.Verdict)
	}
	return ""
}

// document is what --json prints.
func (c *benchDiffCmd) document(rep *diff.Report) any {
	type row struct {
		Op        string       `json:"op"`
		Size      int64        `json:"size_bytes"`
		Dtype     string       `json:"dtype"`
		Ranks     int          `json:"ranks"`
		Transport string       `json:"transport"`
		InPlace   bool         `json:"in_place"`
		Old       diff.Side    `json:"old"`
		New       diff.Side    `json:"new"`
		Change    float64      `json:"change"`
		P         *float64     `json:"p"`
		Adjusted  *float64     `json:"p_adjusted"`
		Between   bool         `json:"between_runs"`
		Verdict   diff.Verdict `json:"verdict"`
		Bad       bool         `json:"bad"`
	}
	rows := []row{}
	for i := range rep.Rows {
		r := &rep.Rows[i]
		x := row{r.Of.Op.String(), int64(r.Of.Size), r.Of.Dtype, r.Of.Ranks, r.Of.Transport, r.Of.InPlace, r.Old, r.New, r.Change, &r.P, &r.Adjusted, r.Between, r.Verdict, r.Bad}
		if r.Verdict == diff.Unknown {
			x.P, x.Adjusted = nil, nil
		}
		rows = append(rows, x)
	}
	return map[string]any{
		"rows": rows, "geomean_change": rep.Geomean, "only_old": len(rep.OnlyOld), "only_new": len(rep.OnlyNew),
		"threshold": c.Threshold / 100, "alpha": c.Alpha, "correction": diff.Correction, "least_change": diff.Least, "bad": rep.Bad(), "notes": append([]string{}, rep.Notes...),
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
