package doctor

import (
	"io"

	"busbar.dev/calibrate/truth"
	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/finding"
	"busbar.dev/predict"
	"busbar.dev/unit"
)

// NewSweep predicts a measured case, each point by what NCCL would take.
func NewSweep(c *truth.Case, source string) (*Sweep, error) {
	rows, err := c.Predict(nil)
	if err != nil {
		return nil, err
	}
	s := &Sweep{
		Source: source, Ranks: c.Ranks, Nodes: c.Nodes, GPU: c.GPU, Machine: c.Predictor.Cluster.Name, Class: c.Predictor.Class(), NCCL: c.Predictor.Plan.Version.String(), Assumed: c.Assumed,
	}
	if s.Ranks == 0 {
		s.Ranks = c.Nodes * c.PerNode
	}
	if t := c.Predictor.Cluster.TypeOf(0); t != nil {
		s.NICs, s.NICRate = nicsOf(t)
	}
	for i, r := range rows {
		p := c.Points[i]
		s.Op, s.Dtype = p.Op.Kind, p.Op.Type
		s.Points = append(s.Points, SweepPoint{Size: p.Op.Bytes, Time: p.Time, Expected: r.Predicted, Margin: r.Margin, Algo: c.Settings[i].Algo})
	}
	if !predict.Measured(s.Class) {
		s.Guessed = true // nobody has measured such a machine: no verdict
		s.Assumed = append(s.Assumed, "the margins of the widest class; nobody has published measurements of "+s.Class)
	}
	return s, nil
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

// Line sets what the NICs of a cluster allow, for sweeps that nothing predicts: a
// ring over all nodes moves its bytes through every node's NICs, so bus bandwidth is
// at most the rate of one node. Only large sizes are bound by it.
func (s *Sweep) Line(c *cluster.Cluster) {
	t := c.TypeOf(0)
	if t == nil || s.Nodes < 2 {
		return
	}
	if s.NICs, s.NICRate = nicsOf(t); s.NICs == 0 || s.NICRate <= 0 {
		return
	}
	line := float64(s.NICs) * float64(s.NICRate)
	for i := range s.Points {
		p := &s.Points[i]
		if predict.SizeClass(p.Size) != "large" {
			continue
		}
		one := coll.Op{Kind: s.Op, Bytes: p.Size, Type: s.Dtype}.BusBW(s.Ranks, unit.Second)
		p.Expected, p.Margin = unit.Time(float64(unit.Second)*float64(one)/line), ownMargin
	}
}

// ownMargin is how far below line rate sockets on busy processors may stay.
const ownMargin = 2

// BenchJSON writes a report of sweeps with their curves.
func BenchJSON(w io.Writer, r *Report, sweeps []*Sweep) error {
	type held struct {
		Title    string  `json:"title"`
		Asked    float64 `json:"asked_GBps"`
		Measured float64 `json:"measured_GBps"`
		How      string  `json:"how"`
		Source   string  `json:"source"`
	}
	type curve struct {
		*Sweep
		Thresholds []held `json:"thresholds"`
	}
	d := struct {
		document
		Sweeps []curve `json:"sweeps"`
	}{document: document{r.Findings, !finding.Serious(r.Findings), r.Lines, r.Unknown, r.Sources, nil}}
	if d.Findings == nil {
		d.Findings = []finding.Finding{}
	}
	for _, s := range sweeps {
		k := curve{Sweep: s, Thresholds: []held{}}
		for _, a := range s.Against() {
			k.Thresholds = append(k.Thresholds, held{a.Title, a.GBps, a.Got, a.Measured, a.Source})
		}
		d.Sweeps = append(d.Sweeps, k)
	}
	return indented(w, d)
}
