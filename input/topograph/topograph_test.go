package topograph

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/internal/test/readertest"
)

// What each real model says, written down by hand from the files.
var models = map[string]struct {
	hosts, switches, domains int
	lines                    string // of the shape, which must be there
}{
	"topograph-model-medium.yaml": {8, 7, 4, `
		sw3 tier=2 >sw21 >sw22
		sw21 tier=1 >sw11 >sw12
		sw22 tier=1 >sw13 >sw14
		sw11 tier=0 [1101-1102]
		sw12 tier=0 [1201-1202]
		sw13 tier=0 [1301-1302]
		sw14 tier=0 [1401-1402]
		nvl1 group tier=0 [1101-1102]
		nvl4 group tier=0 [1401-1402]`},
	"topograph-model-large.yaml": {96, 19, 12, `
		core tier=2 >spine-1 >spine-2 >spine-3 >spine-4 >spine-5 >spine-6
		spine-6 tier=1 >leaf-6-1 >leaf-6-2
		leaf-1-1 tier=0 srv[1101-1108]
		leaf-6-2 tier=0 srv[6201-6208]
		nvl-3-2 group tier=0 srv[3201-3208]`},
	"topograph-model-nvl72.yaml": {72, 7, 4, `
		core tier=2 >spine-1 >spine-2
		spine-2 tier=1 >leaf-2-1 >leaf-2-2
		leaf-2-2 tier=0 node[2201-2218]
		nvl-1-1 group tier=0 node[1101-1118]`},
}

func TestCorpusModel(t *testing.T) {
	read := 0
	for _, e := range corpus.Index(t, "topograph model YAML") {
		want, ok := models[e.File[strings.LastIndexByte(e.File, '/')+1:]]
		if !ok {
			t.Errorf("%s: nothing is written down for it", e.File)
			continue
		}
		read++
		data := corpus.Open(t, e.File)
		if !MatchModel(data) || MatchNetQ(data) {
			t.Errorf("%s: not recognised", e.File)
		}
		f, err := ReadModel(e.File, bytes.NewReader(data))
		if err != nil {
			t.Error(err)
			continue
		}
		domains := 0
		for _, s := range f.Network.Switches {
			if s.Domain {
				domains++
			}
		}
		if len(f.Hosts) != want.hosts || len(f.Network.Switches)-domains != want.switches || domains != want.domains ||
			len(f.Warnings) > 0 {
			t.Errorf("%s: %d hosts, %d switches, %d domains; want %v\n%s", e.File, len(f.Hosts), len(f.Network.Switches)-domains,
				domains, want, readertest.Warnings(f))
		}
		got := readertest.Cables(&f.Cluster)
		for l := range strings.SplitSeq(strings.TrimSpace(readertest.Flush(want.lines)), "\n") {
			if !strings.Contains("\n"+got, "\n"+l+"\n") {
				t.Errorf("%s: no line %q in\n%s", e.File, l, got)
			}
		}
	}
	if read != 3 {
		t.Errorf("%d models read; want 3", read)
	}
}

// NetQ's graph: two leaves with four hosts each on four interfaces, and one
// spine, reached by 28 and 19 cables.
func TestCorpusNetQ(t *testing.T) {
	for _, e := range corpus.Index(t, "NetQ topology JSON") {
		data := corpus.Open(t, e.File)
		if !MatchNetQ(data) || MatchModel(data) {
			t.Errorf("%s: not recognised", e.File)
		}
		f, err := ReadNetQ(e.File, bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Hosts) != 8 || len(f.Types) != 1 || f.Types[0].Count(cluster.NIC) != 4 || len(f.Warnings) > 0 {
			t.Errorf("%d hosts, %d types\n%s", len(f.Hosts), len(f.Types), readertest.Warnings(f))
		}
		for _, sw := range []struct {
			name string
			tier cluster.Tier
			want []string
		}{
			{"net-unit-l1", 0, []string{"dgx-01", "dgx-02", "dgx-03", "dgx-04"}},
			{"net-unit-l2", 0, []string{"dgx-05", "dgx-06", "dgx-07", "dgx-08"}},
			{"net-unit-s1", 1, nil},
		} {
			i := f.Network.SwitchByName(sw.name)
			if i < 0 || f.Network.Switches[i].Tier != sw.tier {
				t.Errorf("%s: switch %d", sw.name, i)
				continue
			}
			ends := map[string]int{}
			for _, l := range f.Network.Links {
				for _, s := range l.B.Hosts {
					for h := s.First; l.A.Switch == i && h < s.First+s.N; h++ {
						ends[f.Hosts[h].Name]++
					}
				}
			}
			if len(ends) != len(sw.want) {
				t.Errorf("%s: hosts %v", sw.name, ends)
			}
			for _, h := range sw.want {
				if ends[h] != 4 {
					t.Errorf("%s: %d cables to %s; want 4", sw.name, ends[h], h)
				}
			}
		}
		if got := readertest.Cables(&f.Cluster); !strings.Contains(got,
			"net-unit-s1 tier=1 >net-unit-l1×28 >net-unit-l2×19\n") || !strings.Contains(got, "/ens1f0np1") {
			t.Errorf("%s", got)
		}
	}
}

// Domains in domains, and lists that cannot be read. Synthetic.
func TestModelShapes(t *testing.T) {
	tests := []struct{ name, in, want, warn string }{
		{"domains in domains", "switches:\n  s:\n    switches: [a]\nblocks:\n- switch: a\n  nodes: [n1]\n  labels:\n    " +
			"network.topology.nvidia.com/accelerator: d\n    network.topology.nvidia.com/sub-domain: e\n    x/rack: r\n", `
			s tier=1 >a
			a tier=0 n1
			d group tier=1 >d/e
			d/e group tier=0 n1`, ""},
		{"odd", "switches:\n  s:\n    switches: [a, b]\nblocks:\n- switch: a\n  nodes: [\"n[1-\", m]\n- switch: a\n", `
			s tier=1 >a >b
			a tier=0 m
			b tier=0`, "x:6: a: nodes: hostlist"},
	}
	for _, tt := range tests {
		if !MatchModel([]byte(tt.in)) {
			t.Errorf("%s: not recognised", tt.name)
		}
		f, err := ReadModel("x", strings.NewReader(tt.in))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := readertest.Cables(&f.Cluster); got != readertest.Flush(tt.want) {
			t.Errorf("%s:\n%swant\n%s", tt.name, got, readertest.Flush(tt.want))
		}
		if w := readertest.Warnings(f); !strings.Contains(w, tt.warn) || tt.warn == "" && w != "" {
			t.Errorf("%s: warnings %q; want %q", tt.name, w, tt.warn)
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"switches:\n  a: &a {switches: [b]}\n  b: *a\nblocks: []\n", "x:2: \"&a {switches: [b]}\" is an anchor"},
		{"switches:\n  a: {switches: [a]}\nblocks: []\n", "x:2: switch a is below itself"},
		{"a: b\n", "x: no switches"},
		{"switches: [\n", "x:"},
		{"switches:\n  a:\n    nodes: [\"n[0-999999]\", \"n[0-999999]\", \"m[0-9]\"]\n", "x:3: more than 2000000 names"},
	} {
		if _, err := ReadModel("x", strings.NewReader(tt.in)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v; want %s", tt.in, err, tt.want)
		}
	}
	for _, in := range []string{"", "[]", `[{"links":[],"nodes":[]}]`, `[{`} {
		if _, err := ReadNetQ("x", strings.NewReader(in)); err == nil {
			t.Errorf("%q: no error", in)
		}
	}
}

const odd = `[{"links":[{"compounded_links":[` +
	`{"id":"c1","interfaces":[{"interface":"e0","node":"h"},{"interface":"swp1","node":"l"}]},` +
	`{"id":"c2","interfaces":[{"interface":"e0","node":"x"}]},` +
	`{"interfaces":[{"node":"l","interface":"swp1"},{"node":"h","interface":"e0"}]}]},` +
	`{"compounded_links":[{"interfaces":[{"node":"l"},{"node":"s"}]},{"interfaces":[{"node":"s"},{"node":"l"}]},` +
	`{"interfaces":[{"node":"l"},{"node":"nowhere"}]},{"interfaces":[{"node":"h"},{"node":"h"}]}]}],` +
	`"nodes":[{"name":"tier-1","compounded_nodes":[{"id":"l","name":"leaf","device_type":"switch","tier":1},` +
	`{"id":"l","name":"again","device_type":"switch"}]},` +
	`{"name":"t2","compounded_nodes":[{"id":"s","name":"spine","device_type":"switch","tier":2}]},` +
	`{"compounded_nodes":[{"id":"h","name":"dgx","device_type":"discovered_via_lldp","tier":-1}]}]}]`

func TestNetQOdd(t *testing.T) {
	f, err := ReadNetQ("x", strings.NewReader(odd))
	if err != nil {
		t.Fatal(err)
	}
	if got := readertest.Cables(&f.Cluster); got != "leaf tier=0 dgx/e0\nspine tier=1 >leaf×2\n" {
		t.Errorf("%s", got)
	}
	if w := readertest.Warnings(f); !strings.Contains(w, "left out 3 cables") {
		t.Errorf("%s", w)
	}
}

func TestMatchNothingElse(t *testing.T) {
	for _, e := range corpus.Index(t) {
		data := corpus.Open(t, e.File)
		if e.Format != "topograph model YAML" && MatchModel(data) || e.Format != "NetQ topology JSON" && MatchNetQ(data) {
			t.Errorf("%s: recognised", e.File)
		}
	}
}

func FuzzReadModel(f *testing.F) {
	readertest.Reader{Match: MatchModel, Read: ReadModel}.Fuzz(f, nil,
		"switches:\n  s:\n    labels: {a: b}\n    switches: [a]\nblocks:\n- switch: a\n  nodes: [\"n[1-2]\"]\n  "+
			"annotations: {accelerator.x/domain: d, y/sub-domain: e}\n")
}

func FuzzReadNetQ(f *testing.F) {
	readertest.Reader{Match: MatchNetQ, Read: ReadNetQ}.Fuzz(f, nil, odd)
}

func ReadModel(name string, r io.Reader) (*cluster.Fragment, error) {
	return ReadModelWithin(cluster.NewBudget(cluster.Limits{}, nil), name, r)
}
