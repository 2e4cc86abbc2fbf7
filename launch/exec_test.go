package launch

import (
	"strings"
	"testing"

	"busbar.dev/hardware"
)

// The GPU of a local rank is the one that CUDA shows under that number; a DGX A100 has its first
// GPUs on NUMA domains 3, 3, 1 and 1.
func TestExecGPU(t *testing.T) {
	node, err := hardware.Node("dgx-a100")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		visible string
		local   int
		numa    int // -2: none
		note    string
	}{
		{"unset", 0, 3, ""},
		{"unset", 2, 1, ""},
		{"2,0", 0, 1, ""},
		{"2,0", 1, 3, ""},
		{"2", 1, 1, ""}, // the launcher gave the rank a GPU of its own
		{"2,0", 2, -2, "2 GPUs are visible"},
		{"unset", 8, -2, "8 GPUs are visible"},
		{"", 0, -2, "0 GPUs are visible"},
	} {
		env := func(name string) (string, bool) {
			return tt.visible, name == "CUDA_VISIBLE_DEVICES" && tt.visible != "unset"
		}
		b := &Binding{Local: tt.local}
		g := b.gpu(Process{Env: env, Node: node})
		if notes := strings.Join(b.Notes, "; "); !strings.Contains(notes, tt.note) {
			t.Errorf("visible %q, local rank %d: notes %q; want %q", tt.visible, tt.local, notes, tt.note)
		}
		switch {
		case g == nil && tt.numa == -2:
		case g == nil || g.NUMA != tt.numa || g.Cores == "":
			t.Errorf("visible %q, local rank %d: %+v; want NUMA domain %d and its cores", tt.visible, tt.local, g, tt.numa)
		}
	}
}

// A rank keeps what its environment has, gets what PyTorch looks for, and is bound to those of its
// GPU's cores that it may use.
func TestExecBind(t *testing.T) {
	node, err := hardware.Node("dgx-a100")
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"SLURM_PROCID": "9", "SLURM_NTASKS": "16", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "7", "SLURM_STEP_NODELIST": "a[0-1]",
		"SLURMD_NODENAME": "a1", "MASTER_PORT": "1",
	}
	b, err := Exec{Rank: -1, Local: -1}.Bind(nil, Process{
		Host: "here", Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }, Node: node,
		May: func() ([]int, error) { return ParseCores("48-50") }, NUMA: func(int) bool { return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(b.Lines(), "\n")
	for _, want := range []string{
		"rank 9 of 16 on a1, local rank 1 (Slurm)", "gpu1: cores 48-50, memory of NUMA domain 3 preferred", "RANK=9",
		"LOCAL_RANK=1", "WORLD_SIZE=16", "MASTER_ADDR=a0",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if port, ok := b.Env["MASTER_PORT"]; ok {
		t.Errorf("MASTER_PORT is set already, and becomes %s", port)
	}
}
