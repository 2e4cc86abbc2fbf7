package truth

import (
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// read makes one sweep of a line.
func read(t *testing.T, line string) *result.Sweep {
	t.Helper()
	sweeps, _, err := Read("test", strings.NewReader(line))
	if err != nil || len(sweeps) != 1 {
		t.Fatalf("%d sweeps, %v", len(sweeps), err)
	}
	return sweeps[0]
}

// Machines are made from words alone.
func TestDescribe(t *testing.T) {
	for _, c := range []struct {
		name, line string
		class      string
		nics       int
		err        string
	}{
		{"one node", `"nodes":1,"gpus_per_node":8,"gpu":"H100-SXM","intra":"NVLink4 NVSwitch"`, "nvlink-single-node", 0, ""},
		{"part of a node", `"nodes":1,"gpus_per_node":2,"gpu":"A100-SXM4-80GB","intra":"NVLink3 NVSwitch"`, "nvlink-single-node", 0, ""},
		{"cards", `"nodes":1,"gpus_per_node":4,"gpu":"V100-PCIE-32GB","intra":"PCIe 3.0, GPUs 3d-40 behind one PCIe switch, no NVLink"`, "pcie-single-node-early", 0, ""},
		{"InfiniBand", `"nodes":2,"gpus_per_node":8,"gpu":"H200","intra":"NVLink4 NVSwitch","nics_per_node":4,"nic_gbps":400,"fabric":"InfiniBand NDR"`, "multi-node-infiniband", 4, ""},
		{"two ports a NIC", `"nodes":2,"gpus_per_node":8,"gpu":"A100-SXM4-40GB","intra":"NVLink3 NVSwitch","nics_per_node":16,"nic_gbps":100,"fabric":"RoCEv2"`, "multi-node-roce", 8, ""},
		{"a cloud's machine", `"nodes":2,"gpus_per_node":8,"gpu":"H100-80GB-HBM3 (a3-highgpu-8g)","intra":"NVLink4 NVSwitch","fabric":"plain TCP sockets"`, "multi-node-tcp", 4, ""},
		{"a rack", `"nodes":18,"gpus_per_node":4,"gpu":"GB200","intra":"NVLink5 NVSwitch, NVL72 (MNNVL)","nics_per_node":4,"fabric":"InfiniBand Quantum-X800 between racks"`, "nvlink-rack", 72, ""},
		{"no NICs stated", `"nodes":2,"gpus_per_node":8,"gpu":"A100-SXM4-80GB","fabric":"InfiniBand HDR"`, "", 0, "does not state how many NICs"},
		{"no such GPU", `"nodes":1,"gpus_per_node":8,"gpu":"TPU v5p"`, "", 0, "not in the catalogue"},
		{"no nodes", `"nodes":0,"gpus_per_node":8,"gpu":"H100"`, "", 0, "expected 1 to 1000000 nodes"},
		{"too many nodes", `"nodes":1000000000000,"gpus_per_node":8,"gpu":"H100"`, "", 0, "expected 1 to 1000000 nodes"},
		{"ports without a rate", `"nodes":2,"gpus_per_node":8,"gpu":"H100","nics_per_node":8,"nic_gbps":0,"fabric":"RoCEv2"`, "", 0, "nic_gbps is 0 on 2 nodes"},
	} {
		g := read(t, `{"id":"x-1","collective":"all_reduce","sizes_bytes":[1048576],"time_us":[50],`+c.line+`}`)
		place, err := Describe(g.Machine, g.Nodes, g.PerNode, 0)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want an error with %q", c.name, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if n := place.Cluster.Types[0].Count(cluster.NIC); n != c.nics {
			t.Errorf("%s: %d NICs, want %d", c.name, n, c.nics)
		}
		x, err := Prepare(g)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := x.Predictor.Class(); got != c.class {
			t.Errorf("%s: class %s, want %s", c.name, got, c.class)
		}
		rows, err := x.Predict(nil)
		if err != nil || len(rows) != 1 || rows[0].Predicted <= 0 || rows[0].Margin <= 1 {
			t.Errorf("%s: rows %+v, %v", c.name, rows, err)
		}
	}
}

// Points of one machine have one name, however its sweeps are called.
func TestMachine(t *testing.T) {
	for id, want := range map[string]string{
		`{"id":"aic-h100_sxm-all_gather-2g","collective":"all_gather","gpu":"H100-80GB-HBM3 (SXM)"}`:          "aic/h100",
		`{"id":"aic-h100_sxm-alltoall-8g","collective":"alltoall","gpu":"H100-SXM"}`:                          "aic/h100",
		`{"id":"gcp-a3mega-2node","collective":"all_reduce","gpu":"H100-80GB-HBM3 (a3-megagpu-8g)"}`:          "gcp/h100/a3-megagpu-8g",
		`{"id":"lab-7","collective":"all_reduce","gpu":"Strange Card 9"}`:                                     "lab/strange-card-9",
		`{"id":"nt309-hgx-h100-2node","collective":"all_reduce","gpu":"H100-80GB-HBM3 (Dell XE9680)"}`:        "nt309/h100",
		`{"id":"nt309-vm-h100-4node","collective":"all_reduce","gpu":"H100-80GB-HBM3 (Dell XE9680, guests)"}`: "nt309/h100",
	} {
		if got := machineOf(read(t, id)); got != want {
			t.Errorf("%s is of %s, want %s", id, got, want)
		}
	}
}

// A bandwidth stands for a time, sizes without either are left, and the total buffer
// is nccl-tests'.
func TestPoints(t *testing.T) {
	g := read(t, `{"id":"a","collective":"all_gather","nodes":1,"gpus_per_node":8,"gpu":"H100","sizes_bytes":[1024,2048,3072,4096],"time_us":[5,null,null,null],"algbw_GBps":[null,2],"busbw_GBps":[null,null,3.5]}`)
	pts := g.Rows()
	want := []unit.Time{5 * unit.Microsecond, 1024 * unit.Nanosecond, 768 * unit.Nanosecond}
	if len(pts) != len(want) {
		t.Fatalf("%d points, want %d", len(pts), len(want))
	}
	for i := range want {
		if pts[i].Time.Mean != want[i] {
			t.Errorf("point %d takes %v, want %v", i, pts[i].Time.Mean, want[i])
		}
	}
	cases, left := Gather(result.Sweeps{g}, 0)
	if len(cases) != 1 || len(left) != 1 || left[0].Points != 1 || left[0].Gradable {
		t.Errorf("%d cases, left %+v; want the fourth size left", len(cases), left)
	}
}
