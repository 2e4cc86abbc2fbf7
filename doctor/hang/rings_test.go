package hang

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/input/profile"
	"busbar.dev/unit"
)

// ringJob are the rings of four ranks in two pairs and one communicator of all, after some rounds that ended.
func ringJob(lost int) []*profile.Ring {
	began := time.Unix(1_800_000_000, 0)
	var list []*profile.Ring
	for r := range 4 {
		x := &profile.Ring{PID: 100 + r, Host: "h", Rank: r, World: 4, Created: began, Comms: []profile.Comm{
			{Hash: 1, Rank: r, Ranks: 4, Nodes: 4}, {Hash: uint64(10 + r/2), Rank: r % 2, Ranks: 2, Nodes: 2},
		}}
		for i := range 20 {
			ringOp(x, 1, coll.AllGather, uint64(i), 4096, true)
			ringOp(x, 0, coll.AllReduce, uint64(i), 1<<20, true)
		}
		x.Ops = x.Ops[lost+r%2*lost:] // rings lose different numbers of operations
		list = append(list, x)
	}
	return list
}

// functions are NCCL's words.
var functions = map[coll.Kind]string{
	coll.AllReduce: "AllReduce", coll.AllGather: "AllGather", coll.ReduceScatter: "ReduceScatter",
	coll.Broadcast: "Broadcast", coll.Reduce: "Reduce",
}

func ringOp(r *profile.Ring, comm int, kind coll.Kind, seq, count uint64, ended bool) *profile.Op {
	number := uint64(0)
	if n := len(r.Ops); n > 0 {
		number = r.Ops[n-1].Number + 1
	}
	r.Ops = append(r.Ops, profile.Op{
		Number: number, Comm: comm, Kind: kind, Function: functions[kind], Sequence: seq, Count: count, Type: "Float32",
		Bytes:    unit.Bytes(4 * count),
		Launched: r.Created.Add(time.Duration(number) * time.Millisecond), Started: true, Ended: ended,
		Took: time.Millisecond,
	})
	return &r.Ops[len(r.Ops)-1]
}

func judged(rings []*profile.Ring) *Verdict {
	c := NewCase()
	for range 2 { // asked twice: nothing moved
		for i, r := range rings {
			c.AddRing(fmt.Sprintf("busbar-%d.ring", i), r)
		}
	}
	return c.Judge()
}

// TestOneReading has rings of which one GPU has not begun what the others run. Read once, that is a wait that may end;
// answers of RAS between which nothing moved prove that it does not, unless they are older than what is waited for.
func TestOneReading(t *testing.T) {
	answer := func(clock string, counted int) string {
		text := "{\n \"nccl_version\": \"2.28.9\",\n \"communicators_count\": 1,\n \"timestamp\": \"" + clock +
			"\",\n \"communicators\": [{\n  \"hash\": \"0x1\", \"size\": 4, \"ranks\": ["
		for r := range 4 {
			text += fmt.Sprintf("%s\n   {\"rank\": %d, \"host\": \"h\", \"pid\": %d, \"collective_counts\": {\"AllReduce\": "+
				"%d}}",
				",   "[:min(r, 1)], r, 100+r, counted)
		}
		return text + "\n  ], \"missing_ranks\": []\n }]\n}\n"
	}
	for _, x := range []struct {
		counted int // by two answers; 0: there are none
		want    State
	}{{0, Stalled}, {21, Hung}, {20, Stalled}} {
		c := NewCase()
		for i, r := range ringJob(0) {
			ringOp(r, 0, coll.AllReduce, 20, 1<<20, false).Started = i != 2
			c.AddRing(fmt.Sprintf("busbar-%d.ring", i), r)
		}
		for _, clock := range []string{"2027-01-15 08:00:00", "2027-01-15 08:00:02"} {
			if _, err := c.Add(clock, []byte(answer(clock, x.counted))); err != nil {
				t.Fatal(err)
			}
			if x.counted == 0 {
				c.ras = nil
			}
		}
		v := c.Judge()
		if v.State != x.want || v.Kind != Kernel || !slices.Equal(ranksOf(v), []int{2}) ||
			v.MayPass != (v.State == Stalled) {
			t.Errorf("%d counted: %s %s %v, may pass %v: %s", x.counted, v.State, v.Kind, ranksOf(v), v.MayPass, v.Text)
		}
	}
}

// TestRings judges by the profiler's rings alone, whole ones and ones that lost their beginning.
func TestRings(t *testing.T) {
	for _, lost := range []int{0, 6} {
		for name, want := range map[string]struct {
			do    func(list []*profile.Ring)
			kind  Kind
			ranks []int
		}{
			"late": {func(list []*profile.Ring) {
				for r, x := range list {
					if r != 2 {
						ringOp(x, 1, coll.AllGather, 20, 4096, r < 2)
					}
					if r < 2 {
						ringOp(x, 0, coll.AllReduce, 20, 1<<20, false)
					}
				}
			}, Late, []int{2}},
			"size": {func(list []*profile.Ring) {
				for r, x := range list {
					ringOp(x, 1, coll.AllGather, 20, 4096, true)
					size := uint64(1 << 20)
					if r == 3 {
						size = 1 << 26
					}
					ringOp(x, 0, coll.AllReduce, 20, size, false)
				}
			}, SizeMismatch, []int{3}},
			"op": {func(list []*profile.Ring) {
				for r, x := range list {
					ringOp(x, 1, coll.AllGather, 20, 4096, true)
					if r == 1 {
						ringOp(x, 0, coll.Broadcast, 0, 1<<20, false)
					} else {
						ringOp(x, 0, coll.AllReduce, 20, 1<<20, false)
					}
				}
			}, OpMismatch, []int{1}},
			"order": {func(list []*profile.Ring) {
				for r, x := range list {
					first := func() { ringOp(x, 1, coll.AllGather, 20, 4096, r > 1).Started = r != 1 }
					second := func() { ringOp(x, 0, coll.AllReduce, 20, 1<<20, false).Started = r > 0 }
					if r == 1 {
						second()
						first()
					} else {
						first()
						second()
					}
				}
			}, Order, []int{1}},
			"kernel": {func(list []*profile.Ring) {
				for r, x := range list {
					ringOp(x, 1, coll.AllGather, 20, 4096, true)
					ringOp(x, 0, coll.AllReduce, 20, 1<<20, false).Started = r != 2
				}
			}, Kernel, []int{2}},
			"none": {func([]*profile.Ring) {}, NoKind, nil},
		} {
			list := ringJob(lost)
			want.do(list)
			v := judged(list)
			var ranks []int
			for _, r := range v.Ranks {
				ranks = append(ranks, r.Rank)
			}
			if v.Kind != want.kind || !slices.Equal(ranks, want.ranks) || !slices.Contains(v.Signals, fromProfiler) {
				t.Errorf("%s, %d lost: %s %s %v: %s", name, lost, v.State, v.Kind, ranks, v.Text)
			}
		}
	}
}
