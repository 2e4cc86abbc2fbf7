package nvsmi

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/cluster"
)

// The texts in this file are synthetic. Each imitates a layout met in the wild,
// with figures of no real machine.

// summary prints a node on one line: GPU classes by row, NIC labels, affinities.
func summary(n *cluster.NodeType) string {
	var b strings.Builder
	for i, row := range n.Matrix().Class {
		if i > 0 {
			b.WriteString(" / ")
		}
		b.WriteString(strings.Join(row, " "))
	}
	for _, i := range n.Of(cluster.NIC) {
		fmt.Fprintf(&b, " %s=%s", n.Devices[i].Name, n.Devices[i].Label)
	}
	for _, i := range n.Of(cluster.GPU) {
		g := n.Devices[i].GPU
		numa := "-"
		if g.NUMA.Known() {
			numa = fmt.Sprint(g.NUMA.Value)
		}
		fmt.Fprintf(&b, " [%s %s %s]", n.Devices[i].Name, g.Cores, numa)
	}
	return b.String()
}

func TestLayouts(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string // host: summary, one per node
		warn     []string // parts of the warnings, in order
	}{
		{
			name: "tabs, empty CPU affinity, GPU NUMA ID after two tabs",
			in: "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tNV18\t0-7\t0\t\tN/A\nGPU1\tNV18\t X " +
				"\t\t1\t\tN/A\n",
			want: []string{": X NV18 / NV18 X [gpu0 0-7 0] [gpu1  1]"},
		},
		{
			name: "spaces, empty CPU affinity: a lone number is a NUMA domain",
			in: "      GPU0  GPU1  CPU Affinity  NUMA Affinity\nGPU0   X    SYS   0-7           0\nGPU1  SYS    X           " +
				"       1\n",
			want: []string{": X SYS / SYS X [gpu0 0-7 0] [gpu1  1]"},
		},
		{
			name: "Grace: several NUMA domains a GPU",
			in: "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tNV18\tSYS\t0-71\t0,3-9\t\t2\n" +
				"GPU1\tNV18\t X \tSYS\t72-143\t1,19-25\t\t18\nNIC0\tSYS\tSYS\t X \t\t\t\t\n\nNIC Legend:\n\n  NIC0: ibp3s0\n",
			want: []string{": X NV18 SYS / NV18 X SYS / SYS SYS X nic0=ibp3s0 [gpu0 0-71 0] [gpu1 72-143 1]"},
		},
		{
			name: "names out of order and a header without offset",
			in: "GPU0 GPU1 mlx5_2 mlx5_0 CPU Affinity\nGPU0 X PIX PIX SYS 0-7\nGPU1 PIX X PIX SYS 0-7\nmlx5_2 PIX PIX X " +
				"SYS\nmlx5_0 SYS SYS SYS X\n",
			want: []string{": X PIX PIX SYS / PIX X PIX SYS / PIX PIX X SYS / SYS SYS SYS X nic0=mlx5_2 nic1=mlx5_0 [gpu0 0-7 " +
				"-] [gpu1 0-7 -]"},
		},
		{
			name: "cells run together",
			in: "\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\t X \tSYSSYS\t0-7\nGPU1\tSYS\t X \tSYS\t8-9\nGPU2\tSYS\tSYS\t X " +
				"\t10\n",
			want: []string{": X SYS SYS / SYS X SYS / SYS SYS X [gpu0 0-7 -] [gpu1 8-9 -] [gpu2 10 -]"},
		},
		{
			name: "a header run together",
			in:   "GPU0GPU1CPU AffinityNUMA AffinityGPU NUMA ID\nGPU0 X PHB 0-7 0 N/A\nGPU1 PHB X 0-7 0 N/A\n",
			want: []string{": X PHB / PHB X [gpu0 0-7 0] [gpu1 0-7 0]"},
		},
		{
			name: "NICs run together with GPUs",
			in: "\tGPU0\tGPU1mlx5_0mlx5_1\tCPU Affinity\nGPU0\t X \tNV2\tPIXNODE\t0-7\nGPU1\tNV2\t X \tNODE\tPIX\t0-7\n" +
				"mlx5_0\tPIX\tNODE\t X \tNODE\nmlx5_1\tNODE\tPIX\tNODE\t X \n",
			want: []string{": X NV2 PIX NODE / NV2 X NODE PIX / PIX NODE X NODE / NODE PIX NODE X nic0=mlx5_0 nic1=mlx5_1 " +
				"[gpu0 0-7 -] [gpu1 0-7 -]"},
		},
		{
			name: "a terminal folded the rows",
			in: "        GPU0    GPU1    GPU2    NIC0\nNIC1    CPU Affinity    NUMA Affinity\n" +
				"GPU0     X      NV4     NODE    PIX\nSYS     0-7     0\n" +
				"GPU1    NV4      X      NODE    NO\nDE    SYS 0-7  0\n" +
				"GPU2    NODE    NODE     X      NODE    SYS\n0-7     0\n" +
				"NIC0    PIX     NODE    NODE     X\nSYS\n" +
				"NIC1    SYS     SYS     SYS     SYS\n X\n",
			want: []string{": X NV4 NODE PIX / NV4 X NODE NODE / NODE NODE X NODE / PIX NODE NODE X nic0= [gpu0  -] [gpu1  " +
				"-] [gpu2  -]"},
			warn: []string{`row GPU1, column NIC0: "NO"`, "row GPU2 has more cells than the header", "row NIC1 has no column"},
		},
		{
			name: "Markdown table, quotation, prose around",
			in: "Our box, see below.\n\n> |      | GPU0 | GPU1 | CPU Affinity |\n> |------|------|------|---|\n> | GPU0 | X " +
				"| NV2 | 0-3 |\n> | GPU1 | NV2 | X | 0-3 |\n\nGPU0 and GPU1 are bridged.\n",
			want: []string{": X NV2 / NV2 X [gpu0 0-3 -] [gpu1 0-3 -]"},
		},
		{
			name: "colours, carriage returns, a launcher's marks",
			in: "[1,0]<stdout>:\t\x1b[4mGPU0\tGPU1\tCPU Affinity\x1b[0m\r\n[1,0]<stdout>:GPU0\t X \tPXB\t0-3\r\n" +
				"[1,0]<stdout>:GPU1\tPXB\t X \t0-3\r\n",
			want: []string{": X PXB / PXB X [gpu0 0-3 -] [gpu1 0-3 -]"},
		},
		{
			name: "pdsh mixes two hosts",
			in: "node7: \tGPU0\tNIC0\tCPU Affinity\nnode8: \tGPU0\tNIC0\tCPU Affinity\nnode7: GPU0\t X \tPIX\t0-3\nnode8: " +
				"GPU0\t X \tSYS\t0-3\n" +
				"node8: NIC0\tSYS\t X \nnode7: NIC0\tPIX\t X \nnode7: \nnode7: NIC Legend:\nnode8:   NIC0: mlx5_8\nnode7:   " +
				"NIC0: mlx5_7\n",
			want: []string{"node7: X PIX / PIX X nic0=mlx5_7 [gpu0 0-3 -]", "node8: X SYS / SYS X nic0=mlx5_8 [gpu0 0-3 -]"},
		},
		{
			name: "clush gathers equal hosts",
			in: "---------------\nnode[1-3] (3)\n---------------\n\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPIX\t0-3\n" +
				"GPU1\tPIX\t X \t0-3\n",
			want: []string{"node1,node2,node3: X PIX / PIX X [gpu0 0-3 -] [gpu1 0-3 -]"},
		},
		{
			name: "Ansible",
			in:   "gpu04 | CHANGED | rc=0 >>\n\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPIX\t0-3\nGPU1\tPIX\t X \t0-3\n",
			want: []string{"gpu04: X PIX / PIX X [gpu0 0-3 -] [gpu1 0-3 -]"},
		},
		{
			name: "two machines told apart by the prompt",
			in: "[root@a1 ~]# nvidia-smi topo -m\n\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPIX\t0-3\nGPU1\tPIX\t X \t0-3\n" +
				"root@a2:~# nvidia-smi topo -m\n\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPHB\t0-3\nGPU1\tPHB\t X \t0-3\n",
			want: []string{"a1: X PIX / PIX X [gpu0 0-3 -] [gpu1 0-3 -]", "a2: X PHB / PHB X [gpu0 0-3 -] [gpu1 0-3 -]"},
		},
		{
			name: "one machine: the prompt may be a container's",
			in:   "root@3f2a9c:/# nvidia-smi topo -m\n\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPIX\t0-3\nGPU1\tPIX\t X \t0-3\n",
			want: []string{": X PIX / PIX X [gpu0 0-3 -] [gpu1 0-3 -]"},
		},
		{
			name: "printed twice",
			in:   strings.Repeat("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPIX\t0-3\nGPU1\tPIX\t X \t0-3\n\n", 2),
			want: []string{": X PIX / PIX X [gpu0 0-3 -] [gpu1 0-3 -]"},
		},
		{
			name: "topo -mp shows what NVLink hides in topo -m",
			in: "\tGPU0\tGPU1\tNIC0\tCPU Affinity\nGPU0\t X \tPIX\tSYS\t0-3\nGPU1\tPIX\t X \tSYS\t0-3\nNIC0\tSYS\tSYS\t X \n" +
				"\tGPU0\tGPU1\tNIC0\tCPU Affinity\nGPU0\t X \tNV4\tSYS\t0-3\nGPU1\tNV4\t X \tSYS\t0-3\nNIC0\tSYS\tSYS\t X \n",
			want: []string{": X NV4 SYS / NV4 X SYS / SYS SYS X nic0= [gpu0 0-3 -] [gpu1 0-3 -]"},
		},
		{
			name: "cut off after one row",
			in:   "\tGPU0\tGPU1\tNIC0\tCPU Affinity\nGPU0\t X \tPIX\tPHB\t0-3\nGPU1\tPI",
			want: []string{": X PIX PHB / PIX X PHB / PHB PHB X nic0= [gpu0 0-3 -] [gpu1  -]"},
			warn: []string{"no row for GPU1, NIC0"},
		},
		{
			name: "cut off inside a row",
			in:   "\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\t X \tPIX\tPHB\t0-3\nGPU1\tPIX\t X",
			want: []string{": X PIX PHB / PIX X PHB / PHB PHB X [gpu0 0-3 -] [gpu1  -] [gpu2  -]"},
			warn: []string{"no row for GPU2", "row GPU1 has 2 cells; the header has 3"},
		},
		{
			name: "unknown word",
			in:   "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tQPX\t0-3\nGPU1\tPIX\t X \t0-3\n",
			want: []string{": X PIX / PIX X [gpu0 0-3 -] [gpu1 0-3 -]"},
			warn: []string{`row GPU0, column GPU1: "QPX"`},
		},
		{
			name: "a cell missing before X",
			in:   "GPU0 GPU1 GPU2 CPU Affinity\nGPU0 X PIX PHB 0-3\nGPU1 X PHB 0-3\nGPU2 PHB PHB X 0-3\n",
			want: []string{": X PIX PHB / PIX X PHB / PHB PHB X [gpu0 0-3 -] [gpu1  -] [gpu2 0-3 -]"},
			warn: []string{"row GPU1 has 2 cells", "row GPU1 has its X in the column of GPU0"},
		},
		{
			name: "more cells than columns, a row without column, a row twice",
			in:   "\tGPU0\tGPU1\nGPU0\t X \tPIX\tPHB\nGPU1\tPIX\t X \nGPU2\tPHB\tPHB\t X \nGPU1\tSYS\t X \n",
			want: []string{": X PIX / PIX X [gpu0  -] [gpu1  -]"},
			warn: []string{"more cells than the header", "row GPU2 has no column", "row GPU1 stands here again"},
		},
		{
			name: "drives of topo -nvme are not NICs",
			in:   "\tGPU0\tNIC0\tNVME0\tCPU Affinity\nGPU0\t X \tPIX\tSYS\t0-3\nNIC0\tPIX\t X \tSYS\nNVME0\tSYS\tSYS\t X \n",
			want: []string{": X PIX / PIX X nic0= [gpu0 0-3 -]"},
		},
		{
			name: "the old words: SOC, and PSB for the switch on a board",
			in: "\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\t X \tPSB\tSOC\t0-3\nGPU1\tPSB\t X \tSOC\t0-3\nGPU2\tSOC\tSOC\t X " +
				"\t4-7\n",
			want: []string{": X PIX SYS / PIX X SYS / SYS SYS X [gpu0 0-3 -] [gpu1 0-3 -] [gpu2 4-7 -]"},
		},
		{
			name: "a stray header before the real one",
			in: "- topology: below\n\tGPU0\tGPU1\tCPU Affinity\n\n```\n\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPIX\t0-3\n" +
				"GPU1\tPIX\t X \t0-3\n```\n",
			want: []string{": X PIX / PIX X [gpu0 0-3 -] [gpu1 0-3 -]"},
		},
		{
			name: "MIG lines and other output between",
			in: "GPU 0: NVIDIA A100 (UUID: GPU-1)\n  MIG 3g.20gb Device 0: (UUID: MIG-1)\n\tGPU0\tGPU1\tCPU Affinity\n\n" +
				"GPU0\t X \tNV12\t0-3\nsomebody: hello\nGPU1\tNV12\t X \t0-3\n",
			want: []string{": X NV12 / NV12 X [gpu0 0-3 -] [gpu1 0-3 -]"},
		},
		{
			name: "only some GPUs of the machine",
			in:   "\tGPU2\tGPU5\tCPU Affinity\nGPU2\t X \tPIX\t0-3\nGPU5\tPIX\t X \t0-3\n",
			want: []string{": X PIX / PIX X [gpu2 0-3 -] [gpu5 0-3 -]"},
		},
		{
			name: "one GPU",
			in:   "\t\x1b[4mGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\nGPU0\t X \t0-15\t0\t\tN/A\n",
			want: []string{": X [gpu0 0-15 0]"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !matchTopo([]byte(c.in)) {
				t.Error("not recognised")
			}
			f, err := readTopoOnly("in", strings.NewReader(c.in))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i, n := range f.Types {
				var hosts []string
				for _, h := range f.Hosts {
					if h.Type == i {
						hosts = append(hosts, h.Name)
					}
				}
				got = append(got, strings.Join(hosts, ",")+": "+summary(n))
				if err := n.Check(); err != nil {
					t.Error(err)
				}
			}
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			checkWarnings(t, f.Warnings, c.warn)
		})
	}
}

func checkWarnings(t *testing.T, got []cluster.Warning, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("warnings %v; want %d", got, len(want))
		return
	}
	for i, w := range got {
		if !strings.Contains(w.String(), want[i]) || !strings.HasPrefix(w.Source, "in") {
			t.Errorf("warning %q; want %q with its place", w, want[i])
		}
	}
}

func TestTopoErrors(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"nothing", "", "in: no matrix of nvidia-smi topo -m"},
		{"header alone", "\tGPU0\tGPU1\tCPU Affinity\n", "in: no matrix of nvidia-smi topo -m"},
		{"peer access", "\tGPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tOK\tX\n", "in: no matrix of nvidia-smi topo -m"},
		{"binary", "\x00\x01GPU0\xff\xfe", "in: no matrix of nvidia-smi topo -m"},
		{
			"a terminal folded a header of GPUs",
			"     GPU0 GPU1\nGPU2 CPU Affinity\nGPU0  X  PIX\nPIX  0-3\nGPU1 PIX  X\nPIX  0-3\nGPU2 PIX PIX\n X   0-3\n",
			"in: no matrix of nvidia-smi topo -m",
		},
		{
			"a column twice", "\tGPU0\tGPU1\tGPU1\nGPU0\t X \tPIX\tPIX\nGPU1\tPIX\t X \tPIX\n",
			"in:1: a column stands twice in the header",
		},
		{"too wide", "\t" + wide(1100) + "\nGPU0\t X \tPIX\n", "in:1: more than 1024 columns"},
	} {
		_, err := readTopoOnly("in", strings.NewReader(c.in))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: error %v; want %q", c.name, err, c.want)
		}
	}
}

func wide(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "GPU%d\t", i)
	}
	return b.String()
}

func TestMatchOthers(t *testing.T) {
	for _, in := range []string{
		"       GPU0         GPU1\nGPU0   0            XGMI\nGPU1   XGMI         0\n", // rocm-smi --showtopo
		"   D\\D     0      1\n     0 801.28  22.23\n",                                // p2pBandwidthLatencyTest
		"GPU0 and GPU1 are X\n",
		"",
	} {
		if matchTopo([]byte(in)) || matchP2P([]byte(in)) {
			t.Errorf("%q was taken for a matrix of nvidia-smi", in)
		}
	}
}

// Lists of cores that lost their beginning are left out: that of a row which has less than the others of its domain.
func TestDamagedCores(t *testing.T) {
	f, err := readTopoOnly("x", strings.NewReader("\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\n"+
		"GPU0\t X \tNV4\tNV4\tNV4\t-15,32-47\t0\nGPU1\tNV4\t X \tNV4\tNV4\t-15,32-47\t0\n"+
		"GPU2\tNV4\tNV4\t X \tNV4\t16-31,48-63\t1\nGPU3\tNV4\tNV4\tNV4\t X \t6-31,48-63\t1\n"))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "", "16-31,48-63", ""} {
		d := f.Types[0].Devices[f.Types[0].Of(cluster.GPU)[i]]
		if d.GPU.Cores != want || !d.GPU.NUMA.Known() || d.GPU.NUMA.Value != i/2 {
			t.Errorf("GPU%d: cores %q, NUMA %+v", i, d.GPU.Cores, d.GPU.NUMA)
		}
	}
	if len(f.Warnings) != 3 {
		t.Errorf("%q", f.Warnings)
	}
}
