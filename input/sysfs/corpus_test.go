package sysfs

import (
	"archive/tar"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/input/hwloc"
	"busbar.dev/internal/test/corpus"
)

// idle are folders and files of a snapshot that neither this package nor lstopo's
// PCI and CPU readers look at; leaving them out halves the time of unpacking.
var idle = regexp.MustCompile(
	`/(power|queues|cpuset|firmware|cache|hugepages|infiniband_\w+|cm_\w+|pkeys|modalias|uevent|irq|enable|rom|re(move|scan|set|source\d*)|broken_parity_status|msi_bus|memory\d+|(thread|core)_siblings_list|firmware_node|subsystem)(/|$)`)

// unpack writes a sample's tar into a folder of its own and returns the folder
// inside it that stands for the machine's root.
func unpack(t *testing.T, file string) string {
	t.Helper()
	var r io.Reader = bytes.NewReader(corpus.Open(t, file))
	if strings.HasSuffix(file, ".bz2") {
		r = bzip2.NewReader(r)
	} else {
		z, err := gzip.NewReader(r)
		if err != nil {
			t.Fatal(err)
		}
		r = z
	}
	dir := t.TempDir()
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !filepath.IsLocal(h.Name) {
			t.Fatalf("%s: %q leaves the folder", file, h.Name)
		}
		if idle.MatchString(h.Name) {
			continue
		}
		name := filepath.Join(dir, h.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(name, 0o755)
		case tar.TypeSymlink:
			err = os.Symlink(h.Linkname, name)
		case tar.TypeReg:
			var data []byte
			if data, err = io.ReadAll(in); err == nil {
				err = os.WriteFile(name, data, 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%s: %d folders, %v", file, len(entries), err)
	}
	return filepath.Join(dir, entries[0].Name())
}

// nicsOf prints every NIC: label, address, family and its ports.
func nicsOf(ty *cluster.NodeType) string {
	var b strings.Builder
	for _, i := range ty.Of(cluster.NIC) {
		d := ty.Devices[i]
		fmt.Fprintf(&b, "%s %s %s %s", d.Label, d.PCI, d.NIC.Kind, d.NIC.Driver)
		for _, p := range d.NIC.Ports {
			fmt.Fprintf(&b, " %d:%s %v", p.Num, p.Label, p.State)
			if p.Rate.Known() {
				fmt.Fprintf(&b, " %s %s", p.Rate.Value.Bits(), p.Speed)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// counts is how much of a machine there was to read, before anything was left
// out.
type counts struct {
	CPUs, NUMA, PCI, Interfaces, RDMA int
}

// count counts what a machine's /sys lists.
func count(fsys fs.FS) (counts, error) {
	t, err := open(fsys)
	if err != nil {
		return counts{}, err
	}
	return counts{
		CPUs:       len(t.numbered("devices/system/cpu", "cpu")),
		NUMA:       len(t.numbered("devices/system/node", "node")),
		PCI:        len(t.list(path.Join(t.sys, "bus/pci/devices"))),
		Interfaces: len(t.list(path.Join(t.sys, "class/net"))),
		RDMA:       len(t.list(t.rdma)),
	}, nil
}

// TestCorpusMachines holds the reader to INDEX.jsonl's two machines.
func TestCorpusMachines(t *testing.T) {
	wants := map[string]struct {
		counts counts
		nics   string
		cpu    string
		numa   string // of the first NIC
	}{
		"40intel64-2g2n4c-pcilocality.tar.bz2": {
			counts{40, 4, 37, 6, 1},
			`qib0 0000:43:00.0 infiniband ib_qib 1:ib0 up 40 Gb/s 4xQDR
eth0 0000:02:00.0 ethernet bnx2 1: up 1 Gb/s 
eth1 0000:02:00.1 ethernet bnx2 1: down
eth2 0000:03:00.0 ethernet bnx2 1: down
eth3 0000:03:00.1 ethernet bnx2 1: down
`, "Intel(R) Xeon(R) CPU E7- 4870  @ 2.40GHz 6/47", "numa2",
		},
		"32em64t-2n8c-dax-nvme-mic-dimms.tar.bz2": {
			counts{16, 2, 137, 7, 2},
			`mlx4_0 0000:82:00.0 infiniband mlx4_core 1:ib0 up 56 Gb/s 4xFDR
eth0 0000:02:00.0 ethernet igb 1: up 1 Gb/s 
eth1 0000:02:00.3 ethernet igb 1: down
`, "Intel(R) Xeon(R) CPU E5-2680 0 @ 2.70GHz 6/45", "numa1",
		},
	}
	for _, e := range corpus.Index(t, "/sys and /proc snapshot (tar)") {
		want, ok := wants[filepath.Base(e.File)]
		if !ok {
			t.Errorf("%s: a sample without a list of its devices", e.File)
			continue
		}
		root := unpack(t, e.File)
		counts, err := count(os.DirFS(root))
		if err != nil || counts != want.counts {
			t.Errorf("%s: counted %+v, %v; want %+v", e.File, counts, err, want.counts)
		}
		for _, said := range []string{
			fmt.Sprintf("%d PCI devices", counts.PCI), fmt.Sprintf("%d net interfaces", counts.Interfaces),
		} {
			if !strings.Contains(e.MustFind, said) {
				t.Errorf("%s: we count %s; the index says %s", e.File, said, e.MustFind)
			}
		}
		f, err := Read("", os.DirFS(root))
		if err != nil {
			t.Errorf("%s: %v", e.File, err)
			continue
		}
		ty := f.Types[0]
		if err := ty.Check(); err != nil {
			t.Error(err)
		}
		if got := nicsOf(ty); got != want.nics {
			t.Errorf("%s: NICs\n%swant\n%s", e.File, got, want.nics)
		}
		if len(f.Warnings) > 0 || ty.Count(cluster.GPU) != 0 || ty.Count(cluster.NUMA) != want.counts.NUMA ||
			ty.Count(cluster.Socket) != want.counts.NUMA {
			t.Errorf("%s: warnings %v, %d GPUs, %d NUMA domains, %d sockets", e.File, f.Warnings, ty.Count(cluster.GPU),
				ty.Count(cluster.NUMA), ty.Count(cluster.Socket))
		}
		s := ty.Devices[ty.ByName("socket0")]
		if got := fmt.Sprintf("%s %d/%d", s.Model.Value, s.CPU.Family, s.CPU.Model); got != want.cpu {
			t.Errorf("%s: CPU %s; want %s", e.File, got, want.cpu)
		}
		if at := ty.Above(ty.ByName("nic0"), cluster.NUMA); at < 0 || ty.Devices[at].Name != want.numa {
			t.Errorf("%s: nic0 is in device %d; want %s", e.File, at, want.numa)
		}
		t.Run("lstopo/"+filepath.Base(e.File), func(t *testing.T) { secondOpinion(t, root) })
	}
}

// TestCorpusRDMA holds the reader to the bare /sys/class/infiniband of an H100
// machine, in its place and by itself.
func TestCorpusRDMA(t *testing.T) {
	for _, e := range corpus.Index(t, "/sys/class/infiniband tree (tar)") {
		bare := unpack(t, e.File)
		placed := t.TempDir()
		if err := os.MkdirAll(filepath.Join(placed, "sys/class"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(bare, filepath.Join(placed, "sys/class/infiniband")); err != nil {
			t.Fatal(err)
		}
		for _, root := range []string{bare, filepath.Dir(bare), placed} {
			f, err := Read("h100", os.DirFS(root))
			if err != nil {
				t.Fatal(err)
			}
			ty := f.Types[0]
			if n := ty.Count(cluster.NIC); n != 9 || len(f.Warnings) > 0 {
				t.Fatalf("%d NICs, warnings %v", n, f.Warnings)
			}
			var bad []string
			for _, i := range ty.Of(cluster.NIC) {
				d := ty.Devices[i]
				p := d.NIC.Ports[0]
				want := "infiniband 400 Gb/s 4xNDR MT4129 28.41.1000"
				if d.Label == "mlx5_bond_0" {
					want = "roce 200 Gb/s 2xNDR MT41692 32.38.3056"
				}
				got := fmt.Sprintf("%s %s %s %s %s", d.NIC.Kind, p.Rate.Value.Bits(), p.Speed, d.Model.Value, d.NIC.Firmware)
				if got != want || p.State != cluster.Up || p.Num != 1 {
					t.Errorf("%s is %s, %v; want %s", d.Label, got, p.State, want)
				}
				if p.Counters["port_rcv_errors"] != 14 || p.Counters["roce_adp_retrans"] != 3 ||
					p.Counters["port_xmit_wait"] != 0 || p.Counters["port_xmit_data"] != 0 {
					t.Errorf("%s counts %v", d.Label, p.Counters)
				}
				if p.Counters["link_downed"] > 0 {
					bad = append(bad, d.Label)
				}
			}
			if !slices.Equal(bad, []string{"mlx5_1"}) {
				t.Errorf("links went down on %v; want mlx5_1 only", bad)
			}
		}
	}
}

// secondOpinion reads a machine twice: from /sys by this package, and from the
// same folder by lstopo and the reader of its XML.
func secondOpinion(t *testing.T, root string) {
	t.Helper()
	lstopo, err := exec.LookPath("lstopo")
	if err != nil {
		t.Skip("lstopo is not installed; Debian's package is hwloc")
	}
	cmd := exec.Command(lstopo, "-i", root, "--if", "fsroot", "--of", "xml")
	cmd.Env = append(os.Environ(), "HWLOC_HIDE_ERRORS=2")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("lstopo: %v", err)
	}
	a, err := Read("", os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	b, err := hwloc.Read("lstopo", bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	agree(t, a.Types[0], b.Types[0])
}

// agree compares what both views know.
func agree(t *testing.T, a, b *cluster.NodeType) {
	t.Helper()
	for _, k := range []cluster.Kind{cluster.Socket, cluster.NUMA, cluster.GPU, cluster.NIC} {
		if a.Count(k) != b.Count(k) {
			t.Errorf("%d of kind %s, lstopo shows %d", a.Count(k), k, b.Count(k))
		}
	}
	for _, n := range a.Of(cluster.NUMA) {
		x, y := a.Devices[n], b.Devices[max(0, b.ByName(a.Devices[n].Name))]
		if x.Name != y.Name || x.CPU.Cores != y.CPU.Cores || x.CPU.Memory.Value != y.CPU.Memory.Value {
			t.Errorf("%s has %s and %v, lstopo shows %s with %s and %v", x.Name, x.CPU.Cores, x.CPU.Memory.Value, y.Name,
				y.CPU.Cores, y.CPU.Memory.Value)
		}
	}
	ma, mb := a.Matrix(), b.Matrix()
	if len(ma.Names) != len(mb.Names) {
		return
	}
	for i := range ma.Names {
		x, y := a.Devices[a.ByName(ma.Names[i])], b.Devices[b.ByName(mb.Names[i])]
		if x.PCI != y.PCI || x.Label != y.Label || x.UUID != y.UUID {
			t.Errorf("%s is %s at %s, lstopo shows %s at %s", x.Name, x.Label, x.PCI, y.Label, y.PCI)
		}
		for k := range ma.Class[i] {
			if p, q := ma.Class[i][k], mb.Class[i][k]; p != q && p != "?" && q != "?" {
				t.Errorf("%s–%s is %s, lstopo's tree says %s", x.Name, ma.Names[k], p, q)
			}
		}
	}
}

// TestLive reads the machine the test runs on.
func TestLive(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no /sys here")
	}
	f, err := Read("", os.DirFS("/"))
	if err != nil {
		t.Fatal(err)
	}
	ty := f.Types[0]
	if err := ty.Check(); err != nil {
		t.Error(err)
	}
	noisy := len(f.Warnings) > 0 && ty.Count(cluster.GPU) == 0
	if ty.Count(cluster.NUMA) == 0 || noisy || f.Hosts[0].Name == "" {
		t.Errorf("%d NUMA domains, host %q, warnings %v", ty.Count(cluster.NUMA), f.Hosts[0].Name, f.Warnings)
	}
	for _, i := range ty.Of(cluster.NIC) {
		if l := ty.Devices[i].Label; l == "lo" || strings.HasPrefix(l, "veth") || strings.HasPrefix(l, "docker") {
			t.Errorf("%s is no NIC", l)
		}
	}
}
