package nccl

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// golden is a vector that another implementation of ncclTopoTuneModel (NCCL 2.30
// src/graph/tuning.cc) computed: printed latency and bandwidth by
// algorithm, LL/LL128/Simple, and choices.
type golden struct {
	name   string
	comm   Comm
	graphs Graphs
	// cells: "AllReduce Ring": "15.0/80.6 40.6/189.3 56.0/205.7"; one cell alone is
	// Simple's.
	cells   map[string]string
	choices map[int64]string // all_reduce bytes: "ring ll 15.0"
}

func graph(n int, intra, inter float32, same bool, pattern Pattern) Graph {
	return Graph{
		NChannels: n, BwIntra: intra, BwInter: inter, SameChannels: same, Pattern: pattern, TypeIntra: PathNVL,
		TypeInter: PathPIX,
	}
}

var goldens = []golden{
	{
		"A1 8×H100",
		Comm{
			NRanks: 8, NNodes: 1, MaxLocalRanks: 8, MinCC: 90, MaxCC: 90, Arch: ArchX86, Vendor: Intel, Channels: 24,
			NVLSChannels: 16, NVSwitch: true,
		},
		Graphs{
			Ring: graph(12, 30, 30, true, RingPattern), Tree: graph(12, 30, 30, true, BalancedTree),
			NVLS: graph(8, 40, 60, false, NVLSPattern),
		},
		map[string]string{
			"Broadcast Ring": "7.2/141.0 15.9/331.2 11.8/360.0", "Reduce Ring": "7.2/141.0 15.9/331.2 11.8/360.0",
			"AllGather Ring": "10.8/161.1 27.3/378.5 32.2/411.4", "ReduceScatter Ring": "10.8/161.1 27.3/378.5 32.2/411.4",
			"AllGather NVLS": "25.0/208.2", "ReduceScatter NVLS": "25.0/208.2",
			"AllReduce Tree": "15.2/43.6 31.5/128.8 64.4/165.6", "AllReduce Ring": "15.0/80.6 40.6/189.3 56.0/205.7",
			"AllReduce NVLS": "25.0/272.0",
		},
		map[int64]string{
			8: "ring ll 15.0", 131072: "ring ll 16.6", 1 << 20: "ring ll 28.0", 8 << 20: "nvls simple 55.8",
			64 << 20: "nvls simple 271.7", 1 << 30: "nvls simple 3972.6",
		},
	},
	{
		"A2 2×8×H100",
		Comm{
			NRanks: 16, NNodes: 2, MaxLocalRanks: 8, MinCC: 90, MaxCC: 90, Arch: ArchX86, Vendor: Intel, Channels: 16,
			NVLSChannels: 16, NVSwitch: true,
		},
		Graphs{
			Ring: graph(8, 45, 45, false, RingPattern), Tree: graph(8, 48, 48, false, TreePattern),
			NVLS: graph(8, 40, 48, false, NVLSPattern),
		},
		map[string]string{
			"AllReduce Tree": "25.2/16.6 48.5/124.8 92.4/140.8", "AllReduce Ring": "40.0/20.8 75.2/156.6 131.6/192.0",
			"AllReduce NVLSTree": "66.8/246.2",
			"AllGather Ring":     "23.3/41.6 44.6/313.2 70.0/384.0", "ReduceScatter Ring": "23.3/41.6 44.6/313.2 70.0/384.0",
			"Broadcast Ring": "49.8/39.0 78.0/293.6 232.4/360.0",
		},
		map[int64]string{
			1024: "tree ll 25.3", 128 << 10: "tree ll 41.0", 1 << 20: "tree ll128 62.5", 8 << 20: "nvls_tree simple 100.9",
			64 << 20: "nvls_tree simple 339.4", 1 << 30: "nvls_tree simple 4428.3",
		},
	},
	{
		"A3 4×8×H100",
		Comm{
			NRanks: 32, NNodes: 4, MaxLocalRanks: 8, MinCC: 90, MaxCC: 90, Arch: ArchX86, Vendor: Intel, Channels: 16,
			NVLSChannels: 16, NVSwitch: true,
		},
		Graphs{
			Ring: graph(8, 45, 45, false, RingPattern), Tree: graph(8, 48, 48, false, TreePattern),
			NVLS: graph(8, 40, 48, false, NVLSPattern),
		},
		map[string]string{
			"AllReduce Tree": "35.2/8.7 65.5/98.6 120.4/122.4", "AllReduce Ring": "78.8/10.5 144.4/151.5 282.8/185.8",
			"AllReduce NVLSTree": "108.6/187.9",
			"AllGather Ring":     "42.7/21.1 79.2/303.1 145.6/371.6",
		},
		map[int64]string{
			128 << 10: "tree ll 65.4", 1 << 20: "tree ll128 83.2", 8 << 20: "nvls_tree simple 153.3",
			1 << 30: "nvls_tree simple 5823.9",
		},
	},
	{
		"A4 8×A100",
		Comm{
			NRanks: 8, NNodes: 1, MaxLocalRanks: 8, MinCC: 80, MaxCC: 80, Arch: ArchX86, Vendor: AMD, Channels: 24,
			NVSwitch: true,
		},
		Graphs{Ring: graph(12, 20, 20, true, RingPattern), Tree: graph(12, 20, 20, true, BalancedTree)},
		map[string]string{
			"AllReduce Tree": "15.2/29.1 31.5/85.9 64.4/110.4", "AllReduce Ring": "15.0/50.1 40.6/126.2 56.0/137.1",
		},
		map[int64]string{1 << 20: "ring ll 35.9", 8 << 20: "ring ll128 107.1", 64 << 20: "ring simple 545.3"},
	},
	{
		// The vector gives LL128 as if it were not gated; NCCL_PROTO opens it.
		"A5 2×1 socket",
		Comm{
			NRanks: 2, NNodes: 2, MaxLocalRanks: 1, MinCC: 90, MaxCC: 90, Arch: ArchX86, Vendor: Intel, Channels: 2,
			Env: map[string]string{"NCCL_PROTO": "LL,LL128,Simple"},
		},
		Graphs{
			Ring: Graph{
				NChannels: 1, BwIntra: 1.2, BwInter: 1.2, SameChannels: true, TypeIntra: PathLOC, TypeInter: PathPHB,
				Pattern: RingPattern,
			},
			Tree: Graph{
				NChannels: 1, BwIntra: 1.2, BwInter: 1.2, SameChannels: true, TypeIntra: PathLOC, TypeInter: PathPHB,
				Pattern: TreePattern,
			},
		},
		map[string]string{
			"AllGather Ring": "11.6/1.2 22.5/2.2 22.4/2.4", "AllGather PAT": "17.6/0.9",
			"AllReduce Ring": "16.6/0.6 31.0/1.1 36.4/1.2", "AllReduce Tree": "16.8/0.1 31.0/0.4 36.4/0.5",
		},
		nil,
	},
}

func TestGoldenVectors(t *testing.T) {
	cells, choices := 0, 0
	for _, g := range goldens {
		g.comm.Version = Newest
		tab, err := NewTable(&g.comm, &g.graphs)
		if err != nil {
			t.Fatal(err)
		}
		for key, want := range g.cells {
			opName, algoName, _ := strings.Cut(key, " ")
			op, err1 := ParseOp(opName)
			a, err2 := ParseAlgo(algoName)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			protos := []Proto{LL, LL128, Simple}
			if !strings.Contains(want, " ") {
				protos = protos[2:]
			}
			var got []string
			for _, p := range protos {
				e := tab.Est[op][a][p]
				got = append(got, fmt.Sprintf("%.1f/%.1f", e.Latency, e.BW))
				cells++
			}
			if s := strings.Join(got, " "); s != want {
				t.Errorf("%s %s: %s, want %s", g.name, key, s, want)
			}
		}
		for bytes, want := range g.choices {
			c, err := tab.Choose(Call{Op: AllReduce, Bytes: bytes})
			choices++
			if got := fmt.Sprintf("%s %s %.1f", c.Algo, c.Proto, c.Time); err != nil || got != want {
				t.Errorf("%s %d bytes: %s, %v; want %s", g.name, bytes, got, err, want)
			}
		}
	}
	t.Logf("%d cells and %d choices compared", cells, choices)
}

// TestIssue1154 is a figure a user's log of 2.19 printed: Tree Simple on H800
// nodes, eight channels of 22 GB/s.
func TestIssue1154(t *testing.T) {
	c := Comm{
		Version: Version{2, 19, 3}, NRanks: 16, NNodes: 2, MaxLocalRanks: 8, MinCC: 90, MaxCC: 90, Arch: ArchX86,
		Vendor: Intel, Channels: 16,
	}
	g := Graphs{Ring: graph(8, 22, 22, true, RingPattern), Tree: graph(8, 22, 22, true, TreePattern)}
	tab, err := NewTable(&c, &g)
	if err != nil {
		t.Fatal(err)
	}
	if bw := tab.Est[AllReduce][Tree][Simple].BW; math.Abs(float64(bw)-68.8) > .05 {
		t.Errorf("%.2f GB/s, want 68.8", bw)
	}
}
