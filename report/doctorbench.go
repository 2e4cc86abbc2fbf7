package report

import (
	"fmt"

	"busbar.dev/coll"
	"busbar.dev/doctor"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/predict"
	"busbar.dev/query"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// DoctorBench prints the curves beside their predictions; what was found stands below (doctor.Text).
func DoctorBench(p *Page, d *query.DoctorBenchDoc) {
	for _, s := range d.Sweeps {
		measuredCurve(p, s)
	}
	doctorText(p, d.Report)
}

// measuredCurve prints the curve beside its prediction.
func measuredCurve(p *Page, s *doctor.Curve) {
	all := curveTable(s, true)
	p.lines(all.Title)
	for _, a := range s.Assumed {
		p.printf("  assumed: %s\n", a)
	}
	if s.Unjudged != "" {
		p.printf("  not compared with a prediction: %s\n", s.Unjudged)
	}
	p.send(all)
	p.lay(curveTable(s, p.Verbose))
	p.printf("\n")
}

// curveTable is a sweep beside its prediction: all points, or of many every other.
func curveTable(s *doctor.Curve, all bool) *texttab.Table {
	judged := len(s.Points) > 0 && s.Points[0].Expected > 0
	t := texttab.New(">size", ">time", ">busbw (GB/s)|%.2f",
		texttab.If(judged, ">predicted", ">from", ">to", ">ratio|%.2f", ""))
	t.Indent, t.Title = "  ", fmt.Sprintf("%s, %s on %s%s", s.Op, words.Plural(s.Ranks, "rank"),
		when(s.Nodes > 1, words.Plural(s.Nodes, "node")+" of "), s.Machine)
	for i, x := range s.Points {
		if !all && len(s.Points) > 24 && i%2 == 1 && !x.Out() {
			continue
		}
		cells := []any{x.Size, x.Time, x.BusBW}
		if x.Expected > 0 {
			cells = append(cells, x.Expected, unit.Time(float64(x.Expected)/x.Margin),
				unit.Time(float64(x.Expected)*x.Margin), x.Ratio(), s.Verdict(&x))
		}
		t.Add(cells...)
	}
	return t
}

// MeasuredCurve draws the measured line over the predicted band. One collective is
// drawn, the first.
func MeasuredCurve(d *query.DoctorBenchDoc) (*Picture, error) {
	s := d.Sweeps[0]
	f := &query.PredictDoc{Cluster: s.Machine, Op: s.Op, NCCL: s.NCCL, Compared: true}
	row := func(layout string, size unit.Bytes, t unit.Time, margin float64) {
		op := coll.Op{Kind: s.Op, Bytes: size, Type: coll.Float}
		r := predict.NewRow(&result.Run{Op: op, Ranks: s.Ranks, Time: t, Margin: margin}, size, "", predict.Setting{})
		r.Layout = layout
		f.Rows = append(f.Rows, r)
	}
	for _, p := range s.Points {
		if p.Expected > 0 {
			row("predicted", p.Size, p.Expected, p.Margin)
		}
	}
	for _, p := range s.Points {
		row("measured", p.Size, p.Time, 0)
	}
	return Curves(f)
}
