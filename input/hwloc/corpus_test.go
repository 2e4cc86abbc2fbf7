package hwloc

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/tags"
	"busbar.dev/internal/test/corpus"
)

// parsed returns the first document of a sample as hwloc wrote it.
func parsed(t *testing.T, data []byte) *topology {
	t.Helper()
	var top *topology
	f := &cluster.Fragment{}
	err := tags.Trees(f, string(data), "topology", maxElements, func(root *object) {
		if top == nil {
			top = &topology{version: root.Get("version"), byID: map[string]*object{}, about: []*object{root}}
			top.collect(root)
		}
	})
	if err != nil || top == nil || len(f.Warnings) > 0 {
		t.Fatalf("no document, or not whole: %v, %v", err, f.Warnings)
	}
	return top
}

// TestCorpusFacts holds the reader to what INDEX.jsonl counted in every sample.
func TestCorpusFacts(t *testing.T) {
	for _, e := range corpus.Index(t, Format) {
		t.Run(e.File, func(t *testing.T) {
			data := corpus.Open(t, e.File)
			if !Match(data) {
				t.Error("Match does not know it")
			}
			top := parsed(t, data)
			objects, _ := e.Facts["objects"].(map[string]any)
			if len(objects) == 0 {
				t.Fatal("the index counts no objects")
			}
			for kind, n := range objects {
				if kind == "Socket" {
					kind = "Package"
				}
				if got := len(top.of(kind)); float64(got) != n {
					t.Errorf("%d objects of type %s; the index says %v", got, kind, n)
				}
			}
			version := strings.TrimSuffix(fmt.Sprint(e.Facts["xml_version"]), " (hwloc 1.x)")
			if version == "none" {
				version = ""
			}
			if top.version != version {
				t.Errorf("version %q, the index says %q", top.version, version)
			}
			var names []string
			for _, o := range top.of("OSDev") {
				names = append(names, o.Get("name"))
			}
			for _, key := range []string{"gpu_osdevs", "ib_osdevs"} {
				list, _ := e.Facts[key].([]any)
				for _, n := range list {
					if !slices.Contains(names, n.(string)) {
						t.Errorf("no OS device %v", n)
					}
				}
			}
			f, err := Read(e.File, bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			checkCounts(t, f, top, e.Facts["cpu_model"])
		})
	}
}

// checkCounts compares the node type with the objects it came from.
func checkCounts(t *testing.T, f *cluster.Fragment, top *topology, model any) {
	t.Helper()
	if len(f.Types) != 1 || len(f.Hosts) != 1 {
		t.Fatalf("%d types, %d hosts", len(f.Types), len(f.Hosts))
	}
	ty := f.Types[0]
	if err := ty.Check(); err != nil {
		t.Error(err)
	}
	if n := len(top.of("Package")); ty.Count(cluster.Socket) != n {
		t.Errorf("%d sockets of %d packages", ty.Count(cluster.Socket), n)
	}
	if n := len(top.of("NUMANode")); ty.Count(cluster.NUMA) != n {
		t.Errorf("%d NUMA domains of %d NUMA nodes", ty.Count(cluster.NUMA), n)
	}
	if model == nil {
		return
	}
	for _, s := range ty.Of(cluster.Socket) {
		if got := ty.Devices[s].Model.Value; got != strings.TrimSpace(model.(string)) {
			t.Errorf("CPU model %q, the index says %q", got, model)
		}
	}
}

// wants are the devices of each sample, read off the file by hand: the GPUs'
// models or addresses, the NICs' labels, and rows of the class matrix.
var wants = map[string]struct {
	host   string
	gpus   int
	model  string
	nics   string
	row    string // class of the first device to every one
	warns  int
	memory string // of the first GPU
}{
	"hwloc-power8gpudistances.xml": {
		"drac-12.grenoble.grid5000.fr", 4, "Tesla P100-SXM2-16GB", "", "X NV2 SYS SYS", 0, "17.1 GB",
	},
	"hwloc-96em64t-4n4d3ca2co-pci.xml": {
		"bertha", 0, "", "eth0 eth1 eth2 eth3 eth4 eth5 eth6 eth7", "X PIX SYS SYS SYS SYS SYS SYS", 0, "",
	},
	"hwloc-fakepcilocalities.xml": {"", 0, "", "qib0 eth0 eth1 eth2 eth3", "X SYS SYS SYS SYS", 0, ""},
	"llnl-coral-lassen.xml": {
		"lassen28", 4, "Tesla V100-SXM2-16GB", "mlx5_0 mlx5_1 mlx5_2 mlx5_3 enP5p1s0f0 enP5p1s0f1",
		"X PIX SYS SYS NODE NODE SYS SYS NODE NODE", 0, "16128 MiB",
	},
	"llnl-coral-ea-hwloc1.xml": {
		"rzmanta33", 4, "", "mlx5_0 mlx5_1 enP5p7s0f0 enP5p7s0f1", "X NODE SYS SYS NODE SYS SYS SYS", 0, "0 B",
	},
	"llnl-epyc-corona.xml": {
		"corona145", 4, "Vega 20", "mlx5_0 enp3s0f0 enp3s0f1", "X SYS SYS SYS SYS SYS SYS", 1, "32752 MiB",
	},
	"llnl-g4dnmetal.xml": {
		"gpu-st-g4dnmetal-1", 8, "Tesla T4", "rdmap197s0 eth0", "X PHB NODE NODE SYS SYS SYS SYS SYS SYS", 1, "15.8 GB",
	},
	"llnl-cts1-pascal.xml": {
		"pascal4", 2, "Tesla P100-PCIE-16GB", "mlx5_0 enp12s0f0 enp12s0f1", "X PIX PIX PHB PHB", 0, "17.1 GB",
	},
	"flux-chimera-mixed-gpus.xml": {
		"chimera", 2, "GeForce GTX 1070", "enp4s0 enp6s0 wlp5s0", "X SYS PHB PHB PHB", 1, "8.51 GB",
	},
	"flux-sierra.xml": {
		"sierra3682", 4, "Tesla V100-SXM2-16GB", "mlx5_0 mlx5_1 mlx5_2 mlx5_3 enP5p1s0f0 enP5p1s0f1",
		"X PHB SYS SYS NODE NODE SYS SYS NODE NODE", 2, "16128 MiB",
	},
	"live-this-vm.xml": {"vm", 0, "", "eth0", "X", 0, ""},
}

func TestCorpusDevices(t *testing.T) {
	for _, e := range corpus.Index(t, Format) {
		want, ok := wants[filepath.Base(e.File)]
		if !ok {
			t.Errorf("%s: a sample without a list of its devices", e.File)
			continue
		}
		f, err := Read(e.File, bytes.NewReader(corpus.Open(t, e.File)))
		if err != nil {
			t.Error(err)
			continue
		}
		ty := f.Types[0]
		gpus := ty.Of(cluster.GPU)
		var labels []string
		for _, n := range ty.Of(cluster.NIC) {
			labels = append(labels, ty.Devices[n].Label)
		}
		row := ""
		if m := ty.Matrix(); len(m.Class) > 0 {
			row = strings.Join(m.Class[0], " ")
		}
		if f.Hosts[0].Name != want.host || len(gpus) != want.gpus || strings.Join(labels, " ") != want.nics ||
			row != want.row || len(f.Warnings) != want.warns {
			t.Errorf("%s: host %q, %d GPUs, NICs %v, first row %q, warnings %v; want %+v", e.File, f.Hosts[0].Name, len(gpus),
				labels, row, f.Warnings, want)
		}
		if len(gpus) > 0 {
			if g := ty.Devices[gpus[0]]; g.Model.Value != want.model || g.GPU.Memory.Value.String() != want.memory {
				t.Errorf("%s: first GPU %q with %v; want %q with %s", e.File, g.Model.Value, g.GPU.Memory.Value, want.model,
					want.memory)
			}
		}
	}
}

// TestLassen looks closely at one machine: GPUs behind a PLX switch by two lanes
// each, and two-function NICs that share a root port.
func TestLassen(t *testing.T) {
	f, err := Read("lassen", bytes.NewReader(corpus.Open(t, "lstopo-xml/llnl-coral-lassen.xml")))
	if err != nil {
		t.Fatal(err)
	}
	ty := f.Types[0]
	var got []string
	for _, l := range ty.Links {
		if l.Kind == cluster.PCIe && l.Rate.Known() {
			got = append(got, fmt.Sprintf("%s–%s %v", ty.Devices[l.A].Name, ty.Devices[l.B].Name, l.Rate.Value))
		}
	}
	for _, want := range []string{
		"root1–pci1 3.94 GB/s", "pci1–gpu0 1.97 GB/s", "root0–pci0 15.8 GB/s", "pci0–nic0 15.8 GB/s",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no link %q among %q", want, got)
		}
	}
	nic := ty.Devices[ty.ByName("nic0")]
	p := nic.NIC.Ports[0]
	if nic.NIC.Kind != cluster.InfiniBand || nic.UUID != "0x506b4b03003ceee8" || p.GUID != nic.UUID || p.LID != 0x527 ||
		p.State != cluster.Up || p.Label != "hsi0" {
		t.Errorf("nic0 is %+v with port %+v", nic, p)
	}
	numa := ty.Devices[ty.ByName("numa8")]
	if numa.CPU.Cores != "96-175" || numa.CPU.Memory.Value != 137166913536 || numa.CPU.Arch != "ppc64" {
		t.Errorf("numa8 is %+v", numa.CPU)
	}
}

// TestSecondOpinion has lstopo itself read each sample and write it again, with
// every tool's own reduction, and expects the same GPUs, NICs and classes.
func TestSecondOpinion(t *testing.T) {
	lstopo, err := exec.LookPath("lstopo")
	if err != nil {
		t.Skip("lstopo is not installed; Debian's package is hwloc")
	}
	dir := filepath.Join(corpus.Dir(t), "corpus")
	for _, e := range corpus.Index(t, Format) {
		cmd := exec.Command(lstopo, "-i", filepath.Join(dir, e.File), "--if", "xml", "--of", "xml")
		cmd.Env = append(os.Environ(), "HWLOC_HIDE_ERRORS=2")
		out, err := cmd.Output()
		if err != nil {
			if strings.HasPrefix(fmt.Sprint(e.Facts["xml_version"]), "3") {
				continue // hwloc 2 refuses version 3
			}
			t.Errorf("%s: lstopo: %v", e.File, err)
			continue
		}
		a, errA := Read(e.File, bytes.NewReader(corpus.Open(t, e.File)))
		b, errB := Read("lstopo", bytes.NewReader(out))
		if errA != nil || errB != nil {
			t.Errorf("%s: %v, %v", e.File, errA, errB)
			continue
		}
		if x, y := outline(a.Types[0]), outline(b.Types[0]); x != y {
			t.Errorf("%s: we read\n%s\nlstopo writes what reads as\n%s", e.File, x, y)
		}
	}
}

// outline prints what two views of one machine must agree on.
func outline(t *cluster.NodeType) string {
	var b strings.Builder
	fmt.Fprintln(&b, t.Count(cluster.Socket), "sockets")
	m := t.Matrix()
	for i, name := range m.Names {
		d := t.Devices[t.ByName(name)]
		fmt.Fprintln(&b, name, d.PCI, d.Label, m.Class[i])
	}
	return b.String()
}
