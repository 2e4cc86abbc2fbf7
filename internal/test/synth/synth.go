// Package synth makes the synthetic corpus that tests read where no real one is: measured points, training runs, tables
// of nccl-tests, logs of NCCL and of PyTorch jobs, healthy ones and ones with a planted fault.
//
// Nothing of it was measured or copied. Clusters come from the catalogue, what NCCL decides from its model (package
// nccl), times from the predictor, and texts from formatters of our own that follow the formats; hosts, addresses and
// figures are invented. A text says in its first line that it is synthetic where its format has room for that, else
// its name does. The same seed gives the same bytes.
//
// The readers under test are not imported here: what they read was written by somebody else.
package synth

import (
	"math"
	"math/rand/v2"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// Source is what every synthetic figure gives as the place it comes from.
const Source = "synthetic: made by busbar's internal/test/synth, measured nowhere"

// noise gives factors around 1 with the given relative spread, the same ones for the same seed.
func noise(seed uint64, spread float64) func() float64 {
	r := rand.New(rand.NewPCG(seed, 0x5eed))
	return func() float64 { return math.Exp(spread * r.NormFloat64()) }
}

// Machine is a synthetic cluster: nodes of a kind, and the words by which a publication would describe them.
type Machine struct {
	Name           string // the first word of its points' ids
	Nodes, PerNode int
	Spec           hardware.Spec
	Intra, Fabric  string
	Release        string // of NCCL
}

// Machines are of several generations and networks; two are of one kind, so that one teaches about the other.
func Machines() []Machine {
	return []Machine{
		{"synth1", 2, 8, hardware.Spec{
			GPU: "H100-SXM", Count: 8, Join: "nvswitch", NICs: 8, Port: 400 * unit.Gbps, Kind: cluster.InfiniBand,
			GDR: cluster.Yes,
		}, "NVLink4 NVSwitch", "InfiniBand NDR", "2.23.4"},
		{"synth2", 4, 8, hardware.Spec{
			GPU: "H100-SXM", Count: 8, Join: "nvswitch", NICs: 8, Port: 400 * unit.Gbps, Kind: cluster.InfiniBand,
			GDR: cluster.Yes,
		}, "NVLink4 NVSwitch", "InfiniBand NDR", "2.27.7"},
		{"synth3", 2, 8, hardware.Spec{
			GPU: "A100-SXM4-80GB", Count: 8, Join: "nvswitch", NICs: 8, Port: 200 * unit.Gbps, Kind: cluster.RoCE,
			GDR: cluster.Yes,
		}, "NVLink3 NVSwitch", "RoCEv2", "2.20.5"},
		{
			"synth4", 1, 8,
			hardware.Spec{GPU: "A100-SXM4-80GB", Count: 8, Join: "nvswitch"},
			"NVLink3 NVSwitch", "",
			"2.21.5",
		},
		{"synth5", 2, 4, hardware.Spec{
			GPU: "V100-PCIE-32GB", Count: 4, Join: "none", NICs: 1, Port: 100 * unit.Gbps, Kind: cluster.Ethernet,
			GDR: cluster.No,
		}, "PCIe 3.0, no NVLink", "plain TCP sockets", "2.18.6"},
	}
}

// Cluster builds the machine from the catalogue.
func (m *Machine) Cluster() (*cluster.Cluster, nccl.Layout, error) {
	c, err := m.Spec.Cluster(m.Nodes)
	if err != nil {
		return nil, nil, err
	}
	l, err := nccl.Block(c, m.Nodes, m.PerNode)
	return c, l, err
}

// Predictor predicts collectives of the machine by figures.
func (m *Machine) Predictor(f *sim.Figures) (*predict.Predictor, error) {
	c, l, err := m.Cluster()
	if err != nil {
		return nil, err
	}
	v, err := nccl.ParseVersion(m.Release)
	if err != nil {
		return nil, err
	}
	return predict.New(c, l, v, nil, f)
}
