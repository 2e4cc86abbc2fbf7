package engine

import (
	"fmt"

	"busbar.dev/coll"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// choice is the algorithm for sizes up to a limit.
type choice struct {
	upTo     unit.Bytes // 0 is no limit
	name     string
	from     unit.Bytes
	channels int // 0 is 1
	pieces   int // of a chain; 0 is the usual
}

// Pick is the schedule that the engine takes for an operation when nobody names one. Small
// vectors go in few rounds, large ones in few bytes; the limits were measured on one host, over
// loopback and in shared memory.
func Pick(op coll.Op, n int, t Transport) (*schedule.Schedule, error) {
	return pick(op, schedule.Params{Ranks: n, Root: op.Root}, choices(op.Kind, n, t))
}

// Pick is the schedule that the engine takes in this group, which knows its hosts: what goes
// between them goes as rarely as can be.
func (g *Group) Pick(op coll.Op) (*schedule.Schedule, error) {
	t := g.Transport()
	hosts := g.Together()
	list := choices(op.Kind, g.size, t)
	p := schedule.Params{Ranks: g.size, Root: op.Root}
	if len(hosts) > 1 {
		list = append(apart(op.Kind, hosts), list...)
		p.Groups = hosts
	}
	return pick(op, p, list)
}

// apart is what comes first where the ranks are on several hosts. Channels fill the pauses in
// which a part waits for its turn, and let what goes on inside a host and between hosts overlap.
func apart(kind coll.Kind, hosts [][]int) []choice {
	mixed, ranks := false, 0
	for _, h := range hosts {
		mixed = mixed || len(h) > 1
		ranks += len(h)
	}
	switch {
	case kind == coll.AllReduce && mixed:
		return []choice{
			{from: 32 * unit.MiB, name: "hierarchical", channels: 8},
			{from: unit.MiB, name: "hierarchical", channels: 4},
			{from: 32 * unit.KiB, name: "hierarchical"},
		}
	case kind == coll.AllReduce:
		return []choice{
			{from: 4 * unit.MiB, name: "ring", channels: 2}, {from: 16 * unit.KiB, upTo: 512 * unit.KiB, name: "rabenseifner"},
		}
	case kind == coll.Broadcast && ranks <= 4: // hosts wake by themselves, and work at once
		return []choice{{from: 512*unit.KiB + 1, name: "chain"}}
	case mixed && (kind == coll.ReduceScatter || kind == coll.AllGather):
		return []choice{{from: unit.MiB, name: "hierarchical", channels: 4}}
	}
	return nil
}

// pick builds the first choice that fits.
func pick(op coll.Op, p schedule.Params, list []choice) (*schedule.Schedule, error) {
	var last error
	for _, c := range list {
		if size := op.Size(p.Ranks); size < c.from || c.upTo != 0 && size > c.upTo {
			continue
		}
		p.Channels, p.Pieces, p.Inner = c.channels, c.pieces, "direct"
		s, err := schedule.Build(op.Kind, c.name, p)
		if err == nil {
			return s, nil
		}
		last = err
	}
	if last == nil {
		last = fmt.Errorf("no algorithm does %s", op.Kind)
	}
	return nil, last
}

// shortVector is the size up to which ranks of one host had rather add whole vectors than meet
// once more.
func shortVector(n int) unit.Bytes {
	switch {
	case n <= 2:
		return unit.KiB
	case n <= 4:
		return 2 * unit.KiB
	}
	return 8 * unit.KiB
}

// farReduce is the all-reduce over sockets. Channels let what has just been summed be sent while
// it is in the cache; with many more ranks than processors they only make messages shorter.
func farReduce(n int) []choice {
	switch {
	case n == 2: // one exchange moves no more than two
		return []choice{
			{upTo: 512 * unit.KiB, name: "recursive_doubling"},
			{upTo: 8 * unit.MiB, name: "ring", channels: 2},
			{name: "ring", channels: 4},
		}
	case n <= 4:
		return []choice{
			{upTo: 64 * unit.KiB, name: "recursive_doubling"},
			{upTo: 2 * unit.MiB, name: "rabenseifner"},
			{name: "ring", channels: 4},
		}
	}
	return []choice{
		{upTo: 64 * unit.KiB, name: "recursive_doubling"},
		{upTo: unit.MiB, name: "rabenseifner"},
		{from: 16 * unit.MiB, name: "ring", channels: 2},
		{name: "ring"},
	}
}

func choices(kind coll.Kind, n int, t Transport) []choice {
	near := t == Shm || t == Mem
	switch kind {
	case coll.AllReduce:
		if near { // whole vectors cannot be taken from where they lie, parts can
			return []choice{{upTo: shortVector(n), name: "one_shot"}, {name: "direct"}}
		}
		return farReduce(n)
	case coll.ReduceScatter:
		if t == Shm {
			return []choice{{name: "direct"}}
		}
		return []choice{
			{upTo: 64 * unit.KiB, name: "halving_doubling"}, {upTo: 256 * unit.KiB, name: "pairwise"}, {name: "ring"},
		}
	case coll.AllGather:
		if t == Shm {
			return []choice{{name: "direct"}}
		}
		return []choice{
			{upTo: 256 * unit.KiB, name: "recursive_doubling"}, {upTo: 64 * unit.KiB, name: "bruck"}, {name: "ring"},
		}
	case coll.Broadcast:
		if t == Shm || n == 2 {
			return []choice{{name: "binomial"}}
		}
		if n <= 4 { // every piece wakes a rank, which takes as long as moving some of it
			return []choice{
				{upTo: 512 * unit.KiB, name: "binomial"}, {upTo: 4 * unit.MiB, name: "chain", pieces: 2}, {name: "chain"},
			}
		}
		return []choice{{upTo: 512 * unit.KiB, name: "binomial"}, {name: "scatter_allgather"}}
	case coll.Reduce:
		return []choice{{upTo: 256 * unit.KiB, name: "binomial"}, {name: "scatter_allgather"}}
	case coll.AllToAll:
		if t == Shm {
			return []choice{{name: "direct"}}
		}
		if n < 16 { // blocks of a packet or two cost what their messages cost, of which bruck has fewest
			return []choice{
				{upTo: unit.Bytes(n) * 2 * unit.KiB, name: "bruck"}, {upTo: 512 * unit.KiB, name: "direct"}, {name: "pairwise"},
			}
		}
		return []choice{{upTo: unit.Bytes(n) * 512, name: "bruck"}, {name: "pairwise"}}
	case coll.AllToAllV:
		return []choice{{name: "pairwise"}}
	case coll.Gather, coll.Scatter:
		return []choice{{upTo: unit.Bytes(n) * 4 * unit.KiB, name: "binomial"}, {name: "direct"}}
	case coll.SendRecv:
		return []choice{{name: "direct"}}
	case coll.Hypercube:
		return []choice{{name: "hypercube"}}
	case coll.Barrier:
		return []choice{{name: "dissemination"}}
	}
	return nil
}
