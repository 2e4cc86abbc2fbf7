package ncclxml

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/tags"
	"busbar.dev/internal/test/corpus"
)

// count is what INDEX.jsonl counts in a file, by elements.
type count struct {
	Version   string         `json:"version"`
	CPUs      int            `json:"cpus"`
	NUMAs     []string       `json:"numaids"`
	PCI       int            `json:"pci"`
	PCIClass  map[string]int `json:"pci_class"`
	PCILinks  map[string]int `json:"pci_links"`
	GPUs      int            `json:"gpus"`
	NICs      int            `json:"nics"`
	Nets      int            `json:"nets"`
	NetNames  []string       `json:"net_names"`
	NetSpeed  map[string]int `json:"net_speed"`
	NetGDR    map[string]int `json:"net_gdr"`
	SM        map[string]int `json:"sm"`
	NVLink    int            `json:"nvlink"`
	NVLinkSum int            `json:"nvlink_count_sum"`
	NVTargets int            `json:"nvlink_targets"`
	XGMI      int            `json:"xgmi"`
}

func countIn(sys *element) count {
	c := count{
		Version: sys.Get("version"), PCIClass: map[string]int{}, PCILinks: map[string]int{},
		NetSpeed: map[string]int{}, NetGDR: map[string]int{}, SM: map[string]int{},
	}
	targets := map[string]bool{}
	var walk func(e *element)
	walk = func(e *element) {
		switch e.Name {
		case "cpu":
			c.CPUs++
			c.NUMAs = append(c.NUMAs, e.Get("numaid"))
		case "pci":
			c.PCI++
			if class := e.Get("class"); class != "" {
				c.PCIClass[class[:6]]++
			}
			has := func(key string) string {
				if !slices.ContainsFunc(e.Attrs, func(a tags.Attr) bool { return a.Key == key }) {
					return "None"
				}
				return e.Get(key)
			}
			c.PCILinks[has("link_width")+"@"+has("link_speed")]++
		case "gpu":
			c.GPUs++
			c.SM[e.Get("sm")]++
		case "nic":
			c.NICs++
		case "net":
			c.Nets++
			c.NetNames = append(c.NetNames, e.Get("name"))
			c.NetSpeed[e.Get("speed")]++
			c.NetGDR[e.Get("gdr")]++
		case "nvlink":
			c.NVLink++
			c.NVLinkSum += upTo(maxCount, e, "count")
			targets[e.Get("target")] = true
		case "xgmi":
			c.XGMI++
		}
		for _, s := range e.Kids {
			walk(s)
		}
	}
	walk(sys)
	c.NVTargets = len(targets)
	slices.Sort(c.NetNames)
	return c
}

func TestCorpus(t *testing.T) {
	entries := corpus.Index(t, formatNCCL, formatRCCL)
	for _, e := range entries {
		t.Run(e.File, func(t *testing.T) { holdToIndex(t, e) })
	}
	t.Logf("%d files held to the index", len(entries))
}

func holdToIndex(t *testing.T, e corpus.Entry) {
	data := corpus.Open(t, e.File)
	if !Match(data) {
		t.Fatal("not matched")
	}
	var systems []*element
	err := tags.Trees(&cluster.Fragment{}, string(data), "system", maxElements, func(sys *element) {
		systems = append(systems, sys)
	})
	if err != nil || len(systems) != 1 {
		t.Fatalf("%d systems, %v", len(systems), err)
	}
	var want count
	raw, _ := json.Marshal(e.Facts)
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*map[string]int{&want.PCIClass, &want.PCILinks, &want.NetSpeed, &want.NetGDR, &want.SM} {
		if *m == nil {
			*m = map[string]int{}
		}
	}
	slices.Sort(want.NetNames)
	got := countIn(systems[0])
	if a, b := show(got), show(want); a != b {
		t.Errorf("elements:\n got %s\nwant %s", a, b)
	}
	f, err := Read(e.File, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if f.Format != e.Format {
		t.Errorf("format %q, index says %q", f.Format, e.Format)
	}
	holdModel(t, f, want)
	roundTrip(t, f.Types[0])
}

// holdModel checks the model against the same counts.
func holdModel(t *testing.T, f *cluster.Fragment, want count) {
	if len(f.Types) != 1 || len(f.Hosts) != 1 {
		t.Fatalf("%d types, %d hosts", len(f.Types), len(f.Hosts))
	}
	nt := f.Types[0]
	if err := nt.Check(); err != nil {
		t.Fatal(err)
	}
	gpus, nics, switches := max(want.GPUs, classes(want, "0x03", "0x12")), max(want.NICs, classes(want, "0x02")),
		classes(want, "0x0604")
	unknown := want.PCI - classes(want, "0x03", "0x12", "0x02", "0x0604")
	for _, c := range []struct {
		kind cluster.Kind
		want int
	}{
		{cluster.GPU, gpus},
		{cluster.NIC, nics},
		{cluster.PCISwitch, switches},
		{cluster.NUMA, want.CPUs},
		{cluster.KindUnknown, unknown},
		{cluster.Socket, 0},
	} {
		if n := nt.Count(c.kind); n != c.want {
			t.Errorf("%d devices of kind %v, want %d", n, c.kind, c.want)
		}
	}
	var numas, labels []string
	ports, speed, gdr := 0, map[string]int{}, map[string]int{}
	for i := range nt.Devices {
		d := &nt.Devices[i]
		switch d.Kind {
		case cluster.NUMA:
			numas = append(numas, strconv.Itoa(d.Index))
		case cluster.NIC:
			for _, p := range d.NIC.Ports {
				ports++
				labels = append(labels, p.Label)
				speed[strconv.Itoa(int(p.Rate.Value.Gbps()*1000+0.5))]++
				gdr[map[cluster.Tri]string{cluster.Yes: "1", cluster.No: "0"}[d.NIC.GDR]]++
			}
		case cluster.GPU:
			if len(want.SM) == 1 && want.XGMI == 0 && f.Format == formatNCCL && want.SM[strconv.Itoa(d.GPU.SM)] == 0 {
				t.Errorf("%s: sm %d", d.Name, d.GPU.SM)
			}
		}
	}
	slices.Sort(labels)
	if !slices.Equal(numas, want.NUMAs) || ports != want.Nets || !slices.Equal(labels, want.NetNames) ||
		!maps.Equal(speed, want.NetSpeed) || !maps.Equal(gdr, want.NetGDR) {
		t.Errorf("numas %v ports %d %v speed %v gdr %v", numas, ports, labels, speed, gdr)
	}
	xgmi := 0
	for _, l := range nt.Links {
		if l.Kind == cluster.XGMI {
			xgmi += 2
			if l.OneWay {
				xgmi--
			}
		}
	}
	if xgmi != want.XGMI {
		t.Errorf("xgmi links count %d directions, want %d", xgmi, want.XGMI)
	}
}

func classes(c count, prefixes ...string) int {
	n := 0
	for class, k := range c.PCIClass {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(class, p) }) {
			n += k
		}
	}
	return n
}

func show(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// roundTrip holds Write to giving back what was read, exactly.
func roundTrip(t *testing.T, nt *cluster.NodeType) {
	t.Helper()
	out := write(t, nt)
	f, err := Read("written", strings.NewReader(out))
	if err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	if len(f.Warnings) > 0 && !oneWay(nt) {
		t.Errorf("warnings about what was written: %v", f.Warnings)
	}
	for i := range nt.Devices {
		if i < len(f.Types[0].Devices) {
			if a, b := show(nt.Devices[i]), show(f.Types[0].Devices[i]); a != b {
				t.Errorf("device %d:\n was %s\n now %s", i, a, b)
			}
		}
	}
	if a, b := show(nt), show(f.Types[0]); a != b {
		t.Errorf("was %s\nnow %s\nin\n%s", a, b, out)
	}
	var again strings.Builder
	if err := writeOne(&again, f.Types[0]); err != nil || again.String() != out {
		t.Errorf("written twice it differs (%v)", err)
	}
}

func oneWay(t *cluster.NodeType) bool {
	return slices.ContainsFunc(t.Links, func(l cluster.Link) bool { return l.OneWay }) || t.Count(cluster.KindUnknown) > 0
}

// TestRealDump holds Write to the attributes and the order that NCCL 2.28.9
// itself wrote.
func TestRealDump(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(corpus.Dir(t), "corpus", "nccl-real", "*", "topo.xml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no dumps: %v", err)
	}
	for _, path := range append(paths, filepath.Join(corpus.Dir(t), "corpus", "nccl-real", "topo-asdumped.xml")) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Read(filepath.Base(path), bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Warnings) > 0 {
			t.Errorf("%v", f.Warnings)
		}
		roundTrip(t, f.Types[0])
		// Not kept: the host's hash and the connections; zero means unknown.
		var want []string
		for line := range strings.Lines(string(data)) {
			for _, gone := range []string{
				` link_width="0"`, ` port="0"`, ` guid="0x0"`, ` maxconn="65536"`, ` host_hash="0x2c4666bb259e0ba1"`,
			} {
				line = strings.ReplaceAll(line, gone, "")
			}
			want = append(want, line)
		}
		var out strings.Builder
		if err := writeOne(&out, f.Types[0]); err != nil {
			t.Fatal(err)
		}
		if out.String() != strings.Join(want, "") {
			t.Errorf("%s: got\n%swant\n%s", path, out.String(), strings.Join(want, ""))
		}
	}
}
