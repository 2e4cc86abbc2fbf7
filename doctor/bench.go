package doctor

import (
	"fmt"
	"math"
	"slices"

	"busbar.dev/finding"
	"busbar.dev/internal/stats"
	"busbar.dev/predict"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// Curve is a measured sweep held against what should come.
type Curve struct {
	Sweep   *result.Sweep
	Machine string // the cluster that it was held against
	Preset  string // that cluster's, "" for none
	NCCL    string // release that was predicted
	Class   string // of the prediction, as predict names it
	NICs    int    // per node
	NICRate unit.Rate
	Points  []CurvePoint
	// Assumed is what nobody stated; such a curve gives notes only where it matters.
	Assumed []string
	// Guessed says that how the GPUs are joined was assumed, not only details.
	Guessed bool
	// Unsure says why small and middle times are less sure than those that the model
	// was fitted on; then only what is far off is more than a note.
	Unsure string
	// On says on which algorithm's curve the measured one lies, where that is not the predicted one's.
	On string
	// Unjudged says why nothing was predicted.
	Unjudged string
}

// CurvePoint is one size of a curve.
type CurvePoint struct {
	Size     unit.Bytes
	Time     unit.Time // out of place, or in place where only that was measured
	InPlace  unit.Time // 0 not measured
	BusBW    float64   // GB/s, as nccl-tests counts
	Expected unit.Time // 0 not predicted
	Margin   float64
	Algo     string // that was predicted
	Quote    finding.Quote
}

// wrong is how many values are wrong.
func (s *Curve) wrong() (n int64) {
	for _, r := range s.Sweep.Rows() {
		if r.Wrong != nil {
			n += *r.Wrong
		}
	}
	return n
}

// busBW is nccl-tests' figure in GB/s.
func (s *Curve) busBW(size unit.Bytes, t unit.Time) float64 {
	op, err := s.Sweep.Operation(size)
	if err != nil || t <= 0 {
		return 0
	}
	return op.BusBW(s.Sweep.Ranks, t).GBps()
}

// Ratio is how many times as long as predicted a point took, 0 unknown.
func (p *CurvePoint) Ratio() float64 {
	if p.Expected <= 0 || p.Time <= 0 {
		return 0
	}
	return float64(p.Time) / float64(p.Expected)
}

// slack is what measurements may lie beyond the margin before somebody is told:
// one of ten does so by its definition.
const slack = 1.15

// Out reports whether a point took longer than its error bar allows.
func (p *CurvePoint) Out() bool { return p.Ratio() > p.Margin*slack && p.Margin > 0 }

// stretchOf is a part of the curve: small, middle or large.
type stretchOf struct {
	name   string
	points []*CurvePoint
	ratio  float64 // median
	margin float64 // median
	out    int
}

// slow reports whether the part as a whole is beyond its error bar.
func (p *stretchOf) slow() bool {
	return p.ratio > 0 && 2*p.out > len(p.points) && p.ratio > slack*p.margin
}

// parts cuts a curve by size.
func (s *Curve) parts() map[string]*stretchOf {
	list := map[string]*stretchOf{}
	for _, name := range predict.Sizes() {
		list[name] = &stretchOf{name: name}
	}
	for i := range s.Points {
		if p := &s.Points[i]; p.Ratio() > 0 {
			part := list[predict.SizeClass(p.Size)]
			part.points = append(part.points, p)
			if p.Out() {
				part.out++
			}
		}
	}
	for _, part := range list {
		var ratios, margins []float64
		for _, p := range part.points {
			ratios, margins = append(ratios, p.Ratio()), append(margins, p.Margin)
		}
		part.ratio, part.margin = stats.Nearest(ratios, 0.5), stats.Nearest(margins, 0.5)
	}
	return list
}

// Bench judges curves: each against its prediction and what operators publish.
func Bench(curves []*Curve) *Report {
	r := &Report{}
	for _, s := range curves {
		r.Lines += len(s.Points)
		if !slices.Contains(r.Sources, s.Sweep.File) {
			r.Sources = append(r.Sources, s.Sweep.File)
		}
		r.Findings = append(r.Findings, s.judge(len(curves) > 1)...)
	}
	order(nil, r.Findings, false, nil)
	return r
}

// judge is what a curve shows.
func (s *Curve) judge(several bool) []finding.Finding {
	var list []finding.Finding
	parts := s.parts()
	for _, f := range []*finding.Finding{s.wrongValues(), s.peak(parts), s.middle(parts), s.latency(parts), s.below(), s.dip(parts), s.falls(), s.places(), s.fast(parts)} {
		if f == nil {
			continue
		}
		if several {
			f.Where = fmt.Sprintf("%s of %d ranks on %s", s.Sweep.Op, s.Sweep.Ranks, s.Machine)
		}
		if s.On != "" && (f.ID == "bench-peak" || f.ID == "bench-middle") {
			f.Cause = s.On + " " + f.Cause
		}
		part := parts[map[string]string{"bench-latency": "small", "bench-middle": "middle", "bench-peak": "large"}[f.ID]]
		far := part != nil && part.ratio > veryFar*part.margin
		if s.Guessed && f.Severity == finding.Warn && f.ID != "bench-below-threshold" && !far {
			f.Severity = finding.Note
			f.Cause += " How its GPUs are joined was assumed, because the output does not say it: give the cluster with -c for a verdict."
		}
		if part != nil && part.name != "large" && s.Unsure != "" && !far && !parts["large"].slow() {
			f.Severity = finding.Note
			f.Cause = "Likely expected: " + s.Unsure + ". Else: " + f.Cause
		}
		if f.Evidence == nil {
			f.Evidence = []finding.Quote{}
		}
		list = append(list, *f)
	}
	if len(list) == 0 {
		if f := s.outside(); f != nil {
			list = append(list, *f)
		}
	}
	for i := range list {
		if list[0].ID == "bench-peak" && list[i].ID == "bench-middle" {
			list[i].ExplainedBy = "bench-peak"
		}
	}
	return list
}

// veryFar is beyond what a wrong guess about a machine explains.
const veryFar = 6

// quotesOf are the lines of some points.
func quotesOf(points []*CurvePoint) []finding.Quote {
	var list []finding.Quote
	for _, p := range points {
		if p.Quote.Text != "" && len(list) < maxEvidence {
			list = append(list, p.Quote)
		}
	}
	return list
}

// best is the greatest measured bus bandwidth and the greatest predicted one, in
// GB/s; the point of the first.
func (s *Curve) best() (got, want float64, at *CurvePoint) {
	for i := range s.Points {
		p := &s.Points[i]
		if p.BusBW > got {
			got, at = p.BusBW, p
		}
		want = math.Max(want, s.busBW(p.Size, p.Expected))
	}
	return got, want, at
}
