package predict

import (
	"math"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/unit"
)

// forkCase is a published run on a machine of which nobody says a fact that decides, and what the run says about it.
type forkCase struct {
	name       string
	spec       hardware.Spec
	preset     string // in place of spec
	nodes, per int
	op         coll.Kind
	size       unit.Bytes
	env        map[string]string
	launch     string
	question   string // words of the branches
	branch     int    // that was measured
	us         float64
	source     string
}

var forkCases = []forkCase{
	{
		"2 RTX 2080 Ti behind a switch, without a bridge",
		hardware.Spec{GPU: "rtx2080ti", Count: 2, Behind: 2},
		"", 1, 2,
		coll.AllReduce, unit.GiB, nil, "-g 2", "bridge", 0, 268588, "autodl, nccl-tests of two RTX 2080 Ti",
	},
	{
		"4 RTX 4090 with a patched driver",
		hardware.Spec{},
		"4xrtx4090", 1, 4, coll.AllReduce, unit.GiB,
		map[string]string{"NCCL_P2P_LEVEL": "SYS"},
		"", "P2P", 0, 64e3, "four RTX 4090 whose driver allows peer access",
	},
	{
		"4 RTX 5090, without peer access",
		hardware.Spec{GPU: "rtx5090", Count: 4, Sockets: 1},
		"", 1, 4,
		coll.AllReduce, 128 * unit.MiB, nil, "-g 4", "P2P", 0, 7384.4, "nccl-tests of four RTX 5090 on EPYC 9004",
	},
	{
		"2 L40S, with peer access",
		hardware.Spec{GPU: "l40s", Count: 2},
		"", 1, 2,
		coll.AllReduce, 512 * unit.MiB, nil, "", "P2P", 0, 26700, "ai-dynamo/aiconfigurator, NCCL 2.27.3",
	},
	{
		"4 V100 PCIe behind a switch, with peer access",
		hardware.Spec{GPU: "v100-pcie-32", Count: 4, Behind: 4},
		"", 1, 4,
		coll.AllReduce, 128 * unit.MiB, nil, "", "P2P", 0, 21410, "University of Sheffield, nccl-tests of four V100 PCIe",
	},
	{
		"Baskerville, GPUs of the NIC's socket or of the other",
		hardware.Spec{},
		"baskerville", 2, 2,
		coll.AllReduce, 1_320_000_000, nil, "", "GPUs", 1, 309e3, "The Impact of GPU Networking (Part 2), 2025",
	},
	{
		"H100 and RoCE, GPUDirect off",
		hardware.Spec{
			GPU: "h100", Count: 4, NICs: 1, Port: 400 * unit.Gbps,
			Kind: cluster.RoCE,
		},
		"", 2, 1,
		coll.AllReduce, unit.GiB,
		map[string]string{"NCCL_ALGO": "RING"},
		"chosen", "GPUDirect", 1, 71024,
		"github.com/CCI-MOC/roce-testing",
	},
	{
		"p5 with a plugin of 2023",
		hardware.Spec{},
		"aws-p5", 2, 8,
		coll.AllReduce, 4, nil, "", "aws-ofi-nccl", 1, 202.2, "aws-samples/awsome-distributed-training",
	},
	{
		"p5 with a plugin of 2025",
		hardware.Spec{},
		"aws-p5", 2, 8,
		coll.AllReduce, 128, nil, "", "aws-ofi-nccl", 0, 68.37, "aws-k8s-tester, pull request 585",
	},
	{
		"GH200 and Slingshot without the plugin",
		hardware.Spec{},
		"alps-gh200", 2, 4,
		coll.AllReduce, 4_000_000_000, nil, "torch", "plugin", 1, 4e9 / 2.019e3, "GH200 nodes of CSCS, torch",
	},
	{
		"GH200 and Slingshot with the plugin",
		hardware.Spec{},
		"alps-gh200", 2, 4,
		coll.AllReduce, 4_000_000_000, nil, "torch", "plugin", 0, 4e9 / 52.186e3, "GH200 nodes of CSCS, torch",
	},
	{
		"A3 without GPUDirect-TCPX",
		hardware.Spec{},
		"gcp-a3-high", 2, 8,
		coll.AllReduce, 2 * unit.GiB, nil, "", "plugin", 1, 1.875 * 2147.5e3 / 19.39, "skypilot, examples of GPUDirect-TCPX",
	},
	{
		"8 H200 whose switches reduce",
		hardware.Spec{GPU: "h200", Count: 8},
		"", 1, 8,
		coll.AllReduce, 8 * unit.GiB, nil, "", "NVLS", 0, 1.75 * 8589.9e3 / 473.1, "stas00/ml-engineering, NCCL 2.27.7",
	},
	{
		"8 H200 whose switches do not reduce",
		hardware.Spec{GPU: "h200", Count: 8},
		"", 1, 8,
		coll.AllReduce, 8 * unit.GiB, nil, "", "NVLS", 1, 1.75 * 8589.9e3 / 365.6, "stas00/ml-engineering, NCCL 2.27.7",
	},
}

// Where a fact decides that nobody states, both branches are printed, and what was measured is inside the bar of its
// own in eleven cases of thirteen or more, as bars are to hold nine of ten.
func TestForks(t *testing.T) {
	outside := 0
	for _, x := range forkCases {
		r := x.row(t)
		if len(r.Branches) != 2 || !strings.Contains(r.Branches[0].If+r.Branches[1].If, x.question) {
			t.Errorf("%s: %v to %v and branches %+v; expected two about %s", x.name, r.Low, r.High, r.Branches, x.question)
			continue
		}
		b := r.Branches[x.branch]
		ratio := b.Time.Micros() / x.us
		t.Logf("%s: %q %v (×%.2f), measured %.0f us (%s): ratio %.2f; else %v", x.name, b.If, b.Time,
			float64(b.High)/float64(b.Time), x.us, x.source, ratio, r.Branches[1-x.branch].Time)
		if math.Abs(math.Log(ratio)) > math.Log(float64(b.High)/float64(b.Time)) {
			outside++
		}
	}
	if most := 2 * len(forkCases) / 13; outside > most {
		t.Errorf("%d of %d measured times are outside of their branch's bar; expected %d at most", outside, len(forkCases),
			most)
	}
}

// row predicts the case.
func (x *forkCase) row(t *testing.T) Row {
	t.Helper()
	c, err := x.spec.Cluster(x.nodes)
	if x.preset != "" {
		c, err = hardware.Preset(x.preset, x.nodes)
	}
	if err != nil {
		t.Fatalf("%s: %v", x.name, err)
	}
	l, err := nccl.Block(c, x.nodes, x.per)
	if err != nil {
		t.Fatalf("%s: %v", x.name, err)
	}
	p, err := New(c, l, nccl.Newest, x.env, nil)
	if err != nil {
		t.Fatalf("%s: %v", x.name, err)
	}
	p.Conditions, _ = ParseLaunch(x.launch)
	p.Chosen = x.launch == "chosen"
	a, err := p.AskSide(Side{}, Query{Kind: x.op, Type: coll.Float, Sizes: []unit.Bytes{x.size}})
	if err != nil {
		t.Fatalf("%s: %v", x.name, err)
	}
	return a.Rows[0]
}
