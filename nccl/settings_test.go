package nccl

import (
	"strings"
	"testing"
)

func TestSettings(t *testing.T) {
	for _, c := range []struct {
		version, key, value string
		op                  Op
		want                string // enabled names, or "error"
	}{
		{"2.28", "NCCL_ALGO", "Ring", AllReduce, "Ring"},
		{"2.28", "NCCL_ALGO", "ring,collnetdirect;allreduce:tree", AllReduce, "Tree"},
		{"2.28", "NCCL_ALGO", "ring,collnetdirect;allreduce:tree", Broadcast, "Ring CollNetDirect"},
		{"2.28", "NCCL_ALGO", "allreduce:^tree", AllReduce, "Ring CollNetDirect CollNetChain NVLS NVLSTree PAT"},
		{"2.28", "NCCL_ALGO", "allreduce:^tree", Reduce, "Tree Ring CollNetDirect CollNetChain NVLS NVLSTree PAT"},
		{"2.28", "NCCL_ALGO", "Ring;Tree", AllReduce, "error"},
		{"2.28", "NCCL_ALGO", "Rong", AllReduce, "error"},
		{"2.28", "NCCL_ALGO", "allredux:Ring", AllReduce, "error"},
		{"2.23", "NCCL_ALGO", "Rong,tree", AllReduce, "Tree"},
		{"2.22", "NCCL_ALGO", "PAT", AllReduce, ""},
		{"2.28", "NCCL_PROTO", "^LL128;allreduce:LL128", AllReduce, "LL128"},
		{"2.28", "NCCL_PROTO", "^LL128;allreduce:LL128", Reduce, "LL Simple"},
		{"2.28", "NCCL_PROTO", "^LL", AllReduce, "LL128 Simple"},
		{"2.19", "NCCL_PROTO", "^LL", AllReduce, "LL128 Simple"},
	} {
		v, err := ParseVersion(c.version)
		if err != nil {
			t.Fatal(err)
		}
		e, err := parseSettings(v.rules(), map[string]string{c.key: c.value})
		got := "error"
		if err == nil {
			var on []string
			names, list := protoNames, e.proto[c.op][:]
			if c.key == "NCCL_ALGO" {
				names, list = algoNames, e.algo[c.op][:]
			}
			for i, x := range list {
				if x == 1 {
					on = append(on, names[i].nccl)
				}
			}
			got = strings.Join(on, " ")
		}
		if got != c.want {
			t.Errorf("%s %s=%s for %s: %q, want %q (%v)", c.version, c.key, c.value, c.op, got, c.want, err)
		}
	}
}

// TestNothingLeft checks what happens when settings leave no algorithm: an error
// since 2.24, Ring before.
func TestNothingLeft(t *testing.T) {
	g := Graphs{Ring: graph(2, 20, 20, true, RingPattern), Tree: graph(2, 20, 20, true, TreePattern)}
	for version, want := range map[string]bool{"2.19": true, "2.23": true, "2.24": false, "2.30": false} {
		v, _ := ParseVersion(version)
		c := Comm{
			Version: v, NRanks: 4, NNodes: 2, MaxLocalRanks: 2, MinCC: 80, MaxCC: 80, Channels: 4,
			Env: map[string]string{"NCCL_ALGO": "Tree"},
		}
		tab, err := NewTable(&c, &g)
		if err != nil {
			t.Fatal(err)
		}
		ch, err := tab.Choose(Call{Op: Broadcast, Bytes: 1 << 20})
		if ok := err == nil && ch.Algo == Ring; ok != want {
			t.Errorf("%s: %v, %v", version, ch, err)
		}
		if ch, err := tab.Choose(Call{Op: AllReduce, Bytes: 1 << 30}); err != nil || ch.Algo != Tree {
			t.Errorf("%s: NCCL_ALGO=Tree gave %v, %v", version, ch.Algo, err)
		}
	}
}

// TestEveryReleaseHasATable runs the model over releases and shapes: no estimate
// is negative or not a number, and something is always chosen.
func TestEveryReleaseHasATable(t *testing.T) {
	for minor := Oldest.Minor; minor <= Newest.Minor; minor++ {
		for _, cc := range []int{70, 80, 86, 90, 100, 120} {
			for _, nodes := range []int{1, 2, 3, 16} {
				for _, ppn := range []int{1, 4, 8} {
					if nodes*ppn < 2 {
						continue
					}
					c := Comm{
						Version: Version{2, minor, 0}, NRanks: nodes * ppn, NNodes: nodes, MaxLocalRanks: ppn, MinCC: cc,
						MaxCC: cc,
						Arch:  ArchX86, Vendor: Intel, Channels: 16, NVLSChannels: 16, NVSwitch: true,
					}
					g := Graphs{
						Ring: graph(8, 20, 20, true, RingPattern), Tree: graph(8, 20, 20, true, TreePattern),
						NVLS: graph(ppn, 40, 40, false, NVLSPattern),
					}
					tab, err := NewTable(&c, &g)
					if err != nil {
						t.Fatal(err)
					}
					for op := range Op(nOps) {
						for bytes := int64(1); bytes < 1<<40; bytes *= 8 {
							ch, err := tab.Choose(Call{Op: op, Bytes: bytes})
							if err != nil || !(ch.Time > 0) || ch.Channels < 1 || ch.Channels > 16 || ch.Threads < 96 || ch.Threads > 640 {
								t.Fatalf("%v cc %d %d×%d %s %d: %+v, %v", c.Version, cc, nodes, ppn, op, bytes, ch, err)
							}
						}
					}
				}
			}
		}
	}
}
