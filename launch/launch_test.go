package launch_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/launch"
	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/workload"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// placed is a model on so many GPUs of each node.
func placed(t testing.TB, preset string, nodes, gpus int,
	model string,
) (*cluster.Cluster, nccl.Layout, *workload.Model) {
	t.Helper()
	c, err := hardware.Preset(preset, nodes)
	if err != nil {
		t.Fatal(err)
	}
	l, err := nccl.Block(c, nodes, gpus)
	if err != nil {
		t.Fatal(err)
	}
	m, err := workload.Find(model)
	if err != nil {
		t.Fatal(err)
	}
	return c, l, m
}

// planned is a job on two nodes of eight GPUs.
func planned(t testing.TB, split string, hosts ...string) *launch.Plan {
	t.Helper()
	c, l, m := placed(t, "dgx-a100", 2, 8, "llama2-7b")
	s, err := workload.ParseSplit(split)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = s.On(16); err != nil {
		t.Fatal(err)
	}
	j := &workload.Job{
		Model: m, Split: s, Seq: 4096, MicroBatch: 1, GlobalBatch: 64, Precision: "bf16", Recompute: workload.Selective,
		Kernels: workload.Fused,
	}
	p, err := launch.New(c, l, nccl.Newest, j, hosts, true)
	if err != nil {
		t.Fatal(err)
	}
	p.Made, p.Job.Step = "busbar plan …", 5
	p.Settings = []launch.Setting{{Name: "NCCL_ALGO", Value: "allreduce:tree", Reason: "a reason"}}
	p.Try = []launch.Setting{{Name: "NCCL_NET_GDR_LEVEL", Value: "SYS", Reason: "another\nreason"}}
	return p
}

// Two GPUs of a node that share a NIC are faster with trees than with NCCL's own choice: what
// is set names both times, and the plan's step is the one with it.
func TestTune(t *testing.T) {
	c, l, m := placed(t, "baskerville", 2, 2, "gpt2-xl")
	s, err := workload.Split{}.On(4)
	if err != nil {
		t.Fatal(err)
	}
	j := &workload.Job{
		Model: m, Split: s, Seq: 1024, MicroBatch: 1, GlobalBatch: 4, Precision: "bf16", Recompute: workload.None,
		Kernels: workload.Fused,
	}
	model, _ := hardware.GPUByName("a100-40")
	g, err := step.NewGPU(model, step.Default())
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{"2.30.7": "allreduce:tree", "2.18.5": "Tree"} {
		v, err := nccl.ParseVersion(version)
		if err != nil {
			t.Fatal(err)
		}
		p, err := launch.New(c, l, v, j, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Tune(c, l, v, j, g); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(p.Settings, func(s launch.Setting) bool { return s.Name == "NCCL_ALGO" })
		if i < 0 || p.Settings[i].Value != want || !strings.Contains(p.Settings[i].Reason, "instead of") {
			t.Errorf("NCCL %s: %v; want NCCL_ALGO=%s", version, p.Settings, want)
		}
		plain, err := step.Step(j, g, step.NewFabric(c, l, j.Split, v))
		if err != nil || p.Job.Step >= plain.Step {
			t.Errorf("NCCL %s: a step of %v with what is set, %v without (%v)", version, p.Job.Step, plain.Step, err)
		}
	}
}

// The files of two plans are what they were: one whose hosts are known, one whose are not.
func TestFiles(t *testing.T) {
	for name, p := range map[string]*launch.Plan{
		"named":       planned(t, "tp=2,pp=2,zero=1,sp=1", "gpu07", "gpu03"),
		"placeholder": planned(t, "zero=3"),
	} {
		files, left, err := p.Files("/shared/run 1")
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		for _, f := range files {
			mode := ""
			if f.Run {
				mode = " (script)"
			}
			b.WriteString("-- " + f.Name + mode + " --\n")
			b.WriteString(f.Text)
		}
		for _, l := range left {
			b.WriteString("-- no " + l.Name + ": " + l.Reason + "\n")
		}
		golden := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(golden, b.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, b.Bytes()) {
			t.Errorf("%s differs; go test ./launch -update, and look at the difference:\n%s", golden,
				cmp.Diff(string(want), b.String()))
		}
	}
}

func TestReadWrite(t *testing.T) {
	p := planned(t, "tp=2,pp=2,zero=1", "gpu07", "gpu08")
	var b, again bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	q, err := launch.Read("plan.json", bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Write(&again); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Errorf("%v; written again it differs", err)
	}
}

func TestReadRefuses(t *testing.T) {
	good := `{"version":1,"nodes":[{"hosts":"a[1-2]","type":0,"gpus":[0]}],"types":[{"gpus":[{"name":"gpu0","numa":0,"cores":"0-3"}]}]}`
	if _, err := launch.Read("p", strings.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ from, to, want string }{
		{`"version":1`, `"version":2`, "version 2"},
		{`"type":0`, `"type":1`, "there are 1 types"},
		{`"gpus":[0]`, `"gpus":[1]`, "has 1 GPUs"},
		{`"gpus":[0]`, `"gpus":[]`, "0 GPUs"},
		{`a[1-2]`, `a[1-`, "hosts"},
		{`a[1-2]`, `a;reboot`, "expected a host's name"},
		{`a[1-2]`, `a$(x)`, "expected a host's name"},
		{`a[1-2]`, `-oProxyCommand=x`, "expected a host's name"},
		{`a[1-2]`, `a\nb`, "host"},
		{`a[1-2]`, `a b`, "host"},
		{`a[1-2]`, `a'b`, "expected a host's name"},
		{`a[1-2]`, `a1,A1`, "every host once"},
		{`a[1-2]`, `a=b`, "expected a host's name"},
		{`"types"`, `"leaves":[1],"types"`, "leaves have 1 hosts"},
		{`"types"`, `"leaves":[3],"types"`, "leaves[0] is 3"},
		{`"types"`, `"leaves":[-1,3],"types"`, "leaves[0] is -1"},
		{`"types":[{`, `"types":[{"topology":"../x.xml",`, "expected the name of a file"},
		{`"types":[{`, `"types":[{"topology":"/etc/passwd",`, "expected the name of a file"},
		{`0-3`, `3-0`, "expected processors"},
		{`0-3`, `0-99999999`, "expected processors"},
		{`"types"`, `"settings":[{"name":"LD_PRELOAD","value":"x"}],"types"`, "a plan may set NCCL_ALGO"},
		{`"types"`, `"settings":[{"name":"NCCL_ALGO","value":"$(x)"}],"types"`, "expected letters"},
	} {
		_, err := launch.Read("p", strings.NewReader(strings.Replace(good, tt.from, tt.to, 1)))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "p: ") {
			t.Errorf("%s: %v; want %q", tt.to, err, tt.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"version":1,"job":{"dims":{"layers":4,"heads":2},"parallel":{"dp":2,"tp":1,"pp":1,"cp":1},"micro_batch":1,"global_batch":4},"nodes":[{"hosts":"a1","type":0,"gpus":[0,1]}],"types":[{"gpus":[{"cores":"0-3"},{}],"settings":[{"name":"NCCL_ALGO","value":"Tree"}]}]}`))
	f.Add([]byte(`{"version":1,"nodes":[{"hosts":"a[1-9]","type":0,"gpus":[0]}],"types":[{"gpus":[{}]}]}`))
	f.Add([]byte(`{"version":1,"nodes":[{"hosts":"a[1-4]","type":0,"gpus":[0]}],"leaves":[3,1],"types":[{"gpus":[{}],"topology":"topo-0.xml","topology_reason":"x"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := launch.Read("p", bytes.NewReader(data))
		if err != nil || len(data) > 1<<12 {
			return
		}
		if p.Ranks() > 1000 {
			return
		}
		if _, _, err := p.Files("/d"); err != nil {
			t.Fatal(err)
		}
		for r := range p.Ranks() {
			if _, err := p.Seat(r); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestCores(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfDistinct(rapid.IntRange(0, 300), func(i int) int { return i }).Draw(t, "cores")
		slices.Sort(list)
		got, err := launch.ParseCores(launch.FormatCores(list))
		if err != nil || !slices.Equal(got, list) {
			t.Fatalf("%v became %v (%v)", list, got, err)
		}
	})
}

// The table for NVIDIA's example has a line with a number of channels for every size of each
// group's collectives, and is one that its reader finds nothing wrong with.
func TestTables(t *testing.T) {
	c, err := hardware.Preset("baskerville", 4)
	if err != nil {
		t.Fatal(err)
	}
	l, err := nccl.Block(c, 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	p := &launch.Plan{NCCL: "2.30.7", Made: strings.Repeat("long ", 200), Job: launch.Job{Model: "m"}}
	split, err := workload.Split{TP: 2}.On(16)
	if err != nil {
		t.Fatal(err)
	}
	files, left, err := p.Tables(step.NewFabric(c, l, split, nccl.Newest))
	if err != nil || len(files) != 3 || len(left) != 0 {
		t.Fatalf("%d files, left out %v, %v", len(files), left, err)
	}
	for _, text := range strings.Split(string(files[0].Text), "\n") {
		if len(text) > 500 {
			t.Errorf("a line of %d bytes, which the plugin cuts", len(text))
		}
	}
	groups := map[[2]int]uint64{}
	for text := range strings.Lines(string(files[1].Text)) {
		if strings.HasPrefix(text, "#") {
			continue
		}
		var collective string
		var least, most uint64
		var channels, nodes, ranks int
		f := strings.Split(strings.TrimSpace(text), ",")
		if _, err := fmt.Sscan(strings.Join(slices.Concat(f[:3], f[5:8]), " "), &collective, &least, &most, &channels, &nodes,
			&ranks); err != nil || channels < 1 {
			t.Errorf("%s: %v, %d channels", text, err, channels)
		}
		if collective == "allreduce" {
			key := [2]int{nodes, ranks}
			if want := groups[key]; least != want {
				t.Errorf("%s begins at %d; want %d", text, least, want)
			}
			groups[key] = most + 1
		}
	}
	if len(groups) != 2 || groups[[2]int{1, 2}] == 0 || groups[[2]int{4, 8}] == 0 {
		t.Errorf("groups %v; want those of 2 ranks in a node and of 8 on 4", groups)
	}
}

// A NIC that no GPU is near is left out by name; where all are near NCCL is told nothing.
func TestNodeSettings(t *testing.T) {
	n := &cluster.NodeType{}
	numa := n.Add(cluster.Device{Kind: cluster.NUMA, Parent: -1})
	root := n.Add(cluster.Device{Kind: cluster.RootComplex, Parent: numa})
	far := n.Add(cluster.Device{Kind: cluster.RootComplex, Parent: numa})
	sw := n.Add(cluster.Device{Kind: cluster.PCISwitch, Parent: root})
	n.Connect(cluster.Link{A: numa, B: root, Kind: cluster.OnDie})
	n.Connect(cluster.Link{A: numa, B: far, Kind: cluster.OnDie})
	n.Connect(cluster.Link{A: root, B: sw, Kind: cluster.PCIe})
	gpu := n.Add(cluster.Device{Kind: cluster.GPU, Parent: sw})
	nic := n.Add(cluster.Device{
		Kind: cluster.NIC, Label: "mlx5_0", Parent: sw, NIC: &cluster.NICInfo{Kind: cluster.InfiniBand},
	})
	n.Connect(cluster.Link{A: sw, B: gpu, Kind: cluster.PCIe})
	n.Connect(cluster.Link{A: sw, B: nic, Kind: cluster.PCIe})
	if s := launch.NodeSettings(n, cluster.InfiniBand); s != nil {
		t.Errorf("%v for one NIC, which NCCL takes by itself", s)
	}
	storage := n.Add(cluster.Device{
		Kind: cluster.NIC, Label: "mlx5_1", Parent: far, NIC: &cluster.NICInfo{Kind: cluster.InfiniBand},
	})
	n.Connect(cluster.Link{A: far, B: storage, Kind: cluster.PCIe})
	s := launch.NodeSettings(n, cluster.InfiniBand)
	if len(s) != 1 || s[0].Name != "NCCL_IB_HCA" || s[0].Value != "=mlx5_0" || !strings.Contains(s[0].Reason, "mlx5_1") {
		t.Errorf("%v", s)
	}
	n.Devices[storage].NIC.Ports = []cluster.Port{{State: cluster.Down}}
	if s := launch.NodeSettings(n, cluster.InfiniBand); s != nil {
		t.Errorf("%v; a port that is down needs no word", s)
	}
}
