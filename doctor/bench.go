package doctor

import (
	"fmt"
	"math"
	"slices"

	"busbar.dev/coll"
	"busbar.dev/finding"
	"busbar.dev/predict"
	"busbar.dev/unit"
)

// Sweep is a collective measured over sizes, beside what was predicted for it.
type Sweep struct {
	Source  string       `json:"source"`
	Op      coll.Kind    `json:"op"`
	Dtype   coll.Dtype   `json:"-"`
	Ranks   int          `json:"ranks"`
	Nodes   int          `json:"nodes,omitempty"` // 0 unknown
	Machine string       `json:"machine"`         // the cluster that it was held against
	Preset  string       `json:"preset,omitempty"`
	GPU     string       `json:"gpu,omitempty"`
	NCCL    string       `json:"nccl,omitempty"`  // release that was predicted
	Class   string       `json:"class,omitempty"` // of the prediction, as predict names it
	NICs    int          `json:"nics_per_node,omitempty"`
	NICRate unit.Rate    `json:"-"`
	Points  []SweepPoint `json:"points"`
	// Assumed is what nobody stated; such a sweep gives notes only where it matters.
	Assumed []string `json:"assumed,omitempty"`
	// Guessed says that how the GPUs are joined was assumed, not only details.
	Guessed bool  `json:"guessed,omitempty"`
	Wrong   int64 `json:"wrong"` // values
	// Unsure says why small and middle times are less sure than those that the model
	// was fitted on; then only what is far off is more than a note.
	Unsure string `json:"unsure,omitempty"`
	// Unjudged says why nothing was predicted.
	Unjudged string `json:"unjudged,omitempty"`
}

// SweepPoint is one size.
type SweepPoint struct {
	Size     unit.Bytes    `json:"size_bytes"`
	Time     unit.Time     `json:"-"` // out of place, or in place where only that was measured
	InPlace  unit.Time     `json:"-"` // 0 not measured
	Expected unit.Time     `json:"-"` // 0 not predicted
	Margin   float64       `json:"margin,omitempty"`
	Algo     string        `json:"algo,omitempty"`
	Quote    finding.Quote `json:"-"`

	TimeUS     float64 `json:"time_us"`
	InPlaceUS  float64 `json:"in_place_us,omitempty"`
	ExpectedUS float64 `json:"predicted_us,omitempty"`
	BusBW      float64 `json:"busbw_GBps"`
}

// Fill sets the figures that follow from the others.
func (s *Sweep) Fill() {
	for i := range s.Points {
		p := &s.Points[i]
		p.TimeUS, p.InPlaceUS, p.ExpectedUS = p.Time.Micros(), p.InPlace.Micros(), p.Expected.Micros()
		p.BusBW = s.busBW(p.Size, p.Time)
	}
}

// busBW is nccl-tests' figure in GB/s.
func (s *Sweep) busBW(size unit.Bytes, t unit.Time) float64 {
	if t <= 0 {
		return 0
	}
	return coll.Op{Kind: s.Op, Bytes: size, Type: s.Dtype}.BusBW(s.Ranks, t).GBps()
}

// Ratio is how many times as long as predicted a point took, 0 unknown.
func (p *SweepPoint) Ratio() float64 {
	if p.Expected <= 0 || p.Time <= 0 {
		return 0
	}
	return float64(p.Time) / float64(p.Expected)
}

// slack is what measurements may lie beyond the margin before somebody is told:
// one of ten does so by its definition.
const slack = 1.15

// Out reports whether a point took longer than its error bar allows.
func (p *SweepPoint) Out() bool { return p.Ratio() > p.Margin*slack && p.Margin > 0 }

// stretchOf is a part of the curve: small, middle or large.
type stretchOf struct {
	name   string
	points []*SweepPoint
	ratio  float64 // median
	margin float64 // median
	out    int
}

// slow reports whether the part as a whole is beyond its error bar.
func (p *stretchOf) slow() bool {
	return p.ratio > 0 && 2*p.out > len(p.points) && p.ratio > slack*p.margin
}

// parts cuts a sweep by size.
func (s *Sweep) parts() map[string]*stretchOf {
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
		part.ratio, part.margin = median(ratios), median(margins)
	}
	return list
}

func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// Bench judges sweeps: each against its prediction and what operators publish.
func Bench(sweeps []*Sweep) *Report {
	r := &Report{}
	for _, s := range sweeps {
		s.Fill()
		r.Lines += len(s.Points)
		if !slices.Contains(r.Sources, s.Source) {
			r.Sources = append(r.Sources, s.Source)
		}
		r.Findings = append(r.Findings, s.judge(len(sweeps) > 1)...)
	}
	order(r.Findings)
	return r
}

// judge is what a sweep shows.
func (s *Sweep) judge(several bool) []finding.Finding {
	var list []finding.Finding
	parts := s.parts()
	for _, f := range []*finding.Finding{s.wrongValues(), s.peak(parts), s.middle(parts), s.latency(parts), s.below(), s.dip(), s.falls(), s.places(), s.fast(parts)} {
		if f == nil {
			continue
		}
		if several {
			f.Where = fmt.Sprintf("%s of %d ranks on %s", s.Op, s.Ranks, s.Machine)
		}
		part := parts[map[string]string{"bench-latency": "small", "bench-middle": "middle", "bench-peak": "large"}[f.ID]]
		far := part != nil && part.ratio > veryFar*part.margin
		if s.Guessed && f.Severity == finding.Warn && f.ID != "bench-below-threshold" && !far {
			f.Severity, f.Confidence = finding.Note, min(f.Confidence, 0.4)
			f.Cause += " How its GPUs are joined was assumed, because the output does not say it: give the cluster with -c for a verdict."
		}
		if part != nil && part.name != "large" && s.Unsure != "" && !far && !parts["large"].slow() {
			f.Severity, f.Confidence = finding.Note, min(f.Confidence, 0.4)
			f.Cause = "Likely expected: " + s.Unsure + ". Else: " + f.Cause
		}
		if f.Evidence == nil {
			f.Evidence = []finding.Quote{}
		}
		list = append(list, *f)
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
func quotesOf(points []*SweepPoint) []finding.Quote {
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
func (s *Sweep) best() (got, want float64, at *SweepPoint) {
	for i := range s.Points {
		p := &s.Points[i]
		if p.BusBW > got {
			got, at = p.BusBW, p
		}
		want = math.Max(want, s.busBW(p.Size, p.Expected))
	}
	return got, want, at
}
