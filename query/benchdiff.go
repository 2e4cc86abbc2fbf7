package query

import (
	"context"
	"fmt"

	"busbar.dev/input"
	"busbar.dev/input/nccltests"
	"busbar.dev/input/perftest"
	"busbar.dev/internal/words"
	"busbar.dev/result"
	"busbar.dev/result/diff"
)

// BenchDiff compares what was measured before with what was measured now, row by row, and tells change from noise.
type BenchDiff struct {
	Old       string   `arg:"" names:"file" help:"Earlier results: a file of bench -o, or output of nccl-tests; - for standard input."`
	New       string   `arg:"" names:"file" help:"Later results."`
	Threshold *float64 `default:"5" help:"Exit 1 when a row is significantly slower by more than this percentage (default 5)."`
	Alpha     *float64 `default:"0.05" help:"Significance level: a difference counts when its p value is below this (default 0.05)."`
}

// BenchDiffDoc is the answer to BenchDiff.
type BenchDiffDoc struct {
	Alpha      float64         `json:"alpha"`
	Bad        bool            `json:"bad"` // something got slower than allowed, or wrong
	Correction string          `json:"correction"`
	Geomean    float64         `json:"geomean_change"` // of all rows: 0.1 is ten percent slower
	Least      float64         `json:"least_change"`   // that counts
	Notes      []string        `json:"notes"`
	OnlyNew    int             `json:"only_new"` // rows that have no other side
	OnlyOld    int             `json:"only_old"`
	Rows       []diff.Row      `json:"rows"`
	Threshold  float64         `json:"threshold"` // as a share
	NewRows    []diff.Measured `json:"only_new_rows,omitempty"`
	OldRows    []diff.Measured `json:"only_old_rows,omitempty"`
}

// Wrong reports that something got slower than allowed, or wrong.
func (d *BenchDiffDoc) Wrong() bool { return d.Bad }

// Run reads both sides and compares them.
func (q BenchDiff) Run(_ context.Context, env Env) (doc *BenchDiffDoc, err error) {
	defer prepared(&q, &env, &doc, &err)()
	if err != nil {
		return nil, err
	}
	alpha, threshold := *q.Alpha, *q.Threshold
	switch {
	case !(alpha > 0 && alpha < 1):
		return nil, fmt.Errorf("--alpha %g: expected a probability between 0 and 1", alpha)
	case !(threshold >= 0):
		return nil, fmt.Errorf("--threshold %g: expected percent", threshold)
	case q.Old == "-" && q.New == "-":
		return nil, fmt.Errorf("both sides are standard input; one of them must be a file")
	}
	old, untimed, err := env.results(q.Old)
	if err != nil {
		return nil, err
	}
	now, more, err := env.results(q.New)
	if err != nil {
		return nil, err
	}
	o := diff.Options{Alpha: alpha, Threshold: threshold / 100}
	if o.Threshold == 0 {
		o.Threshold = -1
	}
	rep := diff.Compare(old, now, o)
	for _, x := range []struct {
		name string
		n    int
	}{{q.Old, untimed}, {q.New, more}} {
		if x.n > 0 {
			rep.Notes = append(rep.Notes,
				fmt.Sprintf("%s: left out %s without a time above 0", inputName(x.name), words.Plural(x.n, "row")))
		}
	}
	if len(rep.Rows) == 0 {
		return nil, fmt.Errorf("%s and %s have no row in common; %s", inputName(q.Old), inputName(q.New),
			firstDifference(old, now))
	}
	return &BenchDiffDoc{
		Alpha: alpha, Bad: rep.Bad(), Correction: diff.Correction, Geomean: rep.Geomean, Least: diff.Least,
		Notes: append([]string{}, rep.Notes...), Rows: rep.Rows, Threshold: threshold / 100,
		OnlyNew: len(rep.OnlyNew), OnlyOld: len(rep.OnlyOld), NewRows: rep.OnlyNew, OldRows: rep.OnlyOld,
	}, nil
}

// notCollective is an error about an output of perftest.
func notCollective(name string) error {
	return fmt.Errorf("%s is an output of perftest: messages between two hosts, expected collectives; busbar doctor %s "+
		"judges it, and busbar diff compares two of them", name, name)
}

// results reads kept results, or makes them of nccl-tests' and perftest's tables. Rows without a time say
// nothing and are left out.
func (e *Env) results(name string) (list result.Sweeps, untimed int, err error) {
	data, err := e.measuredText(name)
	if err != nil {
		return nil, 0, err
	}
	name = inputName(name)
	found, err := input.Table.As(name, data)
	switch x := found.(type) {
	case result.Sweeps:
		list, untimed = withTimes(x)
	case *nccltests.Output:
		if err == nil {
			list, err = x.Sweeps()
			untimed = x.Untimed
		}
	case []perftest.Table:
		list = perftest.Sweeps(name, x)
	default:
		return nil, 0, fmt.Errorf("%s: neither results that busbar bench -o kept nor an output of nccl-tests or perftest",
			name)
	}
	switch {
	case err == nil && len(list) == 0 && untimed > 0:
		err = fmt.Errorf("%s: %s, none with a time above 0", name, words.Plural(untimed, "row"))
	case err == nil && len(list) == 0:
		err = fmt.Errorf("%s: no results in it", name)
	}
	return list, untimed, err
}

// withTimes leaves out and counts rows of which some run is said to have taken no time.
func withTimes(list result.Sweeps) (timed result.Sweeps, untimed int) {
	for _, s := range list {
		for i := range s.Points {
			p := &s.Points[i]
			for _, t := range []**result.Timing{&p.Out, &p.In} {
				if x := *t; x != nil && (x.Time.Mean <= 0 || len(x.Samples) > 0 && x.Samples[0] <= 0) { // samples are sorted
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
