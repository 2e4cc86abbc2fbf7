package doctor

import (
	"fmt"
	"math"
	"slices"

	"busbar.dev/coll"
	"busbar.dev/finding"
	"busbar.dev/internal/csvtable"
	"busbar.dev/unit"
)

// Threshold is what an operator asks of a machine before it is let into service.
type Threshold struct {
	Title    string     `json:"title" csv:"title"`
	Presets  []string   `json:"presets" csv:"presets"` // busbar's names of the machine
	Op       coll.Kind  `json:"op" csv:"op"`
	Nodes    int        `json:"nodes" csv:"nodes"`
	Min      unit.Bytes `csv:"min"`
	Max      unit.Bytes `csv:"max"`
	GBps     float64    `json:"busbw_GBps" csv:"busbw_GBps"`
	InPlace  bool       `json:"in_place,omitempty" csv:"in_place,optional"` // that half alone; else the mean of both
	Measured string     `json:"how" csv:"how"`
	Source   string     `json:"source" csv:"source"`
}

// Thresholds are those that operators publish, read in the files named, November 2026. AWS's checks print figures above what a node's NVLink
// carries and are left out.
func Thresholds() []Threshold { return csvtable.Must[Threshold]("thresholds.csv", thresholdTable) }

// Against is a curve held against a threshold.
type Against struct {
	Threshold
	Got    float64
	points []*CurvePoint
}

// Against finds the thresholds that a curve can be held against: those of its
// machine, its collective and its sizes. Sizes from half the smallest on count,
// for the curve is flat there.
func (s *Curve) Against() []Against {
	var list []Against
	for _, t := range Thresholds() {
		if t.Op != s.Sweep.Op || t.Nodes != s.Sweep.Nodes || !slices.Contains(t.Presets, s.Preset) {
			continue
		}
		a := Against{Threshold: t}
		sum := 0.0
		for i := range s.Points {
			p := &s.Points[i]
			if p.Size < t.Min/2 || p.Size > 2*t.Max {
				continue
			}
			both := p.BusBW
			if in := s.busBW(p.Size, p.InPlace); in > 0 {
				both = (both + in) / 2
				if t.InPlace {
					both = in
				}
			}
			sum += both
			a.points = append(a.points, p)
		}
		if n := len(a.points); n > 0 {
			a.Got = math.Round(100*sum/float64(n)) / 100
			list = append(list, a)
		}
	}
	return list
}

// below finds a curve that an operator would not let pass.
func (s *Curve) below() *finding.Finding {
	for _, a := range s.Against() {
		if a.Got >= a.GBps {
			continue
		}
		f := &finding.Finding{
			ID: "bench-below-threshold", Severity: finding.Warn, Confidence: repeats(a.GBps / a.Got), Reference: a.Source, Evidence: quotesOf(a.points),
			Title: fmt.Sprintf("Below what %s must give: %.4g GB/s, %.4g are asked for", a.Title, a.Got, a.GBps),
			Cause: fmt.Sprintf("The operator's own check of such a machine (%s) fails it below %.4g GB/s.", a.Measured, a.GBps),
			Fix:   "Repeat on other hosts; a host that fails alone goes back to the operator with this output.",
		}
		if f.Evidence == nil {
			f.Evidence = []finding.Quote{}
		}
		return f
	}
	return nil
}
