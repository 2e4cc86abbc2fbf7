package truth

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/internal/words"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/result"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// Case is a sweep ready to be predicted. Points are those of the sweep that have a time; Ops,
// Times and Settings are theirs.
type Case struct {
	Sweep     *result.Sweep
	Points    []*result.Point
	Ops       []coll.Op
	Times     []unit.Time
	Settings  []predict.Setting
	Predictor *predict.Predictor
	Assumed   []string
	Hosts     string   // of the cluster that it is predicted on, as the sweep names them; "" is the cluster's first
	Unused    []string // what the source states and the prediction cannot use

	machine, class string
}

// Machine is the sweep's, asked often.
func (c *Case) Machine() string { return c.machine }

// Prepare describes a sweep's cluster and lets NCCL choose for its points. The
// error says in words why it cannot be predicted.
func Prepare(s *result.Sweep) (*Case, error) {
	return new(shelf).prepare(s)
}

// newCase are the points of a sweep that have a time. The error says in words why there are none.
func newCase(s *result.Sweep) (*Case, error) {
	if s.Problem != "" {
		return nil, errors.New(s.Problem)
	}
	if s.Dtype != "" {
		if _, err := coll.ParseDtype(s.Dtype); err != nil {
			return nil, err
		}
	}
	if s.Ranks != s.Nodes*s.PerNode {
		return nil, fmt.Errorf("%s on %s with %s each; expected one rank a GPU", words.Plural(s.Ranks, "rank"),
			words.Plural(s.Nodes, "node"), words.Plural(s.PerNode, "GPU"))
	}
	c := &Case{Sweep: s, machine: machineOf(s)}
	for i := range s.Points {
		if p := &s.Points[i]; p.Out != nil && isTime(p.Out.Time.Mean.Micros()) {
			c.Points, c.Ops, c.Times = append(c.Points, p), append(c.Ops, callOf(s, p.Size)), append(c.Times, p.Out.Time.Mean)
		}
	}
	if len(c.Ops) == 0 {
		return nil, errors.New("no size with a time or a bandwidth")
	}
	return c, nil
}

// by lets NCCL choose for the points.
func (c *Case) by(p *predict.Predictor, assumed []string) (*Case, error) {
	c.Predictor, c.Assumed, c.class = p, assumed, p.Class()
	for _, op := range c.Ops {
		x, err := p.Auto(op)
		if err != nil {
			return nil, err
		}
		c.Settings = append(c.Settings, x)
	}
	return c, nil
}

// version is the release that ran, and what had to be assumed. One that is older or newer than
// those whose rules are known is taken for the oldest or the newest of them; one that nobody
// stated for a usual one: the figures were fitted so.
func version(s *result.Sweep, p *Place) (nccl.Version, string) {
	text, _, _ := strings.Cut(s.Library, " ")
	v, err := nccl.ParseVersion(text)
	if err == nil {
		return v, ""
	}
	if near, ok := nccl.Nearest(text); ok {
		return near, fmt.Sprintf("the rules of NCCL %s for %.40s, which are not known", near, text)
	}
	v = nccl.Version{Major: 2, Minor: 23, Patch: 4}
	for _, d := range p.Cluster.Types[0].Devices {
		if d.GPU != nil && d.GPU.SM >= 100 {
			v = nccl.Version{Major: 2, Minor: 27, Patch: 7}
		}
	}
	if text == "" {
		return v, fmt.Sprintf("NCCL %s; the source does not state the release", v)
	}
	return v, fmt.Sprintf("NCCL %s; %.40q is no release of %d.%d to %d.%d", v, text, nccl.Oldest.Major, nccl.Oldest.Minor,
		nccl.Newest.Major, nccl.Newest.Minor)
}

// settings are what the run set, as far as it changes what NCCL decides. Names of NICs
// are those of the machine, which the description does not have.
func settings(s *result.Sweep) map[string]string {
	env := map[string]string{}
	for k, v := range s.Env {
		switch k {
		case "NCCL_IB_HCA", "NCCL_SOCKET_IFNAME", "NCCL_TOPO_FILE":
		default:
			env[k] = v
		}
	}
	if a, ok := algo(s); ok && env["NCCL_ALGO"] == "" {
		env["NCCL_ALGO"] = a.String()
	}
	word, _, _ := strings.Cut(protoText(s), " ")
	if p, err := nccl.ParseProto(word); err == nil && env["NCCL_PROTO"] == "" {
		env["NCCL_PROTO"] = p.String()
	}
	return env
}

// algo is the algorithm that the source says ran; false where it says none that
// is known.
func algo(s *result.Sweep) (nccl.Algo, bool) {
	word, _, _ := strings.Cut(algoText(s), " ")
	a, err := nccl.ParseAlgo(word)
	return a, err == nil
}

// algoText is what the source says about the algorithm, "" where it says nothing.
func algoText(s *result.Sweep) string {
	if len(s.Points) == 0 || s.Points[0].Algo == "auto" {
		return ""
	}
	return s.Points[0].Algo
}

// Row is one point, measured and predicted.
type Row struct {
	Case      *Case
	Index     int
	Predicted unit.Time
	APE       float64 // |predicted − measured| / measured
	Margin    float64
	Bar       string // the row of bars.csv that the margin is of
	Limit     result.Limit
}

// Measured is the point's time.
func (r *Row) Measured() unit.Time { return r.Case.Times[r.Index] }

// With is the row with another prediction.
func (r Row) With(predicted unit.Time) Row {
	r.Predicted = predicted
	r.APE = math.Abs(float64(predicted-r.Measured())) / float64(r.Measured())
	return r
}

// Predict prices all points of a case under figures.
func (c *Case) Predict(f *sim.Figures) ([]Row, error) {
	if f != nil {
		c.Predictor.Figures = f
	}
	rows := make([]Row, len(c.Ops))
	for i, op := range c.Ops {
		run, err := c.Predictor.Price(op, c.Settings[i])
		if err != nil {
			return nil, err
		}
		rows[i] = Row{
			Case: c, Index: i, Margin: run.Margin, Bar: c.Predictor.BarName(op), Limit: run.Limit,
		}.With(run.Time)
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
			return nil, fmt.Errorf("%s: %w", c.Sweep.ID, err)
		}
		rows = append(rows, list...)
	}
	return rows, nil
}
