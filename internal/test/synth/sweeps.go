package synth

import (
	"encoding/json"
	"fmt"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// Sweep is one in the written form of published ones: one line of JSON.
type Sweep struct {
	ID         string    `json:"id"`
	Synthetic  bool      `json:"synthetic"`
	Source     string    `json:"source"`
	Collective string    `json:"collective"`
	Dtype      string    `json:"dtype"`
	Nodes      int       `json:"nodes"`
	PerNode    int       `json:"gpus_per_node"`
	Ranks      int       `json:"n_ranks"`
	GPU        string    `json:"gpu"`
	Intra      string    `json:"intra"`
	NICs       *int      `json:"nics_per_node"`
	Gbps       *float64  `json:"nic_gbps"`
	Fabric     string    `json:"fabric,omitempty"`
	NCCL       string    `json:"nccl_version"`
	Tool       string    `json:"tool"`
	Sizes      []int64   `json:"sizes_bytes"`
	Micros     []float64 `json:"time_us"`
	Class      string    `json:"hw_class"`
	Grade      string    `json:"grade"`
}

// gbps is the rate of a port in Gb/s.
func (m *Machine) gbps() float64 { return float64(m.Spec.Port) / float64(unit.Gbps) }

// Sizes are those of a sweep of so many points, from 1 KiB in steps of a factor.
func Sizes(n, factor int) []unit.Bytes {
	var list []unit.Bytes
	for size := unit.KiB; len(list) < n; size *= unit.Bytes(factor) {
		list = append(list, size)
	}
	return list
}

// Sweeps are a machine's sweeps of collectives, timed by figures, with noise of the given spread.
func (m *Machine) Sweeps(f *sim.Figures, spread float64, sizes []unit.Bytes, kinds ...coll.Kind) ([]Sweep, error) {
	p, err := m.Predictor(f)
	if err != nil {
		return nil, err
	}
	off := noise(uint64(m.Name[len(m.Name)-1]), spread)
	var list []Sweep
	for _, k := range kinds {
		g := Sweep{
			ID: fmt.Sprintf("%s-%s-%dx%d", m.Name, k, m.Nodes, m.PerNode), Synthetic: true, Source: Source,
			Collective: k.String(), Dtype: "float",
			Nodes: m.Nodes, PerNode: m.PerNode, Ranks: m.Nodes * m.PerNode, GPU: m.Spec.GPU, Intra: m.Intra, Fabric: m.Fabric,
			NCCL: m.Release,
			Tool: "synthetic nccl-tests", Class: "synthetic " + m.Spec.GPU, Grade: "A",
		}
		if m.Spec.NICs > 0 {
			gbps := m.gbps()
			g.NICs, g.Gbps = &m.Spec.NICs, &gbps
		}
		for _, size := range sizes {
			op := coll.Op{Kind: k, Bytes: size, Type: coll.Float}
			s, err := p.Auto(op)
			if err != nil {
				return nil, err
			}
			run, err := p.Price(op, s)
			if err != nil {
				return nil, err
			}
			g.Sizes, g.Micros = append(g.Sizes, int64(size)), append(g.Micros, run.Time.Seconds()*1e6*off())
		}
		list = append(list, g)
	}
	return list, nil
}

// Lines writes values as JSON, one a line.
func Lines[T any](list []T) (string, error) {
	var b strings.Builder
	for _, v := range list {
		text, err := json.Marshal(v)
		if err != nil {
			return "", err
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	return b.String(), nil
}
