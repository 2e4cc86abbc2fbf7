package ibnet

import (
	"bytes"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/internal/test/readertest"
	"busbar.dev/unit"
)

// formats pairs every format of the package with its reader.
var formats = map[string]readertest.Reader{
	"ibnetdiscover":    {Match: Discover.Match, Read: Discover.Read},
	"ibsim net":        {Match: Discover.Match, Read: Discover.Read},
	"ibnetdiscover -p": {Match: Ports.Match, Read: Ports.Read},
	"iblinkinfo":       {Match: LinkInfo.Match, Read: LinkInfo.Read},
	"perfquery":        {Match: Perf.Match, Read: Perf.Read},
	"ibqueryerrors":    {Match: Errors.Match, Read: Errors.Read},
}

// open reads a sample with the reader of its format.
func open(t *testing.T, format, file string) *cluster.Fragment {
	t.Helper()
	f, err := formats[format].Read(file, bytes.NewReader(corpus.Open(t, file)))
	if err != nil {
		t.Fatal(err)
	}
	check(t, f)
	return f
}

// check holds a fragment to what a fabric's readers promise: names are given once, a
// port has one cable, and an end at hosts names a NIC.
func check(t *testing.T, f *cluster.Fragment) {
	t.Helper()
	readertest.Check(t, f)
	names := make(map[string]bool)
	for _, h := range f.Hosts {
		if h.Type < 0 || h.Type >= len(f.Types) || h.Name == "" || names[h.Name] {
			t.Errorf("host %q has type %d of %d, or a name that is taken", h.Name, h.Type, len(f.Types))
			continue
		}
		names[h.Name] = true
		for _, id := range h.IDs {
			if f.Types[h.Type].ByName(id.Device) < 0 {
				t.Errorf("host %s: identity of unknown device %q", h.Name, id.Device)
			}
		}
	}
	clear(names)
	for _, s := range f.Network.Switches {
		if s.Name == "" || names[s.Name] {
			t.Errorf("switch name %q is empty or taken", s.Name)
		}
		names[s.Name] = true
	}
	type at struct{ sw, port int }
	used := make(map[at]bool)
	for _, l := range f.Network.Links {
		for _, e := range []cluster.End{l.A, l.B} {
			if e.Switch >= 0 {
				if used[at{e.Switch, e.Port}] {
					t.Errorf("switch %d port %d has two cables", e.Switch, e.Port)
				}
				used[at{e.Switch, e.Port}] = true
			}
			if e.NIC < 0 && len(e.Hosts) > 0 {
				t.Errorf("end %+v: no NIC", e)
			}
		}
	}
}

func TestEverySampleMatchesItsFormatOnly(t *testing.T) {
	n := 0
	for _, e := range corpus.Index(t) {
		data := corpus.Open(t, e.File)
		for name, f := range formats {
			want := name == e.Format || name == "ibnetdiscover" && e.Format == "ibsim net" ||
				name == "ibsim net" && e.Format == "ibnetdiscover"
			if got := f.Match(data); got != want {
				t.Errorf("%s (%s) taken for %s: %v; want %v", e.File, e.Format, name, got, want)
			}
			if want {
				n++
			}
		}
	}
	t.Logf("%d matches", n)
}

// ints reads a fact that is a number, or a map of numbers.
func ints(v any) map[string]int {
	out := make(map[string]int)
	switch v := v.(type) {
	case float64:
		out[""] = int(v)
	case map[string]any:
		for k, n := range v {
			out[k] = int(n.(float64))
		}
	}
	return out
}

// The index counts lines; a reader's fabric keeps the same count.
func TestDiscoverFacts(t *testing.T) {
	files := 0
	for _, e := range corpus.Index(t, "ibnetdiscover", "ibsim net") {
		f := open(t, e.Format, e.File)
		d, err := Discover.fabric("x", bytes.NewReader(corpus.Open(t, e.File)))
		if err != nil {
			t.Error(err)
		}
		if got, want := len(f.Network.Switches), ints(e.Facts["switches"])[""]; got != want {
			t.Errorf("%s: %d switches; want %d", e.File, got, want)
		}
		cas := 0
		for _, n := range d.nodes {
			if n.kind == anAdapter {
				cas++
			}
		}
		if want := ints(e.Facts["cas"])[""]; cas != want {
			t.Errorf("%s: %d adapters; want %d", e.File, cas, want)
		}
		if want := ints(e.Facts["port_lines"])[""] + ints(e.Facts["switches"])[""] + cas; d.used != want {
			t.Errorf("%s: %d lines; want %d", e.File, d.used, want)
		}
		radix := make(map[string]int)
		for _, n := range d.nodes { // as stated: with the port of an aggregation node inside
			if n.kind == aSwitch {
				radix[itoa(n.ports)]++
			}
		}
		same(t, e.File, "radix", radix, ints(e.Facts["switch_radix"]))
		speeds := make(map[string]int)
		for _, p := range d.ports {
			if p.own && p.is.known() {
				speeds[p.is.String()]++
			}
		}
		same(t, e.File, "speeds", speeds, ints(e.Facts["speeds"]))
		files++
	}
	t.Logf("%d files", files)
}

func same(t *testing.T, file, what string, got, want map[string]int) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %s %v; want %v", file, what, got, want)
		return
	}
	for k, n := range want {
		if got[k] != n {
			t.Errorf("%s: %s of %q: %d; want %d", file, what, k, got[k], n)
		}
	}
}

func TestNDRFabric(t *testing.T) {
	f := open(t, "ibnetdiscover", "ib/ibnetdiscover-582ca-40sw-ndr.txt")
	for _, s := range f.Network.Switches {
		want := cluster.Spine
		if strings.Contains(s.Name, "IBLEAF") {
			want = cluster.Leaf
		}
		if s.Tier != want || s.Model != "MQM9701" || s.Ports != 64 || s.Reduction != cluster.Yes || len(s.GUID) != 16 ||
			!strings.HasPrefix(s.Label, "MF0;") || strings.ContainsAny(s.Name, ";:/") {
			t.Errorf("%+v", s)
		}
	}
	s := f.Summary()
	// 582 adapters of which 40 are aggregation nodes, 69 have no host name and are no nodes.
	if s.NICs != 582-40 || s.NodeTypes != 5 || s.Nodes != 122 || len(f.Hosts) != 122+69 ||
		f.Network.Reduction != cluster.Yes {
		t.Errorf("%+v", s)
	}
	if n := len(f.Network.Links); n != 2228/2-40 {
		t.Errorf("%d cables", n)
	}
	for _, l := range f.Network.Links {
		if l.Rate.Value != 400*unit.Gbps || l.Speed != "4xNDR" || l.Lanes != 4 || l.State != cluster.StateUnknown ||
			l.Max.Known() {
			t.Fatalf("%+v", l)
		}
	}
	h := f.HostIndex("a08-p1-dgx-04-c01")
	if h < 0 {
		t.Fatal("a08-p1-dgx-04-c01 not found")
	}
	var labels []string
	for _, d := range f.TypeOf(h).Devices {
		labels = append(labels, d.Label)
	}
	if got := strings.Join(labels, " "); got != "mlx5_0 mlx5_1 mlx5_4 mlx5_5" {
		t.Errorf("adapters %s", got)
	}
	if id := f.Hosts[h].IDs[3]; id.Device != "nic3" || id.UUID != "0xe09d7303007a4bd8" || id.LID != 647 || id.Port != 1 {
		t.Errorf("%+v", id)
	}
	l := f.Network.Links[linkAt(f, "A09-P1-IBLEAF-04-04", 1)]
	if l.B.Hosts[0].First != h || l.B.NIC != 3 || l.B.Port != 1 {
		t.Errorf("%+v", l)
	}
	if len(f.Warnings) != 2 || !strings.Contains(f.Warnings[0].Text, "69 adapters") ||
		!strings.Contains(f.Warnings[1].Text, "40 aggregation nodes") {
		t.Errorf("%v", f.Warnings)
	}
}

// linkAt finds the link of a switch's port, or -1.
func linkAt(f *cluster.Fragment, sw string, port int) int {
	s := f.Network.SwitchByName(sw)
	for i, l := range f.Network.Links {
		if s >= 0 && (l.A.Switch == s && l.A.Port == port || l.B.Switch == s && l.B.Port == port) {
			return i
		}
	}
	return -1
}

func TestIncompleteScan(t *testing.T) {
	f := open(t, "ibnetdiscover", "ib/ibnetdiscover-bad.txt")
	if len(f.Hosts) != 1 || f.Hosts[0].Name != "dgx-gb200-n01-c1" || f.Types[0].Devices[0].Label != "HCA-1" ||
		len(f.Network.Links) != 0 {
		t.Errorf("%+v", f.Hosts)
	}
	if p := f.Types[0].Devices[0].NIC.Ports; len(p) != 1 || p[0].State != cluster.StateUnknown {
		t.Errorf("%+v", p)
	}
	if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].Text, "incomplete scan") {
		t.Errorf("%v", f.Warnings)
	}
}

func TestThreeTiers(t *testing.T) {
	f := open(t, "ibnetdiscover", "ib/ibnetdiscover-k4n3-fattree-edr.topo")
	tiers := make(map[cluster.Tier]int)
	for _, s := range f.Network.Switches {
		tiers[s.Tier]++
	}
	if tiers[cluster.Leaf] != 32 || tiers[cluster.Spine] != 32 || tiers[cluster.Core] != 16 || len(f.Types) != 1 ||
		len(f.Warnings) != 0 {
		t.Errorf("tiers %v, %d types, %v", tiers, len(f.Types), f.Warnings)
	}
	for _, l := range f.Network.Links {
		up := f.Network.Switches[l.A.Switch].Tier
		if l.B.ToHosts() && up != cluster.Leaf || !l.B.ToHosts() && f.Network.Switches[l.B.Switch].Tier != up-1 {
			t.Fatalf("%+v", l)
		}
	}
}
