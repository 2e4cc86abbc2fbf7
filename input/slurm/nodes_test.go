package slurm

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/readertest"
)

// nodeLines prints hosts with their GPUs and sockets.
func nodeLines(f *cluster.Fragment) string {
	var b strings.Builder
	for i := range f.Hosts {
		fmt.Fprintf(&b, "%s", f.Hosts[i].Name)
		t := f.TypeOf(i)
		if t == nil {
			b.WriteString(" ?\n")
			continue
		}
		models := map[string]int{}
		for _, g := range t.Of(cluster.GPU) {
			models[t.Devices[g].Model.Value]++
		}
		fmt.Fprintf(&b, " %d gpus %v %d sockets\n", t.Count(cluster.GPU), models, t.Count(cluster.Socket))
	}
	return b.String()
}

// The first is what Slurm 22.05 printed for a test cluster of ours; the others
// are synthetic, after the forms its manual gives.
func TestNodes(t *testing.T) {
	tests := []struct{ name, in, want, warn string }{
		{"scontrol show node", `NodeName=node01 Arch=x86_64 CoresPerSocket=8 
   CPUAlloc=0 CPUEfctv=16 CPUTot=16 CPULoad=0.96
   AvailableFeatures=(null)
   Gres=gpu:h100:8
   NodeAddr=127.0.0.1 NodeHostName=vm Port=17001 Version=22.05.8
   OS=Linux 6.18.44 #1 SMP PREEMPT_DYNAMIC @0 
   RealMemory=1000 AllocMem=0 FreeMem=21754 Sockets=2 Boards=1
   Partitions=debug 
   AllocTRES=
   CapWatts=n/a

NodeName=node02 Arch=x86_64 CoresPerSocket=8 
   Gres=gpu:h100:8(S:0-1)
   RealMemory=1000 Sockets=2 Boards=1
`, "node01 8 gpus map[h100:8] 2 sockets\nnode02 8 gpus map[h100:8] 2 sockets\n", ""},
		{
			"one line", "NodeName=n1 Arch=aarch64 CoresPerSocket=72 Gres=gpu:gb200:4 Sockets=2\nNodeName=n2 Arch=aarch64 " +
				"CoresPerSocket=72 Gres=(null) Sockets=2\n",
			"n1 4 gpus map[gb200:4] 2 sockets\nn2 0 gpus map[] 2 sockets\n", "",
		},
		{
			"slurm.conf", "NodeName=DEFAULT Sockets=2 CoresPerSocket=32\nNodeName=gpu[1-2] Gres=gpu:a100:4,nvme:1 \\\n  " +
				"RealMemory=1\nNodeName=cpu1 CPUs=64\nPartitionName=all Nodes=ALL\n",
			"gpu1 4 gpus map[a100:4] 2 sockets\ngpu2 4 gpus map[a100:4] 2 sockets\ncpu1 0 gpus map[] 2 sockets\n", "",
		},
		{
			"gres forms", "NodeName=a Gres=gpu:2\nNodeName=b Gres=gpu\nNodeName=c Gres=gpu:a100:2(S:0,2),gpu:h100:1,mps:100\n" +
				"NodeName=d Gres=gpu:no_consume:1\nNodeName=e Gres=gpu:1g.5gb:56\n",
			"a 2 gpus map[:2] 0 sockets\nb 1 gpus map[:1] 0 sockets\nc 3 gpus map[a100:2 h100:1] 0 sockets\nd 1 gpus map[:1] " +
				"0 sockets\ne 56 gpus map[1g.5gb:56] 0 sockets\n", "",
		},
		{
			"absurd", "NodeName=a Gres=gpu:h100:-3 Sockets=1\nNodeName=b Gres=gpu:h100:1K Sockets=900\n",
			"a 0 gpus map[] 1 sockets\nb ?\n", "not believed",
		},
		{
			"sinfo -N", "Mon\nNODELIST GRES CPUS SOCKETS\nn1 gpu:h100:8 16 2\nn2 gpu:h100:8 16 2\nn3 (null) 16 2\n\nother\n",
			"n1 8 gpus map[h100:8] 2 sockets\nn2 8 gpus map[h100:8] 2 sockets\nn3 0 gpus map[] 2 sockets\n", "",
		},
		{
			"sinfo", "PARTITION AVAIL GRES NODELIST\nall* up gpu:a100:4 n[1-2]\nbig up gpu:a100:4 n[1-2]\n",
			"n1 4 gpus map[a100:4] 0 sockets\nn2 4 gpus map[a100:4] 0 sockets\n", "",
		},
		{
			"contradiction", "NodeName=n1 Gres=gpu:4\nNodeName=n1 Gres=gpu:8\n", "n1 4 gpus map[:4] 0 sockets\n",
			"x:2: n1: listed again with other parts",
		},
	}
	for _, tt := range tests {
		if !MatchNodes([]byte(tt.in)) {
			t.Errorf("%s: not recognised", tt.name)
		}
		f, err := ReadNodes("x", strings.NewReader(tt.in))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := nodeLines(f); got != tt.want {
			t.Errorf("%s:\n%swant\n%s", tt.name, got, tt.want)
		}
		if w := readertest.Warnings(f); !strings.Contains(w, tt.warn) || tt.warn == "" && w != "" {
			t.Errorf("%s: warnings %q; want %q", tt.name, w, tt.warn)
		}
	}
	for _, in := range []string{"", "NodeName=n1\n", "NODELIST\nn1\n", "#SBATCH --gres=gpu:h100:8\n"} {
		if MatchNodes([]byte(in)) {
			t.Errorf("%q: recognised", in)
		}
		if _, err := ReadNodes("x", strings.NewReader(in)); err == nil {
			t.Errorf("%q: no error", in)
		}
	}
}

func TestEqualNodesShareAType(t *testing.T) {
	f, err := ReadNodes("x", strings.NewReader("NodeName=n[1-5000] Gres=gpu:h100:8 Sockets=2\nNodeName=m[1-5000] "+
		"Gres=gpu:h100:8 Sockets=2\n"))
	if err != nil || len(f.Types) != 1 || len(f.Hosts) != 10000 {
		t.Fatalf("%d types, %d hosts, %v", len(f.Types), len(f.Hosts), err)
	}
}

// sinfo tells nodes without a column of GRES, too.
func TestSinfoStates(t *testing.T) {
	for text, out := range map[string]string{
		"PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\nlong*     up   infinite      1  down* c2\n" +
			"long*     up   infinite      1   idle c1\n": "down, not responding",
	} {
		f, err := ReadNodes("x", strings.NewReader(text))
		if err != nil || !MatchNodes([]byte(text)) || len(f.Hosts) != 2 {
			t.Errorf("%s%+v, %v", text, f, err)
			continue
		}
		for _, h := range f.Hosts {
			if is := h.Out != nil && h.Out.State == out; is != (h.Name == "c2") {
				t.Errorf("%s%s: %+v", text, h.Name, h.Out)
			}
		}
	}
	if MatchNodes([]byte("JOBID USER STATE NODES NODELIST\n17 ada RUNNING 2 c[1-2]\n")) {
		t.Error("squeue is taken for nodes")
	}
}
