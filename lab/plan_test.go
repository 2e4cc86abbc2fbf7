package lab

import (
	"math"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/input/clusterfile"
	"busbar.dev/unit"
)

// read makes a cluster of a cluster file.
func read(t *testing.T, text string) *cluster.Cluster {
	t.Helper()
	f, err := clusterfile.Read("test.yaml", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := cluster.Join(f)
	hardware.Complete(c)
	return c
}

const clos = `
name: clos
types:
  one:
    gpus: 1 x A100-SXM4-40GB
    nics: 1 x 100GbE roce
nodes:
  - count: 8
    type: one
network:
  nodes_per_leaf: 4
  oversubscription: 4
`

func TestPlanOfPresets(t *testing.T) {
	for _, x := range []struct {
		name         string
		nodes, gpus  int
		nics, cables int
		scale        string
		rate         unit.Rate
	}{
		{"baskerville", 4, 1, 4, 0, "1/200", 125e6},
		{"baskerville", 2, 2, 2, 0, "1/200", 125e6},
		{"dgx-h100", 2, 8, 16, 16, "1/2000", 0},
	} {
		c, err := hardware.Preset(x.name, x.nodes)
		if err != nil {
			t.Fatal(err)
		}
		p, err := New(c, Options{Nodes: x.nodes, GPUs: x.gpus})
		if err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		if len(p.NICs) < x.nics || p.Nodes[0].GPUs != x.gpus {
			t.Errorf("%s: %d NICs, %d ranks a node; want %d and %d", x.name, len(p.NICs), p.Nodes[0].GPUs, x.nics, x.gpus)
		}
		if x.rate > 0 && math.Abs(float64(p.NICs[0].Rate/x.rate)-1) > 1e-9 {
			t.Errorf("%s: %v at scale %v, want %v", x.name, p.NICs[0].Rate, p.Scale, x.rate)
		}
		sum := unit.Rate(0)
		for _, n := range p.NICs {
			sum += n.Rate
			if n.Rate > fastest*1.001 {
				t.Errorf("%s: a NIC of %v", x.name, n.Rate.Bits())
			}
		}
		if sum > together*1.001 {
			t.Errorf("%s: all NICs together %v", x.name, sum.Bits())
		}
	}
}

func TestUplinksHaveWhatTheOversubscriptionLeaves(t *testing.T) {
	p, err := New(read(t, clos), Options{Scale: Scale{1, 100}})
	if err != nil {
		t.Fatal(err)
	}
	up := make([]unit.Rate, len(p.Switches))
	for _, c := range p.Cables {
		up[c.B] += c.Rate
	}
	for i, s := range p.Switches {
		if s.Tier == cluster.Leaf && math.Abs(float64(up[i]/125e6)-1) > 1e-6 {
			t.Errorf("%s: uplinks of %v, want 1 Gb/s: four NICs of 1 Gb/s at 4:1", s.Name, up[i].Bits())
		}
	}
	spines := 0
	for _, s := range p.Switches {
		if s.Tier == cluster.Spine {
			spines++
		}
	}
	if spines < 1 || spines > 2 {
		t.Errorf("%d spines", spines)
	}
}

func TestWaysAreShortestAndSpread(t *testing.T) {
	p, err := New(read(t, clos), Options{})
	if err != nil {
		t.Fatal(err)
	}
	tables := p.tables()
	used := map[int]int{}
	for a := range p.NICs {
		for b := range p.NICs {
			legs, ok := p.route(tables, a, b)
			want := 0
			if p.NICs[a].Switch != p.NICs[b].Switch {
				want = 2
			}
			if !ok || len(legs) != want {
				t.Fatalf("from %d to %d: %d legs, want %d", a, b, len(legs), want)
			}
			if want == 2 && (!legs[0].Up || legs[1].Up) {
				t.Errorf("from %d to %d: up then down, got %+v", a, b, legs)
			}
			for _, l := range legs {
				used[l.Cable]++
			}
		}
	}
	for c := range p.Cables {
		if used[c] != used[0] {
			t.Errorf("cable %d carries %d ways, cable 0 %d", c, used[c], used[0])
		}
	}
}

func TestNamesAndAddressesAreUnique(t *testing.T) {
	c, err := hardware.Preset("dgx-h100", 4)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i, n := range p.NICs {
		for _, s := range []string{n.Addr.String(), p.mac(i).String(), p.Nodes[n.Node].Name + "/" + n.Name} {
			if seen[s] {
				t.Errorf("%s twice", s)
			}
			seen[s] = true
		}
		if len(n.Name) > 15 {
			t.Errorf("interface %q is too long", n.Name)
		}
	}
	if h := p.hostsText(); !strings.Contains(h, " node3 ") {
		t.Errorf("hosts without node3:\n%s", h)
	}
}

func TestPlanRefuses(t *testing.T) {
	c, err := hardware.Preset("baskerville", 46)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(c, Options{Nodes: 100}); err == nil {
		t.Error("100 of 46 nodes")
	}
	if _, err := New(c, Options{Nodes: 2, Scale: Scale{1, 1e9}}); err == nil ||
		!strings.Contains(err.Error(), "greater scale") {
		t.Errorf("a scale that leaves nothing: %v", err)
	}
	big, err := hardware.Preset("dgx-h100", 200)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(big, Options{}); err == nil || !strings.Contains(err.Error(), "-l") {
		t.Errorf("200 nodes: %v", err)
	}
}

func FuzzParseScale(f *testing.F) {
	f.Add("1/200")
	f.Add("0.5")
	f.Fuzz(func(t *testing.T, s string) {
		x, err := parseScale(s)
		if err != nil {
			return
		}
		y, err := parseScale(x.String())
		if err != nil || y != x {
			t.Errorf("%q: %v reads back as %v, %v", s, x, y, err)
		}
	})
}

func FuzzParseFault(f *testing.F) {
	f.Add("link", "node0:mlx5_0", "rate=50%")
	f.Add("link", "node0", "flap=1s")
	f.Add("node", "node0", "pause")
	f.Fuzz(func(t *testing.T, kind, where, what string) {
		x, err := ParseFault(kind, where, what)
		if err == nil && (x.Share < 0 || x.Share > 1 || x.Every < 0) {
			t.Errorf("%q %q %q: %+v", kind, where, what, x)
		}
	})
}

func FuzzReceive(f *testing.F) {
	f.Add([]byte(`{"do":"status"}`))
	f.Fuzz(func(_ *testing.T, b []byte) {
		var r request
		receive(strings.NewReader(string(b)), &r)
	})
}

// hop is a cable in one direction.
type hop struct {
	Cable int
	Up    bool // from its lower switch to its upper one
}

// route is the cables between switches from one NIC to another; false where there is
// no way.
func (p *Plan) route(tables []table, from, to int) ([]hop, bool) {
	var legs []hop
	for s := p.NICs[from].Switch; s != p.NICs[to].Switch; {
		c := tables[s][to].Cable
		if c < 0 || len(legs) > len(p.Switches) {
			return nil, false
		}
		legs = append(legs, hop{c, p.Cables[c].B == s})
		s = p.Cables[c].other(s)
	}
	return legs, true
}
