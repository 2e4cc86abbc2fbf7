package query

import (
	"context"
	"fmt"
	"slices"

	"busbar.dev/finding"
	"busbar.dev/input"
	"busbar.dev/input/nccltests"
	"busbar.dev/internal/words"
	"busbar.dev/result"
	"busbar.dev/result/diff"
	"busbar.dev/unit"
)

// Diff compares two of anything that was measured, logged, mapped or predicted: what differs first, how much longer one
// takes, and whether that difference explains it. Of tables every row is told from noise.
type Diff struct {
	Old       string   `arg:"" names:"file" help:"Earlier or first: results of bench, output of nccl-tests, logs of NCCL, traces, predict --json, a map or a preset; a folder of logs or traces; - for standard input."`
	New       string   `arg:"" names:"file" help:"Later or second, of the same kind."`
	Cluster   string   `short:"c" names:"cluster" placeholder:"CLUSTER" help:"Cluster whose hosts were measured, for the racks that they are in."`
	Threshold *float64 `default:"5" help:"Exit 1 when a row is significantly slower by more than this percentage (default 5)."`
	Alpha     *float64 `default:"0.05" help:"Significance level: a difference counts when its p value is below this (default 0.05)."`
}

// DiffDoc is the answer to Diff.
type DiffDoc struct {
	Verdict     string            `json:"verdict"` // in a sentence
	Same        bool              `json:"same"`    // nothing differs, and no time changed
	Differences []diff.Difference `json:"differences"`
	Both        []string          `json:"both,omitempty"`       // what is worth a word on both sides
	Parts       []diff.Part       `json:"parts,omitempty"`      // of a step, from traces
	Size        unit.Bytes        `json:"size_bytes,omitempty"` // the largest that both sides have
	Ratio       float64           `json:"ratio,omitempty"`      // how many times as long the new side takes there, or a step
	Findings    []finding.Finding `json:"findings"`
	Alpha       float64           `json:"alpha"`
	Bad         bool              `json:"bad"` // something got slower than allowed, or wrong
	Correction  string            `json:"correction"`
	Geomean     float64           `json:"geomean_change"` // of all rows: 0.1 is ten percent slower
	Least       float64           `json:"least_change"`   // that counts
	Notes       []string          `json:"notes"`
	OnlyNew     int               `json:"only_new"` // rows that have no other side
	OnlyOld     int               `json:"only_old"`
	Rows        []diff.Row        `json:"rows"`
	Threshold   float64           `json:"threshold"` // as a share
	NewRows     []diff.Measured   `json:"only_new_rows,omitempty"`
	OldRows     []diff.Measured   `json:"only_old_rows,omitempty"`
}

// Wrong reports that something got slower than allowed, or wrong, or takes so much longer that it needs a cause.
func (d *DiffDoc) Wrong() bool { return d.Bad || finding.AtLeast(d.Findings, finding.Warn) }

// Run reads both sides and compares them.
func (q Diff) Run(ctx context.Context, env Env) (doc *DiffDoc, err error) {
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
	r := diffReader{env: &env, ctx: ctx}
	if q.Cluster != "" {
		if r.racks, err = env.load(ctx, []string{q.Cluster}); err != nil {
			return nil, err
		}
	}
	old, err := r.side(q.Old)
	if err != nil {
		return nil, err
	}
	now, err := r.side(q.New)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(slices.Concat(old.facts, now.facts), func(f diff.Fact) bool { return f.What == diff.Racks }) {
		if err := unread(&q, "cluster", "no side names hosts that it has below switches"); err != nil {
			return nil, err
		}
	}
	doc = &DiffDoc{
		Alpha: alpha, Correction: diff.Correction, Least: diff.Least, Threshold: threshold / 100, Notes: []string{},
		Rows: []diff.Row{}, Findings: []finding.Finding{}, Differences: diff.Differences(old.facts, now.facts),
	}
	if err := doc.measure(&q, old, now); err != nil {
		return nil, err
	}
	doc.Parts = diff.Parts(old.parts, now.parts)
	if len(doc.Parts) > 0 && doc.Parts[0].Old > 0 {
		doc.Ratio = float64(doc.Parts[0].New / doc.Parts[0].Old)
	}
	for _, text := range old.odd {
		if slices.Contains(now.odd, text) {
			doc.Both = append(doc.Both, text)
		}
	}
	diff.Explain(doc.Differences, doc.Ratio)
	doc.judge(inputName(q.Old), inputName(q.New))
	return doc, nil
}

// measure compares the tables of both sides.
func (d *DiffDoc) measure(q *Diff, old, now *diffSide) error {
	if len(old.sweeps) == 0 || len(now.sweeps) == 0 {
		if old.kind != now.kind {
			return fmt.Errorf("%s is %s and %s is %s; expected two of a kind", inputName(q.Old), old.kind, inputName(q.New),
				now.kind)
		}
		return nil
	}
	o := diff.Options{Alpha: d.Alpha, Threshold: d.Threshold}
	if o.Threshold == 0 {
		o.Threshold = -1
	}
	rep := diff.Compare(old.sweeps, now.sweeps, o)
	if len(rep.Rows) == 0 {
		return fmt.Errorf("%s and %s have no row in common; %s", inputName(q.Old), inputName(q.New),
			firstDifference(old.sweeps, now.sweeps))
	}
	for _, x := range []struct {
		name string
		n    int
	}{{q.Old, old.untimed}, {q.New, now.untimed}} {
		if x.n > 0 {
			rep.Notes = append(rep.Notes,
				fmt.Sprintf("%s: left out %s without a time above 0", inputName(x.name), words.Plural(x.n, "row")))
		}
	}
	d.Bad, d.Geomean, d.Rows, d.Notes = rep.Bad(), rep.Geomean, rep.Rows, append(d.Notes, rep.Notes...)
	d.OnlyNew, d.OnlyOld, d.NewRows, d.OldRows = len(rep.OnlyNew), len(rep.OnlyOld), rep.OnlyNew, rep.OnlyOld
	d.Size, d.Ratio = rep.Largest()
	return nil
}

// judge says in a sentence how the sides compare. What takes so much longer that chance and habit do not explain it is
// a finding, with its cause.
func (d *DiffDoc) judge(old, now string) {
	at := "a step"
	if d.Size > 0 {
		at = d.Size.String()
	}
	cause, known := diff.Cause(d.Differences)
	changed := slices.ContainsFunc(d.Rows,
		func(r diff.Row) bool { return r.Verdict == diff.Slower || r.Verdict == diff.Faster || r.Bad })
	times := max(d.Ratio, 1/max(d.Ratio, 1e-9))
	switch {
	case len(d.Differences) == 0 && !changed && (d.Ratio == 0 || times < diff.Worth):
		d.Same, d.Verdict = true, "Same: nothing that the files tell differs"
		if d.Ratio > 0 {
			d.Verdict += ", and no time that chance does not explain"
		}
		d.Verdict += "."
		return
	case d.Ratio == 0:
		d.Verdict = "What differs first is " + d.Differences[0].String() + ". No times were given on both sides."
		return
	case times < 1+diff.Least:
		d.Verdict = fmt.Sprintf("Both take as long for %s.", at)
		return
	}
	slow, fast, severity := now, old, finding.Warn
	if d.Ratio < 1 {
		slow, fast, severity = old, now, finding.Note
	}
	d.Verdict = fmt.Sprintf("%s takes %.2f times as long as %s for %s.", slow, times, fast, at)
	if part, share := diff.Most(d.Parts); share > 0 {
		d.Verdict += fmt.Sprintf(" %.0f%% of the difference is %s.", 100*share, part)
	}
	switch {
	case !known:
		d.Verdict += " Nothing that the files tell explains it."
	case cause.Explains == diff.InPart:
		d.Verdict += fmt.Sprintf(" At most %.2f times of it is explained by %s.", cause.AtMost, cause)
	case cause.Explains == diff.May:
		d.Verdict += fmt.Sprintf(" It may be by %s.", cause)
	default:
		d.Verdict += fmt.Sprintf(" It is explained by %s.", cause)
	}
	if times < diff.Worth {
		return
	}
	f := finding.Finding{
		ID: "slower", Kind: "slower", Severity: severity, Confidence: 1, Factor: 1 / times, Figure: "time", Text: d.Verdict,
		Fix: "measure both sides again with one difference less, beginning with the first of the table",
	}
	if known {
		f.Evidence = finding.Facts(cause.String())
	}
	d.Findings = append(d.Findings, f)
}

// notCollective is an error about an output of perftest.
func notCollective(name string) error {
	return fmt.Errorf("%s is an output of perftest: messages between two hosts, expected collectives; busbar doctor %s "+
		"judges it, and busbar diff compares two of them", name, name)
}

// results reads kept results, or makes them of nccl-tests' tables. Rows without a time say
// nothing and are left out.
func results(name string, data []byte) (list result.Sweeps, untimed int, err error) {
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
	default:
		return nil, 0, fmt.Errorf("%s: neither results that busbar bench -o kept nor an output of nccl-tests", name)
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
