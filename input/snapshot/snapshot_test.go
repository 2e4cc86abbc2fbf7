package snapshot

import (
	"archive/tar"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"io/fs"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/internal/test/readertest"
)

// pack makes a small synthetic archive; "link → target" entries are links.
func pack(t testing.TB, compress bool, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, data := range files {
		h := &tar.Header{Name: name, Mode: 0o444, Size: int64(len(data)), Typeflag: tar.TypeReg}
		if target, ok := strings.CutPrefix(data, "→"); ok {
			h.Typeflag, h.Linkname, h.Size, data = tar.TypeSymlink, target, 0, ""
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !compress {
		return b.Bytes()
	}
	var z bytes.Buffer
	g := gzip.NewWriter(&z)
	if _, err := g.Write(b.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	return z.Bytes()
}

var small = map[string]string{
	"host/sys/devices/system/node/node0/cpulist":        "0-3\n",
	"host/sys/devices/system/cpu/cpu0/online":           "1\n",
	"host/sys/devices/pci0000:00/0000:00:03.0/class":    "0x020000\n",
	"host/sys/devices/pci0000:00/0000:00:03.0/vendor":   "0x15b3\n",
	"host/sys/devices/pci0000:00/0000:00:03.0/device":   "0x1017\n",
	"host/sys/devices/pci0000:00/0000:00:03.0/net/e0/x": "",
	"host/sys/bus/pci/devices/0000:00:03.0":             "→../../../devices/pci0000:00/0000:00:03.0",
	"host/sys/loop":                                     "→loop",
	"host/sys/out":                                      "→../../../../etc",
	"../evil":                                           "x",
}

func TestReadSmall(t *testing.T) {
	for _, compress := range []bool{false, true} {
		data := pack(t, compress, small)
		f, err := Read("small.tar", bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if n := f.Types[0].Count(cluster.NUMA); n != 1 {
			t.Errorf("%d NUMA domains", n)
		}
	}
}

func TestLinksAreBounded(t *testing.T) {
	tr, err := readTree(nil, bytes.NewReader(pack(t, false, small)))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"host/sys/loop", "host/sys/out", "host/sys/out/passwd", "../evil", "evil"} {
		if _, err := fs.Stat(tr, name); err == nil {
			t.Errorf("%s leads somewhere", name)
		}
	}
	if s, err := fs.ReadFile(tr, "host/sys/bus/pci/devices/0000:00:03.0/vendor"); err != nil || string(s) != "0x15b3\n" {
		t.Errorf("through a link: %q, %v", s, err)
	}
}

func TestBadArchives(t *testing.T) {
	good := pack(t, true, small)
	for _, tt := range []struct {
		name string
		data []byte
		want string
	}{
		{"cut", good[:len(good)/2], "x.tar:"},
		{"no machine", pack(t, false, map[string]string{"a/b": "c"}), "no /sys in it"},
		{"empty", pack(t, false, nil), "empty archive"},
		{"no tar inside", []byte("BZh91AY&SY garbage"), "x.tar:"},
	} {
		if _, err := Read("x.tar", bytes.NewReader(tt.data)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestCorpus(t *testing.T) {
	for _, e := range corpus.Index(t, "/sys and /proc snapshot (tar)", "/sys/class/infiniband tree (tar)") {
		f, err := Read(e.File, bytes.NewReader(corpus.Open(t, e.File)))
		if err != nil {
			t.Errorf("%s: %v", e.File, err)
			continue
		}
		if n := len(f.Types[0].Of(cluster.NIC)); n == 0 {
			t.Errorf("%s: no NICs", e.File)
		}
	}
	tr, err := readTree(nil, bzip2.NewReader(bytes.NewReader(corpus.Open(t,
		"sysfs-machine/40intel64-2g2n4c-pcilocality.tar.bz2"))))
	if err != nil {
		t.Fatal(err)
	}
	root := tr.machine()
	for pattern, want := range map[string]int{
		"sys/bus/pci/devices/*": 37, "sys/class/net/*": 6, "sys/devices/system/node/node[0-9]*": 4,
	} {
		if list, err := fs.Glob(root, pattern); err != nil || len(list) != want {
			t.Errorf("%d files %s, %v; want %d", len(list), pattern, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(pack(f, false, small))
	f.Add(pack(f, true, small))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		frag, err := Read("fuzz", bytes.NewReader(data))
		if err != nil {
			return
		}
		readertest.Check(t, frag)
	})
}

// A name that no machine has is refused before folders are made of it.
func TestDeepNamesAreRefused(t *testing.T) {
	for _, name := range []string{"h/sys/" + strings.Repeat("a/", 200) + "f", "h/sys/" + strings.Repeat("a", 5000)} {
		_, err := Read("x", bytes.NewReader(pack(t, true, map[string]string{name: "x"})))
		if err == nil || !strings.Contains(err.Error(), "no machine has such") {
			t.Errorf("%.20s…: error %v", name, err)
		}
	}
}

// Two copies of /sys/class/infiniband in one archive: the same one every time.
func TestBareRDMAIsTheSameEveryTime(t *testing.T) {
	data := pack(t, false, map[string]string{
		"a/mlx5_0/ports/1/rate":  "200 Gb/sec (4X HDR)\n",
		"a/mlx5_0/ports/1/state": "4: ACTIVE\n",
		"b/mlx5_9/ports/1/rate":  "100 Gb/sec (4X EDR)\n",
		"b/mlx5_9/ports/1/state": "4: ACTIVE\n",
	})
	for range 20 {
		f, err := Read("x", bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		nics := f.Types[0].Of(cluster.NIC)
		if len(nics) != 1 || f.Types[0].Devices[nics[0]].Label != "mlx5_0" {
			t.Fatalf("read %+v; want mlx5_0 of the first folder", f.Types[0].Devices)
		}
	}
}
