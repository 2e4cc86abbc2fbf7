package schedule

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"busbar.dev/coll"
)

// subjects are schedules to plant faults in.
func subjects(t *testing.T) []*Schedule {
	uneven := [][]int{{0, 3, 5}, {1}, {2, 4, 6, 7}}
	var list []*Schedule
	for _, x := range []struct {
		kind coll.Kind
		name string
		p    Params
	}{
		{coll.AllReduce, "ring", Params{Ranks: 6, Channels: 2}},
		{coll.ReduceScatter, "bidir_ring", Params{Ranks: 5, Channels: 2, Order: []int{2, 0, 1, 4, 3}}},
		{coll.AllGather, "ring", Params{Ranks: 7}},
		{coll.AllReduce, "tree", Params{Ranks: 7, Channels: 2, Pieces: 3}},
		{coll.AllReduce, "tree", Params{Ranks: 8, Groups: uneven, Pieces: 2}},
		{coll.Broadcast, "chain", Params{Ranks: 5, Pieces: 3, Root: 2}},
		{coll.Reduce, "binomial", Params{Ranks: 6, Root: 1}},
		{coll.AllReduce, "halving_doubling", Params{Ranks: 8}},
		{coll.AllReduce, "rabenseifner", Params{Ranks: 7}},
		{coll.AllGather, "bruck", Params{Ranks: 6}},
		{coll.AllToAll, "bruck", Params{Ranks: 5}},
		{coll.ReduceScatter, "pat", Params{Ranks: 7}},
		{coll.AllGather, "pat", Params{Ranks: 6}},
		{coll.AllToAll, "direct", Params{Ranks: 5}},
		{coll.AllToAllV, "pairwise", Params{Ranks: 4}},
		{coll.AllToAll, "two_phase", Params{Ranks: 8, Groups: uneven}},
		{coll.AllReduce, "hierarchical", Params{Ranks: 8, Groups: uneven, Outer: "tree", Pieces: 2}},
		{coll.AllReduce, "hierarchical", Params{Ranks: 8, Groups: uneven, Inner: "direct"}},
		{coll.AllReduce, "nvls", Params{Ranks: 4}},
		{coll.AllReduce, "nvls_tree", Params{Ranks: 8, Groups: uneven, Pieces: 2}},
		{coll.AllReduce, "collnet_direct", Params{Ranks: 8, Groups: uneven, Pieces: 2}},
		{coll.Gather, "binomial", Params{Ranks: 7, Root: 3}},
		{coll.Scatter, "direct", Params{Ranks: 5}},
		{coll.SendRecv, "direct", Params{Ranks: 4}},
	} {
		s, err := Build(x.kind, x.name, x.p)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check(); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		list = append(list, s)
	}
	return list
}

// fault changes a lane's ops at i, or reports that there is nothing to change.
type fault struct {
	name   string
	change func(s *Schedule, ops []Op, i int) []Op
	benign func(a, b Op) bool // whether a change of these two may be harmless
}

func never(Op, Op) bool { return false }

var faults = []fault{
	{"drop an op", func(_ *Schedule, ops []Op, i int) []Op { return slices.Delete(ops, i, i+1) }, never},
	{"double an op", func(_ *Schedule, ops []Op, i int) []Op { return slices.Insert(ops, i, ops[i]) }, never},
	{"swap two ops", func(_ *Schedule, ops []Op, i int) []Op {
		if i+1 == len(ops) || ops[i] == ops[i+1] {
			return nil
		}
		ops[i], ops[i+1] = ops[i+1], ops[i]
		return ops
	}, independent},
	{"wrong chunk", func(s *Schedule, ops []Op, i int) []Op {
		o := &ops[i]
		most := int32(s.Layout.Chunks)
		if o.Buf == Temp {
			most = int32(s.Temp)
		}
		switch {
		case o.Len() == 0:
			return nil
		case o.To < most:
			o.From, o.To = o.From+1, o.To+1
		case o.From > 0:
			o.From, o.To = o.From-1, o.To-1
		default:
			return nil
		}
		return ops
	}, never},
	{"short range", func(_ *Schedule, ops []Op, i int) []Op {
		if ops[i].Len() == 0 {
			return nil
		}
		ops[i].To--
		return ops
	}, never},
	{"out of range", func(s *Schedule, ops []Op, i int) []Op {
		ops[i].To += int32(s.Layout.Chunks + s.Temp)
		return ops
	}, never},
	{"wrong peer", func(s *Schedule, ops []Op, i int) []Op {
		if ops[i].Verb.Local() || s.Nodes() < 3 {
			return nil
		}
		ops[i].Peer = (ops[i].Peer + 1) % int32(s.Nodes())
		return ops
	}, never},
	{"no such peer", func(s *Schedule, ops []Op, i int) []Op {
		if ops[i].Verb.Local() {
			return nil
		}
		ops[i].Peer = int32(s.Nodes())
		return ops
	}, never},
	{"copy instead of add", func(_ *Schedule, ops []Op, i int) []Op {
		switch ops[i].Verb {
		case RecvReduce:
			ops[i].Verb = Recv
		case Fold:
			ops[i].Verb = Copy
		default:
			return nil
		}
		return nonEmpty(ops, i)
	}, never},
	{"add instead of copy", func(_ *Schedule, ops []Op, i int) []Op {
		switch ops[i].Verb {
		case Recv:
			ops[i].Verb = RecvReduce
		case Copy:
			ops[i].Verb = Fold
		default:
			return nil
		}
		return nonEmpty(ops, i)
	}, never},
	{"wrong class", func(_ *Schedule, ops []Op, i int) []Op { ops[i].Class++; return ops }, never},
	{"missing wait", func(_ *Schedule, ops []Op, i int) []Op {
		if ops[i].After.Count == 0 {
			return nil
		}
		ops[i].After = Wait{}
		return nonEmpty(ops, i)
	}, never},
	{"wait that is too short", func(_ *Schedule, ops []Op, i int) []Op {
		if ops[i].After.Count < 2 {
			return nil
		}
		ops[i].After.Count--
		return nonEmpty(ops, i)
	}, never},
	{"wait without end", func(_ *Schedule, ops []Op, i int) []Op {
		ops[i].After = Wait{0, 1 << 20}
		return ops
	}, never},
}

// nonEmpty leaves out ops of empty ranges, to which no chunk is wrong.
func nonEmpty(ops []Op, i int) []Op {
	if ops[i].Len() == 0 {
		return nil
	}
	return ops
}

// independent reports whether two neighbours may be run in either order: they do not use one
// connection, and neither writes what the other touches, unless both add to it.
func independent(a, b Op) bool {
	if a.Verb.Receives() == b.Verb.Receives() && a.Len() == 0 && b.Len() == 0 {
		return true
	}
	if a.Verb == Send && b.Verb == Send && a.Peer == b.Peer || a.Verb.Receives() && b.Verb.Receives() && a.Peer == b.Peer {
		return false
	}
	if adds := func(o Op) bool { return o.Verb == RecvReduce || o.Verb == Fold }; adds(a) && adds(b) {
		return true
	}
	type span struct {
		buf      Buffer
		from, to int32
		write    bool
	}
	spans := func(o Op) []span {
		list := []span{{o.Buf, o.From, o.To, o.Verb.Receives()}}
		if o.Verb.Local() {
			list = append(list, span{o.Dst, o.At, o.At + o.To - o.From, true})
		}
		return list
	}
	for _, x := range spans(a) {
		for _, y := range spans(b) {
			if x.buf == y.buf && x.from < x.to && y.from < y.to && x.from < y.to && y.from < x.to && (x.write || y.write) {
				return false
			}
		}
	}
	return true
}

// TestPlantedFaults changes every op of every subject in every way, and Check must say so each
// time, except where two independent ops were swapped.
func TestPlantedFaults(t *testing.T) {
	total := 0
	for _, f := range faults {
		caught, harmless := 0, 0
		classes := map[FaultClass]int{}
		for _, s := range subjects(t) {
			for r := range s.Nodes() {
				for l := range s.Lanes {
					for i := range s.Len(r, l) {
						p := Store(s)
						old := slices.Clone(p[r][l])
						ops := f.change(s, p[r][l], i)
						if ops == nil {
							continue
						}
						p[r][l] = ops
						bad := *s
						bad.Program = p
						err := bad.Check()
						var found *Fault
						if errors.As(err, &found) {
							caught++
							classes[found.Class]++
						} else if i+1 < len(old) && f.benign(old[i], old[i+1]) {
							harmless++
						} else {
							t.Errorf("%s: %s at rank %d lane %d op %d (%s) was not found", s, f.name, r, l, i, old[i:min(i+2, len(old))])
						}
					}
				}
			}
		}
		t.Logf("%-24s %5d caught, %3d harmless; as %v", f.name, caught, harmless, classes)
		total += caught
	}
	t.Logf("%d faults caught in all", total)
}

// TestTooLittleDepth runs every subject on queues that hold nothing.
func TestTooLittleDepth(t *testing.T) {
	stuck := 0
	for _, s := range subjects(t) {
		s.Depth = 0
		err := s.Check()
		var f *Fault
		if errors.As(err, &f) && f.Class == Deadlock && strings.Contains(err.Error(), "waits for ever at op") {
			stuck++
		} else if err != nil {
			t.Errorf("%s: %v", s, err)
		} else {
			t.Logf("%s needs no queue", s)
		}
		s.Depth = 5
		if err := s.Check(); err != nil {
			t.Errorf("%s: more depth does harm: %v", s, err)
		}
	}
	if stuck < 10 {
		t.Errorf("%d schedules need a queue", stuck)
	}
}

// TestFaultMessages holds what people read.
func TestFaultMessages(t *testing.T) {
	send := func(to, c int32) Op { return Op{Verb: Send, Peer: to, From: c, To: c + 1} }
	recv := func(from, c int32) Op { return Op{Verb: Recv, Peer: from, From: c, To: c + 1} }
	add := func(from, c int32) Op { return Op{Verb: RecvReduce, Peer: from, From: c, To: c + 1} }
	at := func(o Op, w Wait) Op { o.After = w; return o }
	tests := []struct {
		name  string
		lanes int
		prog  Stored
		want  string
	}{
		{"right", 1, Stored{{{add(1, 0), send(1, 0)}}, {{send(0, 0), recv(0, 0)}}}, ""},
		{
			"both receive first", 1,
			Stored{{{add(1, 0), send(1, 0)}}, {{add(0, 0), send(0, 0)}}},
			"rank 0 lane 0 waits for ever at op 0 (recvReduce data[0:1] from 1) with 0 messages in flight",
		},
		{
			"never sent", 1,
			Stored{{{add(1, 0)}}, {{}}},
			"rank 0 lane 0 waits for ever at op 0 (recvReduce data[0:1] from 1) with 0 messages in flight: rank 1 has ended",
		},
		{
			"never received", 1,
			Stored{{{send(1, 0)}}, {{}}},
			"rank 0 lane 0 op 0 (send data[0:1] to 1): rank 1 never receives it",
		},
		{
			"twice", 1,
			Stored{{{add(1, 0), send(1, 0), add(1, 0)}}, {{send(0, 0), recv(0, 0), send(0, 0)}}},
			"rank 0 lane 0 op 2 (recvReduce data[0:1] from 1) adds the contributions of all ranks to the contributions of all " +
				"ranks of chunk 0",
		},
		{"missing", 1, Stored{{{add(1, 0)}}, {{send(0, 0)}}}, "rank 1 ends wrong: data[0] holds the contribution of rank " +
			"1; want the contributions of all ranks"},
		{"race", 2, Stored{{{add(1, 0)}, {send(1, 0)}}, {{send(0, 0)}, {recv(0, 0)}}}, "nothing orders the two"},
		{"ordered", 2, Stored{{{add(1, 0)}, {at(send(1, 0), Wait{0, 1})}}, {{send(0, 0)}, {at(recv(0, 0), Wait{0, 1})}}}, ""},
	}
	for _, tt := range tests {
		s := &Schedule{
			Kind: coll.AllReduce, Ranks: 2, Lanes: tt.lanes, Channels: 1, Depth: 1, Layout: Layout{1, 1, 1, nil},
			Program: tt.prog,
		}
		got := ""
		if err := s.Check(); err != nil {
			got = err.Error()
		}
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
