package truth

import (
	"fmt"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/result"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// Case is a group ready to be predicted.
type Case struct {
	*Group
	Points    []Point
	Settings  []predict.Setting // of each point
	Ops       []coll.Op         // of each point
	Predictor *predict.Predictor
	Assumed   []string

	machine, class string
}

// Machine is the group's, asked often.
func (c *Case) Machine() string { return c.machine }

// Prepare describes a group's cluster and lets NCCL choose for its points. The
// error says in words why it cannot be predicted.
func Prepare(g *Group, figures *sim.Figures) (*Case, error) {
	return new(shelf).prepare(g, figures)
}

// newCase lets NCCL choose for the points of a group on a place.
func newCase(g *Group, pts []Point, p *predict.Predictor, assumed []string) (*Case, error) {
	c := &Case{Group: g, Points: pts, Assumed: assumed, Predictor: p, machine: g.Machine(), class: p.Class()}
	for _, p := range pts {
		s, err := c.Predictor.Auto(p.Op)
		if err != nil {
			return nil, err
		}
		c.Settings, c.Ops = append(c.Settings, s), append(c.Ops, p.Op)
	}
	return c, nil
}

// version is the release that ran, and what had to be assumed. One that nobody stated, or
// that is older or newer than those known, is taken for a usual one: the figures were fitted so.
func (g *Group) version(p *Place) (nccl.Version, string) {
	text, _, _ := strings.Cut(g.NCCL, " ")
	if v, err := nccl.ParseVersion(text); err == nil {
		return v, ""
	}
	v := nccl.Version{Major: 2, Minor: 23, Patch: 4}
	for _, d := range p.Cluster.Types[0].Devices {
		if d.GPU != nil && d.GPU.SM >= 100 {
			v = nccl.Version{Major: 2, Minor: 27, Patch: 7}
		}
	}
	if text == "" {
		return v, fmt.Sprintf("NCCL %s; the source does not state the release", v)
	}
	return v, fmt.Sprintf("NCCL %s; %.40q is no release of %d.%d to %d.%d", v, text, nccl.Oldest.Major, nccl.Oldest.Minor, nccl.Newest.Major, nccl.Newest.Minor)
}

// env is what the run set, as far as it changes what NCCL decides. Names of NICs
// are those of the machine, which the description does not have.
func (g *Group) env() map[string]string {
	env := map[string]string{}
	for k, v := range g.Env {
		switch k {
		case "NCCL_IB_HCA", "NCCL_SOCKET_IFNAME", "NCCL_TOPO_FILE", "NCCL_P2P_LEVEL", "NCCL_NET_GDR_LEVEL":
		default:
			env[k] = v
		}
	}
	if a, ok := g.algo(); ok && env["NCCL_ALGO"] == "" {
		env["NCCL_ALGO"] = a.String()
	}
	return env
}

// algo is the algorithm that the source says ran; false where it says none that
// is known.
func (g *Group) algo() (nccl.Algo, bool) {
	word, _, _ := strings.Cut(g.Algo, " ")
	a, err := nccl.ParseAlgo(word)
	return a, err == nil
}

// Row is one point, measured and predicted.
type Row struct {
	Case      *Case
	Index     int
	Predicted unit.Time
	APE       float64 // |predicted − measured| / measured
	Margin    float64
	Limit     result.Limit
}

// Measured is the point's time.
func (r *Row) Measured() unit.Time { return r.Case.Points[r.Index].Time }

// Predict prices all points of a case under figures.
func (c *Case) Predict(f *sim.Figures) ([]Row, error) {
	if f != nil {
		c.Predictor.Figures = f
	}
	rows := make([]Row, len(c.Points))
	for i, p := range c.Points {
		run, err := c.Predictor.Price(p.Op, c.Settings[i])
		if err != nil {
			return nil, err
		}
		d := float64(run.Time-p.Time) / float64(p.Time)
		rows[i] = Row{Case: c, Index: i, Predicted: run.Time, APE: max(d, -d), Margin: run.Margin, Limit: run.Limit}
	}
	return rows, nil
}

// Rows predicts all points of all cases under figures; nil keeps those that the
// cases have.
func Rows(cases []*Case, f *sim.Figures) ([]Row, error) {
	var rows []Row
	for _, c := range cases {
		list, err := c.Predict(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.ID, err)
		}
		rows = append(rows, list...)
	}
	return rows, nil
}
