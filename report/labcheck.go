package report

import (
	"fmt"
	"io"

	"busbar.dev/internal/texttab"
	"busbar.dev/lab/check"
)

// LabCheck writes what was measured in a lab beside what was predicted.
func LabCheck(w io.Writer, doc check.Document) error {
	switch d := doc.(type) {
	case *check.Collectives:
		return labCollectives(w, d)
	case *check.Steps:
		return labSteps(w, d)
	case *check.Planned:
		return labPlanned(w, d)
	}
	return fmt.Errorf("no text for %T", doc)
}

func labCollectives(w io.Writer, d *check.Collectives) error {
	named := false
	for i := range d.Points {
		named = named || d.Points[i].Scenario != ""
	}
	t := texttab.New("scenario", "layout", "algorithm", ">size", ">measured", ">predicted", ">error", ">noise", "limited by")
	t.Columns[0].Hidden = !named
	for i := range d.Points {
		p := &d.Points[i]
		t.Row(p.Scenario, p.Layout, p.Algo, p.Size.String(), p.Measured.String(), p.Predicted.String(), labError(p), labNoise(p), p.Limit)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	labVerdict(w, &d.Verdict, "points", "order of algorithms")
	labSkipped(w, d.Skipped)
	return nil
}

func labSteps(w io.Writer, d *check.Steps) error {
	fmt.Fprintf(w, "%s: rates × %v, gradients and buckets 1/%d (%v): everything takes %.3g times as long as on the cluster, computing too (%v a step)\n\n", d.Model, d.Scale, d.Shrink, d.Rows[0].Size, d.Longer, d.Compute)
	t := texttab.New("layout", "compression", "overlap", ">step", ">predicted", ">error", ">noise", ">exposed", ">predicted", "limited by")
	for i := range d.Rows {
		r := &d.Rows[i]
		overlap := "off"
		if r.Overlap {
			overlap = "on"
		}
		t.Row(r.Layout, r.Compress, overlap, r.Measured.String(), r.Predicted.String(), labError(&r.Point), labNoise(&r.Point), r.Exposed.String(), r.PredictedExposed.String(), r.Limit)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	labVerdict(w, &d.Verdict, "steps", "which way is faster")
	labSkipped(w, d.Skipped)
	return nil
}

func labPlanned(w io.Writer, d *check.Planned) error {
	if len(d.Placements) > 0 {
		fmt.Fprintf(w, "%s, rates × %v; gains over %s\n\n", d.Cluster, d.Scale, d.Placements[0])
	} else {
		fmt.Fprintf(w, "%s, rates × %v\ngiven order: %s\nplan's order: %s\n\n", d.Cluster, d.Scale, d.Given, d.Order)
	}
	if err := planTable(d.Rows, true).Write(w); err != nil {
		return err
	}
	if len(d.Steps) > 0 {
		fmt.Fprintf(w, "\nsteps of %s with overlap: gradients and buckets 1/%d (%v), everything takes %.3g times as long as on the cluster\n\n", d.Model, d.Shrink, d.Steps[0].Size, d.Longer)
		if err := planTable(d.Steps, false).Write(w); err != nil {
			return err
		}
	}
	if d.Score.Points == 0 {
		fmt.Fprintf(w, "\nnothing counts: runs differ by more than %.0f%%, the machine is busy\n", d.MaxNoise*100)
		return nil
	}
	labVerdict(w, &d.Verdict, "points", "which way is faster")
	return nil
}

// planTable has a row for each order and algorithm; steps have all one size.
func planTable(rows []check.PlanRow, sizes bool) *texttab.Table {
	t := texttab.New(">size", "way", ">measured", ">predicted", ">noise", ">gain", ">predicted", ">on the cluster", "limited by")
	t.Columns[0].Hidden = !sizes
	for i := range rows {
		r := &rows[i]
		cluster := "-"
		if r.Cluster > 0 {
			cluster = fmt.Sprintf("%.2f", r.Cluster)
		}
		t.Row(
			r.Size.String(), r.Variant, r.Measured.String()+tooNoisy(&r.Point), r.Predicted.String(), labNoise(&r.Point),
			fmt.Sprintf("%.2f", r.Gain), fmt.Sprintf("%.2f", r.PredictedGain), cluster, r.Limit,
		)
	}
	return t
}

func labError(p *check.Point) string { return fmt.Sprintf("%+.1f%%", p.Error*100) + tooNoisy(p) }

func labNoise(p *check.Point) string { return fmt.Sprintf("%.0f%%", p.Noise*100) }

// tooNoisy marks points that do not count.
func tooNoisy(p *check.Point) string {
	if p.TooNoisy {
		return "*"
	}
	return ""
}

// labVerdict writes how good the predictions of points or steps are; order is what of them was compared.
func labVerdict(w io.Writer, v *check.Verdict, what, order string) {
	s := &v.Score
	fmt.Fprintf(w, "\n%d %s: median error %.1f%% (at most %.0f%%), worst %.1f%% (at most %.0f%%): %s\n", s.Points, what, s.Median*100, v.MaxMedian*100, s.Worst*100, v.MaxWorst*100, s.Where)
	if s.Noisy > 0 {
		fmt.Fprintf(w, "* %d more do not count: their runs differ by more than %.0f%%, the machine is busy\n", s.Noisy, v.MaxNoise*100)
	}
	fmt.Fprintf(w, "%s: %d of %d pairs that differ by more than 15%% right\n", order, s.Pairs-len(s.Wrong), s.Pairs)
	for _, x := range s.Wrong {
		fmt.Fprintln(w, "wrong:", x)
	}
}

func labSkipped(w io.Writer, skipped []string) {
	for _, x := range skipped {
		fmt.Fprintln(w, "left out:", x)
	}
}
