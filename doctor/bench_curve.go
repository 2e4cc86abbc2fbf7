package doctor

import (
	"busbar.dev/calibrate/truth"
	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/finding"
	"busbar.dev/predict"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// NewCurve predicts a measured case, each point by what NCCL would take.
func NewCurve(c *truth.Case) (*Curve, error) {
	rows, err := c.Predict(nil)
	if err != nil {
		return nil, err
	}
	s := &Curve{Sweep: c.Sweep, Machine: c.Predictor.Cluster.Name, Class: c.Predictor.Class(), NCCL: c.Predictor.Plan.Version.String(), Assumed: c.Assumed}
	if c.Hosts != "" {
		s.Machine += " (" + c.Hosts + ")"
	}
	if t := c.Predictor.Cluster.TypeOf(c.Predictor.Layout[0].Host); t != nil {
		s.NICs, s.NICRate = nicsOf(t)
	}
	for i, r := range rows {
		p := s.point(c.Points[i])
		p.Expected, p.Margin, p.Algo = r.Predicted, r.Margin, c.Settings[i].Algo
		s.Points = append(s.Points, p)
	}
	if !predict.Measured(s.Class) {
		s.Guessed = true // nobody has measured such a machine: no verdict
		s.Assumed = append(s.Assumed, "the margins of the widest class; nobody has published measurements of "+s.Class)
	}
	s.lies(c)
	return s, nil
}

// Unpredicted is a curve of which nothing is predicted, for a reason. c bounds it where it is
// known; nil where it is not.
func Unpredicted(s *result.Sweep, machine, why string, c *cluster.Cluster) *Curve {
	x := &Curve{Sweep: s, Machine: machine, Unjudged: why}
	for i := range s.Points {
		if p := &s.Points[i]; p.Out != nil {
			x.Points = append(x.Points, x.point(p))
		}
	}
	if c != nil {
		x.line(c)
	}
	return x
}

// point is the measured part of a point.
func (s *Curve) point(p *result.Point) CurvePoint {
	x := CurvePoint{Size: p.Size, Time: p.Out.Mean()}
	if p.In != nil {
		x.InPlace = p.In.Mean()
	}
	x.BusBW = s.busBW(x.Size, x.Time)
	return x
}

// nicsOf counts a node's NICs and gives the rate of one.
func nicsOf(t *cluster.NodeType) (n int, rate unit.Rate) {
	for _, i := range t.Of(cluster.NIC) {
		nic := t.Devices[i].NIC
		if nic == nil {
			continue
		}
		n++
		for _, p := range nic.Ports {
			rate = max(rate, p.Rate.Value)
		}
	}
	return n, rate
}

// line sets what the NICs of a cluster allow, for curves that nothing predicts: a
// ring over all nodes moves its bytes through every node's NICs, so bus bandwidth is
// at most the rate of one node. Only large sizes are bound by it.
func (s *Curve) line(c *cluster.Cluster) {
	t := c.TypeOf(0)
	if t == nil || s.Sweep.Nodes < 2 {
		return
	}
	if s.NICs, s.NICRate = nicsOf(t); s.NICs == 0 || s.NICRate <= 0 {
		return
	}
	line := float64(s.NICs) * float64(s.NICRate)
	for i := range s.Points {
		p := &s.Points[i]
		op, err := s.Sweep.Operation(p.Size)
		if err != nil || predict.SizeClass(p.Size) != "large" {
			continue
		}
		one := op.BusBW(s.Sweep.Ranks, unit.Second)
		p.Expected, p.Margin = unit.Time(float64(unit.Second)*float64(one)/line), ownMargin
	}
}

// ownMargin is how far below line rate sockets on busy processors may stay.
const ownMargin = 2

// curveDoc is a curve as --json prints it.
type curveDoc struct {
	Source     string         `json:"source"`
	Op         coll.Kind      `json:"op"`
	Ranks      int            `json:"ranks"`
	Nodes      int            `json:"nodes,omitempty"` // 0 unknown
	Machine    string         `json:"machine"`
	Preset     string         `json:"preset,omitempty"`
	GPU        string         `json:"gpu,omitempty"`
	NCCL       string         `json:"nccl,omitempty"`
	Class      string         `json:"class,omitempty"`
	NICs       int            `json:"nics_per_node,omitempty"`
	Points     []curvePoint   `json:"points"`
	Assumed    []string       `json:"assumed,omitempty"`
	Guessed    bool           `json:"guessed,omitempty"`
	Wrong      int64          `json:"wrong"` // values
	Unsure     string         `json:"unsure,omitempty"`
	On         string         `json:"lies_on,omitempty"` // another algorithm's curve than the predicted one's
	Unjudged   string         `json:"unjudged,omitempty"`
	Thresholds []thresholdDoc `json:"thresholds"`
}

type curvePoint struct {
	Size     unit.Bytes `json:"size_bytes"`
	Margin   float64    `json:"margin,omitempty"`
	Algo     string     `json:"algo,omitempty"`
	Time     float64    `json:"time_us"`
	InPlace  float64    `json:"in_place_us,omitempty"`
	Expected float64    `json:"predicted_us,omitempty"`
	BusBW    float64    `json:"busbw_GBps"`
}

type thresholdDoc struct {
	Title    string  `json:"title"`
	Asked    float64 `json:"asked_GBps"`
	Measured float64 `json:"measured_GBps"`
	How      string  `json:"how"`
	Source   string  `json:"source"`
}

func (s *Curve) document() curveDoc {
	d := curveDoc{
		Source: s.Sweep.File, Op: s.Sweep.Op, Ranks: s.Sweep.Ranks, Nodes: s.Sweep.Nodes, Machine: s.Machine, Preset: s.Preset, GPU: s.Sweep.GPU(),
		NCCL: s.NCCL, Class: s.Class, NICs: s.NICs, Assumed: s.Assumed, Guessed: s.Guessed, Wrong: s.wrong(), Unsure: s.Unsure, On: s.On, Unjudged: s.Unjudged, Thresholds: []thresholdDoc{},
	}
	for _, p := range s.Points {
		d.Points = append(d.Points, curvePoint{p.Size, p.Margin, p.Algo, p.Time.Micros(), p.InPlace.Micros(), p.Expected.Micros(), p.BusBW})
	}
	for _, a := range s.Against() {
		d.Thresholds = append(d.Thresholds, thresholdDoc{a.Title, a.GBps, a.Got, a.Measured, a.Source})
	}
	return d
}

// BenchDocument is a report of curves as --json prints it.
type BenchDocument struct {
	Document
	Sweeps []curveDoc `json:"sweeps"`
}

// BenchDocument is what is printed of a report of curves.
func (r *Report) BenchDocument(curves []*Curve) BenchDocument {
	d := BenchDocument{Document: Document{Findings: r.Findings, Healthy: !finding.Serious(r.Findings), Lines: r.Lines, Unknown: r.Unknown, Sources: r.Sources}}
	if d.Findings == nil {
		d.Findings = []finding.Finding{}
	}
	for _, s := range curves {
		d.Sweeps = append(d.Sweeps, s.document())
	}
	return d
}
