package truth

import (
	"fmt"
	"slices"
	"strings"

	"busbar/nccl"
	"busbar/predict"
	"busbar/sim"
	"busbar/unit"
)

// Case is a group ready to be predicted.
type Case struct {
	*Group
	Points    []Point
	Settings  []predict.Setting // of each point
	Predictor *predict.Predictor
	Assumed   []string
}

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
	c := &Case{Group: g, Points: pts, Assumed: place.Assumed}
	v, assumed := g.version(place)
	if assumed != "" {
		c.Assumed = append(c.Assumed, assumed)
	}
	if c.Predictor, err = predict.New(place.Cluster, place.Layout, v, g.env(), figures); err != nil {
		return nil, err
	}
	for _, p := range pts {
		s, err := c.Predictor.Auto(p.Op)
		if err != nil {
			return nil, err
		}
		c.Settings = append(c.Settings, s)
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
		for _, word := range strings.FieldsFunc(g.Algo, func(r rune) bool { return r == ' ' || r == '(' }) {
			if a, err := nccl.ParseAlgo(word); err == nil {
				env["NCCL_ALGO"] = a.String()
			}
			break
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
		rows[i] = Row{Case: c, Index: i, Predicted: run.Time, APE: max(d, -d), Margin: run.Margin}
	}
	return rows, nil
}

// Quantile is the q-quantile of a list, which it sorts.
func Quantile(list []float64, q float64) float64 {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[min(len(list)-1, int(q*float64(len(list))))]
}
