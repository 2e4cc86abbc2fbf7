package agent

import (
	"context"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/fleet"
	"busbar.dev/internal/stats"
	"busbar.dev/unit"
)

// The piece of work by which nodes are compared: passes over a vector that is larger than most
// second-level caches, a few milliseconds in all, so that a processor or memory that is
// throttled, shared or half missing shows.
const (
	workLength = 1 << 19 // float32, 2 MiB
	workPasses = 16
)

// ownTime is how long this node takes for the piece of work: the middle of its passes.
func ownTime() float64 {
	v := make([]float32, workLength)
	took := make([]float64, workPasses)
	for i := range took {
		began := time.Now()
		for k := range v {
			v[k] = v[k]*0.5 + float32(i)
		}
		took[i] = time.Since(began).Seconds()
	}
	return stats.Nearest(took, 0.5)
}

// own is how long this node takes for its own work, before it waits for another: a collective's time says nothing about
// who made it late. Nobody goes on before all have done theirs, so that no measurement begins beside it.
func own(ctx context.Context, g *engine.Group, p *fleet.Part) ([]fleet.OwnTime, error) {
	mine := [2]float64{ownTime()} // blocks are multiples of 16 bytes
	all := make([]float64, 2*g.Size())
	op := coll.Op{Kind: coll.AllGather, Type: coll.Double, Bytes: unit.Bytes(8 * len(all))}
	if _, err := g.Run(ctx, nil, op, engine.Buffers{Send: engine.Bytes(mine[:]), Recv: engine.Bytes(all)}); err != nil {
		return nil, err
	}
	return []fleet.OwnTime{{Node: p.Ranks[g.Rank()], Spent: unit.Seconds(mine[0])}}, nil
}
