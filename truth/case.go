package truth

import (
	"fmt"
	"strings"

	"busbar/coll"
	"busbar/nccl"
	"busbar/predict"
	"busbar/result"
	"busbar/sim"
	"busbar/unit"
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
	pts, err := g.Points()
	if err != nil {
		return nil, err
	}
	place, err := g.Describe()
	if err != nil {
		return nil, err
	}
	v, assumed := g.version(place)
	if assumed != "" {
		place.Assumed = append(place.Assumed, assumed)
	}
	return newCase(g, pts, place, v, figures)
}

// newCase lets NCCL choose for the points of a group on a place.
func newCase(g *Group, pts []Point, place *Place, v nccl.Version, figures *sim.Figures) (*Case, error) {
	c := &Case{Group: g, Points: pts, Assumed: place.Assumed, machine: g.Machine()}
	var err error
	if c.Predictor, err = predict.New(place.Cluster, place.Layout, v, g.env(), figures); err != nil {
		return nil, err
	}
	c.class = c.Predictor.Class()
	for _, p := range pts {
		s, err := c.Predictor.Auto(p.Op)
		if err != nil {
			return nil, err
		}
		c.Settings, c.Ops = append(c.Settings, s), append(c.Ops, p.Op)
	}
	return c, nil
}

// version is the release that ran. One that is older or newer than those known is
// taken for the nearest, and one that nobody stated for a usual one.
func (g *Group) version(p *Place) (nccl.Version, string) {
	text, _, _ := strings.Cut(g.NCCL, " ")
	if v, err := nccl.ParseVersion(text); err == nil {
		switch {
		case v.Compare(nccl.Oldest) < 0:
			return nccl.Oldest, fmt.Sprintf("NCCL %s taken as %s", v, nccl.Oldest)
		case v.Compare(nccl.Newest) > 0:
			return nccl.Newest, fmt.Sprintf("NCCL %s taken as %s", v, nccl.Newest)
		}
		return v, ""
	}
	v := nccl.Version{Major: 2, Minor: 23, Patch: 4}
	for _, d := range p.Cluster.Types[0].Devices {
		if d.GPU != nil && d.GPU.SM >= 100 {
			v = nccl.Version{Major: 2, Minor: 27, Patch: 7}
		}
	}
	return v, "NCCL " + v.String()
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
	if env["NCCL_ALGO"] == "" {
		word, _, _ := strings.Cut(g.Algo, " ")
		if a, err := nccl.ParseAlgo(word); err == nil {
			env["NCCL_ALGO"] = a.String()
		}
	}
	return env
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

// Gather prepares all groups that count and tells which are left, and why.
func Gather(groups []Group, figures *sim.Figures) ([]*Case, []Left) {
	var cases []*Case
	var left []Left
	for i := range groups {
		g := &groups[i]
		out := Left{ID: g.ID, Points: max(1, len(g.Sizes)), Fair: true, Class: g.Class, Machine: g.Machine()}
		switch {
		case g.Anomalous:
			out.Reason = "anomalous: slow because something was wrong; not scored"
		case strings.EqualFold(g.Grade, "C"):
			out.Reason = "grade C: partly unknown or noisy; not scored"
		default:
			c, err := Prepare(g, figures)
			if err == nil {
				_, err = c.Predict(nil)
			}
			if err == nil {
				cases = append(cases, c)
				if n := len(g.Sizes) - len(c.Points); n > 0 {
					left = append(left, Left{ID: g.ID, Reason: fmt.Sprintf("%d sizes without a time or a bandwidth", n), Points: n, Fair: true, Class: g.Class, Machine: c.Machine()})
				}
				continue
			}
			out.Reason, out.Fair = err.Error(), false
		}
		left = append(left, out)
	}
	return cases, left
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
