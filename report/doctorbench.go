package report

import (
	"fmt"
	"io"

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
func DoctorBench(w io.Writer, d *query.DoctorBenchDoc, o TextOptions) error {
	for _, s := range d.Sweeps {
		measuredCurve(w, s, o.Verbose)
	}
	return doctor.Text{Width: max(o.Width, 0), Paint: o.Color, All: o.Verbose}.Write(w, d.Report)
}

// measuredCurve prints the curve beside its prediction.
func measuredCurve(w io.Writer, s *doctor.Curve, all bool) {
	fmt.Fprintf(w, "%s, %s on %s\n", s.Op, words.Plural(s.Ranks, "rank"), s.Machine)
	for _, a := range s.Assumed {
		fmt.Fprintf(w, "  assumed: %s\n", a)
	}
	if s.Unjudged != "" {
		fmt.Fprintf(w, "  not compared with a prediction: %s\n", s.Unjudged)
	}
	if taken, _ := curveTable(s, true).Send(w); !taken {
		_ = curveTable(s, all).Write(w) // a writer's error shows at the next write
	}
	for _, a := range s.Thresholds {
		verdict := "passes"
		if a.Got < a.Asked {
			verdict = "fails"
		}
		fmt.Fprintf(w, "  %s asks %.4g GB/s (%s), measured %.4g: %s\n    %s\n", a.Title, a.Asked, a.How, a.Got, verdict,
			a.Source)
	}
	fmt.Fprintln(w)
}

// curveTable is a sweep beside its prediction: all points, or of many every other.
func curveTable(s *doctor.Curve, all bool) *texttab.Table {
	t := texttab.New(">size", ">time", ">busbw (GB/s)", ">predicted", ">from", ">to", ">ratio", "")
	t.Indent, t.Title = "  ", fmt.Sprintf("%s, %s on %s", s.Op, words.Plural(s.Ranks, "rank"), s.Machine)
	if len(s.Points) > 0 && s.Points[0].Expected == 0 {
		t.Columns = t.Columns[:3]
	}
	for i := range s.Points {
		p := &s.Points[i]
		if !all && len(s.Points) > 24 && i%2 == 1 && !p.Out() {
			continue
		}
		cells := []string{p.Size.String(), p.Time.String(), fmt.Sprintf("%.2f", p.BusBW)}
		if p.Expected > 0 {
			mark := ""
			if p.Out() {
				mark = "slow"
			}
			cells = append(cells, p.Expected.String(), unit.Time(float64(p.Expected)/p.Margin).String(),
				unit.Time(float64(p.Expected)*p.Margin).String(), fmt.Sprintf("%.2f", p.Ratio()), mark)
		}
		t.Row(cells...)
	}
	return t
}

// MeasuredCurve draws the measured line over the predicted band. One collective is
// drawn, the first.
func MeasuredCurve(d *query.DoctorBenchDoc) (*Picture, error) {
	s := d.Sweeps[0]
	f := &query.PredictDoc{Cluster: s.Machine, Op: s.Op, NCCL: s.NCCL, Compared: true}
	row := func(layout string, p *doctor.CurvePoint, t unit.Time, margin float64) {
		op := coll.Op{Kind: s.Op, Bytes: p.Size, Type: coll.Float}
		r := predict.NewRow(&result.Run{Op: op, Ranks: s.Ranks, Time: t, Margin: margin}, p.Size, "", predict.Setting{})
		r.Layout = layout
		f.Rows = append(f.Rows, r)
	}
	for i := range s.Points {
		if p := &s.Points[i]; p.Expected > 0 {
			row("predicted", p, p.Expected, p.Margin)
		}
	}
	for i := range s.Points {
		row("measured", &s.Points[i], s.Points[i].Time, 0)
	}
	return Curves(f)
}
