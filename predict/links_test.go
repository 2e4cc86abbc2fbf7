package predict

import (
	"math"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/nccl"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// What is told about every link agrees with what the run says about the busiest of each kind, and what leaves a port
// arrives at another.
func TestLinks(t *testing.T) {
	for _, c := range []struct {
		preset      string
		nodes, gpus int
		kind        coll.Kind
		algo        string // "" is what NCCL takes
		size        unit.Bytes
	}{
		{"dgx-h100", 1, 8, coll.AllReduce, "", 1 << 30},
		{"dgx-h100", 4, 8, coll.AllReduce, "", 1 << 30},
		{"dgx-h100", 4, 8, coll.AllReduce, "ring", 1 << 28},
		{"dgx-h100", 8, 8, coll.AllReduce, "tree", 1 << 28},
		{"dgx-h100", 4, 8, coll.AllToAll, "", 1 << 28},
		{"dgx-h100", 4, 8, coll.Broadcast, "", 1 << 28},
		{"dgx-h100", 4, 1, coll.AllGather, "pat", 1 << 28},
		{"dgx-1v", 2, 8, coll.AllReduce, "", 1 << 28},
		{"baskerville", 2, 2, coll.AllReduce, "ring", 1 << 30},
		{"baskerville", 46, 4, coll.AllReduce, "", 1 << 30},
		{"dgx-a100", 64, 8, coll.AllReduce, "", 1 << 30},
		{"dgx-h100", 4, 8, coll.AllReduce, "", 8}, // waits for messages, not for a link
	} {
		p := laidOut(t, c.preset, c.nodes, c.gpus)
		op := coll.Op{Kind: c.kind, Bytes: c.size, Type: coll.BFloat16}
		s, err := p.Auto(op)
		if err != nil {
			t.Fatal(err)
		}
		if c.algo != "" {
			s = Setting{Algo: c.algo, Proto: "simple", Channels: max(2, s.Channels)}
		}
		run, err := p.Price(op, s)
		if err != nil {
			t.Fatal(c, err)
		}
		links, err := p.links(t.Context(), op, s, run)
		if err != nil {
			t.Fatal(c, err)
		}
		hosts, out, in, tight := 0, 0.0, 0.0, map[result.LimitKind]bool{}
		most := map[result.LimitKind]float64{}
		for _, g := range links {
			var of []string // none: the network
			if g.Hosts != "" {
				if of, err = cluster.ParseHosts(g.Hosts); err != nil {
					t.Fatal(err)
				}
			}
			hosts += len(of)
			for _, u := range g.Uses {
				most[u.Kind] = max(most[u.Kind], u.Share)
				if u.Tight {
					tight[u.Kind] = true
				}
				for _, w := range u.Which {
					switch bytes := float64(u.Bytes) * float64(len(of)); {
					case u.Kind == result.ByNIC && strings.HasSuffix(w, "→network"):
						out += bytes
					case u.Kind == result.ByNIC:
						in += bytes
					}
				}
			}
		}
		if hosts != c.nodes {
			t.Errorf("%+v: links of %d hosts", c, hosts)
		}
		if math.Abs(out-in) > 1e-6*out {
			t.Errorf("%+v: %.0f bytes leave ports and %.0f arrive", c, out, in)
		}
		said := map[result.LimitKind]float64{}
		for _, u := range run.Busy {
			said[u.Kind] = max(said[u.Kind], u.Share)
		}
		for k, x := range said {
			if math.Abs(most[k]-x) > 2e-4 {
				t.Errorf("%+v: the busiest %s is busy %.4f of the time, and of its links %.4f", c, k, x, most[k])
			}
		}
		if want := run.Limit.Where != ""; len(tight) > 1 || tight[run.Limit.Kind] != want {
			t.Errorf("%+v: %v are said to limit the run, which is limited by %+v", c, tight, run.Limit)
		}
	}
}

// Equal hosts are told of once: a thousand nodes in a few groups.
func TestLinksFold(t *testing.T) {
	for _, c := range []struct {
		kind coll.Kind
		most int
	}{{coll.AllReduce, 40}, {coll.AllToAll, 2}} {
		p := laidOut(t, "dgx-h100", 300, 8)
		op := coll.Op{Kind: c.kind, Bytes: 1 << 30, Type: coll.BFloat16}
		s, err := p.Auto(op)
		if err != nil {
			t.Fatal(err)
		}
		run, err := p.Price(op, s)
		if err != nil {
			t.Fatal(err)
		}
		links, err := p.links(t.Context(), op, s, run)
		if err != nil {
			t.Fatal(err)
		}
		uses := 0
		for _, g := range links {
			uses += len(g.Uses)
		}
		t.Logf("%s by %s: %d groups, %d uses", c.kind, s.Algo, len(links), uses)
		if len(links) > c.most {
			t.Errorf("%s by %s: %d groups of hosts", c.kind, s.Algo, len(links))
		}
	}
}

func laidOut(t *testing.T, preset string, nodes, gpus int) *Predictor {
	t.Helper()
	return block(t, preset, nodes, gpus, nccl.Newest, nil)
}
