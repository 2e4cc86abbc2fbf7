package netq

import (
	"bytes"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/internal/test/readertest"
)

func TestCorpus(t *testing.T) {
	for _, e := range corpus.Index(t, "NetQ topology JSON") {
		data := corpus.Open(t, e.File)
		if !Match(data) {
			t.Errorf("%s: not recognised", e.File)
		}
		f, err := Read(e.File, bytes.NewReader(data))
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

func TestRefuses(t *testing.T) {
	for _, in := range []string{"", "[]", `[{"links":[],"nodes":[]}]`, `[{`} {
		if _, err := Read("x", strings.NewReader(in)); err == nil {
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

func TestOdd(t *testing.T) {
	f, err := Read("x", strings.NewReader(odd))
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
		if e.Format != "NetQ topology JSON" && Match(data) {
			t.Errorf("%s: recognised", e.File)
		}
	}
}

func FuzzRead(f *testing.F) {
	readertest.Reader{Match: Match, Read: Read}.Fuzz(f, nil, odd)
}
