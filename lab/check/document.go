package check

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"busbar.dev/lab"
	"busbar.dev/unit"
)

// Verdict is how good the predictions are, beside how good they have to be.
type Verdict struct {
	Score     Score   `json:"score"`
	MaxMedian float64 `json:"max_median"`
	MaxWorst  float64 `json:"max_worst"`
	MaxNoise  float64 `json:"max_noise"`
}

// Wrong reports whether nothing counts, an error is greater than allowed, or an order was predicted wrongly.
func (v *Verdict) Wrong() bool {
	s := &v.Score
	return s.Points == 0 || s.Median > v.MaxMedian || s.Worst > v.MaxWorst || len(s.Wrong) > 0
}

// verdict has the check's limits and no score yet.
func (c *Check) verdict() Verdict {
	return Verdict{MaxMedian: c.Median, MaxWorst: c.Worst, MaxNoise: c.Noise}
}

// Collectives is the document of collectives over layouts, algorithms and sizes.
type Collectives struct {
	Verdict
	Calibration Calibration `json:"calibration"`
	Points      []Point     `json:"points"`
	Skipped     []string    `json:"skipped"`

	scenarios []scenario
}

// Calibration is what a call and messages cost on this machine, at 16 MiB in use.
type Calibration struct {
	Call    unit.Time `json:"call_us"`
	Memory  Carrier   `json:"shared_memory"`
	Sockets Carrier   `json:"sockets"`
}

// Carrier is what a message and its bytes cost.
type Carrier struct {
	Latency unit.Time `json:"latency_us"`
	Send    float64   `json:"send_ns_per_byte"`
	Copy    float64   `json:"copy_ns_per_byte"`
	Reduce  float64   `json:"reduce_ns_per_byte"`
}

// Steps is the document of training steps.
type Steps struct {
	Verdict
	Model   string     `json:"model"`
	Scale   lab.Scale  `json:"scale"`
	Inside  lab.Inside `json:"inside"`
	Shrink  int        `json:"shrink"`
	Longer  float64    `json:"longer"` // a second of the cluster in the lab
	Compute unit.Time  `json:"compute_us"`
	Rows    []StepRow  `json:"rows"`
	Skipped []string   `json:"skipped"`
}

// StepRow is steps on one layout, with one compression, with or without overlap.
type StepRow struct {
	Point
	Compress         string    `json:"compress"`
	Overlap          bool      `json:"overlap"`
	Compute          unit.Time `json:"compute_us"`
	Exposed          unit.Time `json:"exposed_us"`
	PredictedExposed unit.Time `json:"predicted_exposed_us"`
}

// Planned is the document of a plan's order of hosts beside the given one, or of one job on several sets of hosts.
type Planned struct {
	Verdict
	Cluster string `json:"cluster"`
	Plan    string `json:"plan"`
	Given   string `json:"given_order"`
	Order   string `json:"plan_order"`
	// Placements are the sets of hosts; rows are called by them, and gains are over the first.
	Placements []string  `json:"placements,omitempty"`
	Scale      lab.Scale `json:"scale"`
	Rows       []PlanRow `json:"rows"`
	Model      string    `json:"model,omitempty"`
	Shrink     int       `json:"shrink,omitempty"`
	Longer     float64   `json:"longer,omitempty"` // a second of the cluster in the lab
	Steps      []PlanRow `json:"steps"`
}

// PlanRow is one order and algorithm for a collective or a step.
type PlanRow struct {
	Variant string `json:"way"`
	Builder string `json:"builder"`
	Point
	// Gain is how many times as fast it is as the given order with a flat ring.
	Gain          float64 `json:"gain"`
	PredictedGain float64 `json:"predicted_gain"`
	// Cluster is the gain that NCCL's ring is predicted to have on the cluster itself, with as many more bytes as its
	// links are faster; 0 unknown.
	Cluster float64 `json:"cluster_gain,omitempty"`
}

// sweep is points of all sizes in the form that `busbar validate` reads.
type sweep struct {
	ID         string    `json:"id"`
	Source     string    `json:"source"`
	Collective string    `json:"collective"`
	Dtype      string    `json:"dtype"`
	Nodes      int       `json:"nodes"`
	PerNode    int       `json:"gpus_per_node"`
	Ranks      int       `json:"n_ranks"`
	NICs       int       `json:"nics_per_node"`
	Gbps       float64   `json:"nic_gbps"`
	Fabric     string    `json:"fabric"`
	Algo       string    `json:"algo"`
	Tool       string    `json:"tool"`
	Sizes      []int64   `json:"sizes_bytes"`
	Time       []float64 `json:"time_us"`
	Predicted  []float64 `json:"predicted_us"`
	Class      string    `json:"hw_class"`
	Grade      string    `json:"grade"`
	Notes      string    `json:"notes"`
}

// WriteSweeps writes the points that count for `busbar validate`, a sweep a line.
func (d *Collectives) WriteSweeps(w io.Writer) error {
	var sweeps []*sweep
	byID := map[string]*sweep{}
	for i := range d.Points {
		p := &d.Points[i]
		if p.TooNoisy {
			continue
		}
		id := strings.Join([]string{"lab", strings.ReplaceAll(p.Scenario, " ", "_"), p.Layout, p.Algo}, "-")
		s := byID[id]
		if s == nil {
			s = d.newSweep(id, p)
			byID[id] = s
			sweeps = append(sweeps, s)
		}
		s.Sizes, s.Time, s.Predicted = append(s.Sizes, int64(p.Size)), append(s.Time, p.Measured.Micros()), append(s.Predicted, p.Predicted.Micros())
	}
	enc := json.NewEncoder(w)
	for _, s := range sweeps {
		if err := enc.Encode(s); err != nil {
			return err
		}
	}
	return nil
}

// newSweep is the sweep of a point, still without sizes.
func (d *Collectives) newSweep(id string, p *Point) *sweep {
	var nodes, each int
	fmt.Sscanf(p.Layout, "%dx%d", &nodes, &each)
	s := &sweep{
		ID: id, Source: "busbar lab check", Collective: p.Op, Dtype: "float32", Nodes: nodes, PerNode: each, Ranks: nodes * each, Fabric: "plain TCP",
		Algo: p.Algo, Tool: "busbar lab check", Class: "lab " + p.Scenario, Grade: "A", Notes: "measured in a lab on one machine; predicted by the sockets model",
	}
	for _, x := range d.scenarios {
		if x.name == p.Scenario {
			if plan, err := lab.New(x.cluster, x.options); err == nil && len(plan.NICs) > 0 {
				s.NICs, s.Gbps = len(plan.Nodes[0].NICs), plan.NICs[0].Rate.Gbps()
			}
		}
	}
	return s
}
