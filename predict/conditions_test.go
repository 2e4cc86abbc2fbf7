package predict

import (
	"testing"

	"busbar.dev/hardware"
	"busbar.dev/nccl"
)

func TestParseLaunch(t *testing.T) {
	for _, c := range []struct {
		text   string
		serial int
		alone  bool
		graph  bool
		ok     bool
	}{
		{"", 0, false, false, true},
		{"one process, -g 8", 8, false, false, true},
		{"one process per node, -g 8 (mpirun)", 8, false, false, true},
		{"one process per GPU (mpirun, --map-by ppr:N:socket, -t 1 -g 1)", 1, false, false, true},
		{"one process, -t 8 (one thread per GPU)", 0, false, false, true},
		{"one process per GPU (srun pmix), CUDA graph (-G 1)", 0, false, true, true},
		{"torch, one process per GPU", 0, true, false, true},
		{"by hand", 0, false, false, false},
		{"-g 0", 0, false, false, false},
		{"-g 99999", 0, false, false, false},
	} {
		got, ok := ParseLaunch(c.text)
		if ok != c.ok || got.Serial != c.serial || got.Alone != c.alone || got.Graph != c.graph {
			t.Errorf("%q: %+v, %v", c.text, got, ok)
		}
	}
}

// TestPluginOfEFA: a plugin of before 1.9 is one of its time, newer ones and those of later releases are not.
func TestPluginOfEFA(t *testing.T) {
	for text, old := range map[string]bool{
		"aws-ofi-nccl 1.7": true, "aws-ofi-nccl v1.8.1": true, "aws-ofi-nccl/1.9.1-aws": false, "AWS-OFI-NCCL 1.14": false,
		"aws-ofi-nccl 2.0": false,
	} {
		if c, ok := ParseLaunch(text); !ok || (c.Year > 0) != old {
			t.Errorf("%s: %+v, %v", text, c, ok)
		}
	}
}

// EFA is slow at the first generation's nodes and by old plugins.
func TestOldEFA(t *testing.T) {
	for _, c := range []struct {
		node string
		year int
		old  bool
	}{
		{"p4d.24xlarge", 0, true},
		{"p5.48xlarge", 0, false},
		{"p5.48xlarge", 2023, true},
		{"p5.48xlarge", 2025, false},
		{"dgx-h100", 0, false},
	} {
		cl, err := hardware.Preset(c.node, 2)
		if err != nil {
			t.Fatal(err)
		}
		l, err := nccl.Block(cl, 2, 8)
		if err != nil {
			t.Fatal(err)
		}
		p, err := New(cl, l, nccl.Newest, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if p.Year = c.year; p.oldEFA() != c.old {
			t.Errorf("%s of %d: old %v", c.node, c.year, !c.old)
		}
	}
}
