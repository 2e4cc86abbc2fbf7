package engine

import (
	"fmt"

	"busbar/coll"
	"busbar/schedule"
	"busbar/unit"
)

// choice is the algorithm for sizes up to a limit.
type choice struct {
	upTo unit.Bytes // 0 is no limit
	name string
}

// Pick is the schedule that the engine takes for an operation when nobody names one. Small
// vectors go in few rounds, large ones in few bytes; the limits were measured on one host, over
// loopback and in shared memory.
func Pick(op coll.Op, n int, t Transport) (*schedule.Schedule, error) {
	p := schedule.Params{Ranks: n, Root: op.Root}
	var names []string
	for _, c := range choices(op.Kind, n, t) {
		if c.upTo == 0 || op.Size(n) <= c.upTo {
			names = append(names, c.name)
		}
	}
	var last error
	for _, name := range names {
		s, err := schedule.Build(op.Kind, name, p)
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

func choices(kind coll.Kind, n int, t Transport) []choice {
	near := t == Shm || t == Mem
	switch kind {
	case coll.AllReduce:
		if near { // whole vectors cannot be taken from where they lie, parts can
			return []choice{{32 * unit.KiB, "recursive_doubling"}, {512 * unit.KiB, "rabenseifner"}, {0, "direct"}}
		}
		if n == 2 { // one exchange moves no more than two
			return []choice{{0, "recursive_doubling"}}
		}
		return []choice{{32 * unit.KiB, "recursive_doubling"}, {512 * unit.KiB, "rabenseifner"}, {0, "ring"}}
	case coll.ReduceScatter:
		return []choice{{64 * unit.KiB, "halving_doubling"}, {64 * unit.KiB, "pairwise"}, {0, "ring"}}
	case coll.AllGather:
		return []choice{{256 * unit.KiB, "recursive_doubling"}, {64 * unit.KiB, "bruck"}, {0, "ring"}}
	case coll.Broadcast:
		return []choice{{256 * unit.KiB, "binomial"}, {0, "scatter_allgather"}}
	case coll.Reduce:
		return []choice{{256 * unit.KiB, "binomial"}, {0, "scatter_allgather"}}
	case coll.AllToAll:
		return []choice{{unit.Bytes(n) * 512, "bruck"}, {0, "pairwise"}}
	case coll.AllToAllV:
		return []choice{{0, "pairwise"}}
	case coll.Gather, coll.Scatter:
		return []choice{{unit.Bytes(n) * 4 * unit.KiB, "binomial"}, {0, "direct"}}
	case coll.SendRecv:
		return []choice{{0, "direct"}}
	case coll.Hypercube:
		return []choice{{0, "hypercube"}}
	case coll.Barrier:
		return []choice{{0, "dissemination"}}
	}
	return nil
}
