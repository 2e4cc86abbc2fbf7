package measure

import (
	"context"
	"fmt"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// Group measures every pair of the ranks of a group, by whatever carries its bytes. Rank 0 leads, and has the table
// and how often all pairs were measured; the others follow.
func Group(ctx context.Context, g *engine.Group, p bench.PairPlan, show func(string)) (*pairs.Table, int, error) {
	m, err := bench.NewPairMeter(g, p)
	if err != nil {
		return nil, 0, err
	}
	defer m.Free()
	turn := func(ctx context.Context, list [][2]int, _ time.Duration) ([]pairs.Measure, []time.Duration, error) {
		list, err := agree(ctx, g, list)
		if err != nil || len(list) == 0 {
			return nil, nil, err
		}
		cells, err := m.Turn(ctx, list)
		return cells, make([]time.Duration, len(list)), err
	}
	if g.Rank() != 0 {
		for took := []time.Duration{0}; err == nil && took != nil; {
			_, took, err = turn(ctx, nil, 0)
		}
		return nil, 0, err
	}
	hosts := hostsOf(g.Members())
	s := &Sweep{Names: rankNames(hosts), Hosts: hosts, Turn: turn, Show: show, All: true}
	s.Once = bench.Crowded(g.Members()) != "" // what stands out is a note at most, and would be again
	t, err := s.Measure(ctx, allRounds(g.Size(), p.Alone))
	if err == nil {
		_, err = agree(ctx, g, nil)
	}
	return t, s.Passes, err
}

// allRounds are all pairs of n, each in a round of its own where it is to be alone.
func allRounds(n int, alone bool) [][][2]int {
	rounds := pairs.Rounds(n)
	if !alone {
		return rounds
	}
	var list [][][2]int
	for _, round := range rounds {
		for _, p := range round {
			list = append(list, [][2]int{p})
		}
	}
	return list
}

// agree tells all ranks which pairs rank 0 wants to be measured; none is the end. They travel as the partner of every
// rank.
func agree(ctx context.Context, g *engine.Group, list [][2]int) (all [][2]int, err error) {
	partners := make([]int32, g.Size())
	for _, p := range list {
		partners[p[0]] = int32(p[1])
	}
	if partners, err = sum(ctx, g, partners); err != nil {
		return nil, err
	}
	for r, to := range partners { // which is the greater of the two, and so never 0
		if to > 0 {
			all = append(all, [2]int{r, int(to)})
		}
	}
	return all, nil
}

// sum adds values over all ranks of a group.
func sum(ctx context.Context, g *engine.Group, values []int32) ([]int32, error) {
	op := coll.Op{Kind: coll.AllReduce, Type: coll.Int32, Bytes: unit.Bytes(4 * len(values))}
	out := make([]int32, len(values))
	s, err := g.Pick(op)
	if err == nil {
		_, err = g.Run(ctx, s, op, engine.Buffers{Send: engine.Bytes(values), Recv: engine.Bytes(out)})
	}
	return out, err
}

// hostsOf are those of members.
func hostsOf(members []engine.Member) (hosts []string) {
	for _, m := range members {
		hosts = append(hosts, m.Host)
	}
	return hosts
}

// rankNames are the hosts', with the rank where a host has several.
func rankNames(hosts []string) []string {
	count := map[string]int{}
	for _, h := range hosts {
		count[h]++
	}
	names := make([]string, len(hosts))
	for i, h := range hosts {
		switch {
		case h == "":
			names[i] = fmt.Sprintf("rank %d", i)
		case count[h] > 1:
			names[i] = fmt.Sprintf("%s:%d", h, i)
		default:
			names[i] = h
		}
	}
	return names
}
