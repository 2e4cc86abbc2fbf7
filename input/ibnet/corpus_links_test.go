package ibnet

import (
	"maps"
	"strconv"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/unit"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestPortReports(t *testing.T) {
	for _, c := range []struct {
		file                    string
		switches, hosts, cables int
		down                    int
		warnings                []string
	}{
		{"ib/ibnetdiscover-p-test.out", 4, 3, 4, 2, []string{"1 node is named"}},
		{
			"ib/ibnetdiscover-p-test2.out", 5, 1, 1, 3, []string{"1 cable contradicts", "1 aggregation node", "1 node is named"},
		},
		{"ib/ibnetdiscover-p-test3.out", 1, 0, 0, 1, []string{"incomplete scan"}},
	} {
		f := open(t, "ibnetdiscover -p", c.file)
		cables, down := 0, 0
		for _, l := range f.Network.Links {
			if l.State == cluster.Down {
				down++
			} else if l.B.Switch >= 0 || len(l.B.Hosts) > 0 {
				cables++
			}
		}
		if len(f.Network.Switches) != c.switches || len(f.Hosts) != c.hosts || cables != c.cables || down != c.down {
			t.Errorf("%s: %d switches, %d hosts, %d cables, %d down", c.file, len(f.Network.Switches), len(f.Hosts), cables,
				down)
		}
		if len(f.Warnings) != len(c.warnings) {
			t.Errorf("%s: %v", c.file, f.Warnings)
			continue
		}
		for i, w := range c.warnings {
			if !strings.Contains(f.Warnings[i].Text, w) {
				t.Errorf("%s: warning %q; want %q", c.file, f.Warnings[i].Text, w)
			}
		}
	}
	f := open(t, "ibnetdiscover -p", "ib/ibnetdiscover-p-test.out")
	if l := f.Network.Links[linkAt(f, "ib-i1l1s01", 10)]; l.Speed != "4xEDR" || l.Rate.Value != 100*unit.Gbps ||
		f.Hosts[l.B.Hosts[0].First].Name != "o0001" {
		t.Errorf("%+v", l)
	}
	if id := f.Hosts[f.HostIndex("p0001")].IDs[0]; id.GUID != "0x506b4b0300cc02a6" || id.LID != 1432 {
		t.Errorf("%+v", id)
	}
}

func TestLinkInfoFacts(t *testing.T) {
	for _, e := range corpus.Index(t, "iblinkinfo") {
		f := open(t, e.Format, e.File)
		active, down, remarked := 0, 0, 0
		found := make(map[string]int)
		for _, line := range strings.Split(string(corpus.Open(t, e.File)), "\n") {
			if p, _, ok := parseLink(strings.TrimSpace(line)); ok {
				switch p.state {
				case cluster.Up:
					active++
					found[p.is.String()]++
				case cluster.Down:
					down++
				}
				if p.could.lanes != p.is.lanes && p.far.num > 0 {
					remarked++
				}
				if p.could.speed != p.is.speed && p.far.num > 0 {
					remarked++
				}
			}
		}
		want := make(map[string]int)
		for text, n := range ints(e.Facts["speeds"]) {
			words := strings.Fields(text) // 4X 53.125 Gbps
			w, _ := parseWidth(words[0] + words[1])
			want[w.String()] += n
		}
		same(t, e.File, "speeds", found, want)
		if active != ints(e.Facts["lines_active"])[""] || down != ints(e.Facts["lines_down"])[""] ||
			remarked != ints(e.Facts["could_be"])[""] {
			t.Errorf("%s: %d active, %d down, %d remarks; want %v", e.File, active, down, remarked, e.Facts)
		}
		// Without -l the blocks say how many nodes of a kind there are.
		if n := ints(e.Facts["switches"])[""]; n > 0 &&
			(len(f.Network.Switches) != n || f.Summary().NICs != ints(e.Facts["cas"])[""]) {
			t.Errorf("%s: %d switches, %d adapters; want %v", e.File, len(f.Network.Switches), f.Summary().NICs, e.Facts)
		}
		half := 0
		for _, k := range f.Network.Links {
			if k.State == cluster.Down {
				half++
			}
		}
		if half != down || len(f.Network.Links)-half != active/2 {
			t.Errorf("%s: %d links of which %d down", e.File, len(f.Network.Links), half)
		}
	}
}

func TestLinkInfoOneHostWithTwoPorts(t *testing.T) {
	f := open(t, "iblinkinfo", "ib/iblinkinfo-qdr-8host.txt")
	up := 0
	for _, l := range f.Network.Links {
		if l.State == cluster.Up {
			up++
			if l.Rate.Value != 32*unit.Gbps || l.Max.Value != l.Rate.Value || l.Speed != "4xQDR" {
				t.Errorf("%+v", l)
			}
		}
	}
	// The switch has nine cabled ports; the hand count of ten in the index takes the
	// two-port host for two.
	if up != 9 {
		t.Errorf("%d cables", up)
	}
	for h, host := range f.Hosts {
		want := 1
		if host.Name == "teaker-9" {
			want = 2
		}
		if n := len(f.TypeOf(h).Devices[0].NIC.Ports); n != want || len(host.IDs) != want {
			t.Errorf("%s has %d ports", host.Name, n)
		}
	}
}

// The simulated fabric is one and the same in three formats.
func TestSimulatedFabric(t *testing.T) {
	for format, file := range map[string]string{
		"ibnetdiscover": "ib/sim-ibnetdiscover.txt", "ibsim net": "ib/sim-ft-hdr.net", "iblinkinfo": "ib/sim-iblinkinfo.txt",
		"iblinkinfo ": "ib/sim-iblinkinfo-l.txt",
	} {
		f := open(t, strings.TrimSpace(format), file)
		for _, s := range f.Network.Switches {
			want := cluster.Leaf
			if strings.HasPrefix(s.Name, "spine") {
				want = cluster.Spine
			}
			if s.Tier != want || s.Ports != 64 {
				t.Errorf("%s: %+v", file, s)
			}
		}
		slow := make(map[string]unit.Rate)
		for _, l := range f.Network.Links {
			if l.State != cluster.Down && l.Rate.Value != 200*unit.Gbps {
				low := l.B
				if low.ToHosts() {
					low = l.A
				}
				slow[f.Network.Switches[low.Switch].Name+"["+itoa(low.Port)+"]"] = l.Rate.Value
				if strings.HasPrefix(format, "iblinkinfo") && l.Max.Value != 200*unit.Gbps {
					t.Errorf("%s: could be %v", file, l.Max.Value)
				}
			} else if l.Max.Known() && l.Max.Value != l.Rate.Value {
				t.Errorf("%s: %+v", file, l)
			}
		}
		if want := map[string]unit.Rate{"leaf2[33]": 100 * unit.Gbps, "leaf3[2]": 50 * unit.Gbps}; !maps.Equal(slow, want) {
			t.Errorf("%s: slow links %v", file, slow)
		}
		h := f.HostIndex("node10")
		if h < 0 || f.TypeOf(h).Devices[0].NIC.Ports[0].Rate.Value != 50*unit.Gbps || len(f.Types) != 2 {
			t.Errorf("%s: node10", file)
		}
	}
}

func TestCounterSamples(t *testing.T) {
	type at struct {
		sw   string
		port int
	}
	for file, want := range map[string]map[at]map[string]uint64{
		"ib/sim-perfquery.txt":   {{"lid3", 2}: {"A.SymbolErrorCounter": 1234}},
		"ib/sim-perfquery-x.txt": {{"lid2", 33}: nil},
		"ib/perfquery-x-0x506b4b03005c2740.out": {{"lid2052", 1}: {
			"A.LinkDownedCounter": 1, "A.PortRcvSwitchRelayErrors": 7, "A.PortXmitDiscards": 20046, "A.PortXmitWait": 41864608,
		}},
		"ib/perfquery-x-0x7cfe9003009ce5b0.out": {
			{"lid1719", 1}: {"A.PortXmitWait": 22730501}, {"lid1719", 2}: {"A.PortXmitWait": 36510964},
		},
		"ib/sim-ibqueryerrors.txt": {
			{"leaf3", 2}: {"A.SymbolErrorCounter": 1234}, {"leaf2", 33}: {"A.LinkDownedCounter": 7, "A.PortXmitWait": 4000000},
		},
	} {
		format := "perfquery"
		if strings.Contains(file, "ibqueryerrors") {
			format = "ibqueryerrors"
		}
		f := open(t, format, file)
		// What perfquery says of ports 1 and 2 may be of an adapter.
		maybe := format == "perfquery" && !strings.HasSuffix(file, "perfquery-x.txt")
		if len(f.Network.Links) != len(want) || len(f.Hosts) != 0 || warned(f, "may be an adapter's") != maybe {
			t.Errorf("%s: %d ports, %v", file, len(f.Network.Links), f.Warnings)
		}
		for p, counters := range want {
			i := linkAt(f, p.sw, p.port)
			if i < 0 {
				t.Errorf("%s: no %s[%d]", file, p.sw, p.port)
			} else if l := f.Network.Links[i]; !maps.Equal(l.Counters, counters) {
				t.Errorf("%s: %s[%d] has %v", file, p.sw, p.port, l.Counters)
			}
		}
	}
	if s := open(t, "ibqueryerrors", "ib/sim-ibqueryerrors.txt").Network.Switches; s[1].GUID != "0002c90300100003" {
		t.Errorf("%+v", s)
	}
}
