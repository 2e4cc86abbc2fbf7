package nccl

import (
	"slices"
)

// score ranks a GPU as the next hop; more important fields first.
type score struct {
	g                            int
	interBw, interPCI, interHops int
	intraBw, intraHops           int
	order                        int // by index, from the GPU on
}

// before reports that a GPU is to be tried before another.
func (s *score) before(o *score) bool {
	switch {
	case s.interBw != o.interBw:
		return s.interBw > o.interBw
	case s.interPCI != o.interPCI:
		return s.interPCI > o.interPCI
	case s.interHops != o.interHops:
		return s.interHops < o.interHops
	case s.intraBw != o.intraBw:
		return s.intraBw > o.intraBw
	case s.intraHops != o.intraHops:
		return s.intraHops < o.intraHops
	}
	return s.order < o.order
}

// sortScores puts the best first. Lists are of a node's GPUs, so short that going through them
// one by one is fastest, and the search sorts at every step.
func sortScores(list []score) {
	for i := 1; i < len(list); i++ {
		for k := i; k > 0 && list[k].before(&list[k-1]); k-- {
			list[k], list[k-1] = list[k-1], list[k]
		}
	}
}

// push puts a list on the stack of lists, which saves the search an allocation a
// step.
func (x *searcher) push(list ...int) []int {
	mark := len(x.stack)
	x.stack = append(x.stack, list...)
	return x.stack[mark:len(x.stack):len(x.stack)]
}

// next lists the GPUs to try after one, best first.
func (x *searcher) next(gpu *topoNode, step, backToNet, order int) []int {
	switch order {
	case pciOrder:
		return x.push(step + 1)
	case replayOrder:
		return x.push(x.replay(step))
	}
	sortNet := 0
	switch {
	case backToNet == -1:
	case backToNet == step+1:
		sortNet = 1
	default:
		sortNet = -1
	}
	if len(x.s.nodes[kindNVS]) > 0 && x.s.v.From(21) {
		return x.neighbours(gpu, nil)
	}
	scores := x.scores(gpu, sortNet != 0)
	sortScores(scores)
	mark := len(x.stack)
	for _, s := range scores {
		x.stack = append(x.stack, s.g)
	}
	list := x.stack[mark:len(x.stack):len(x.stack)]
	// On the way away from the NIC, among GPUs of equal reach the farthest from the
	// NIC come first.
	equal := !slices.ContainsFunc(scores, func(s score) bool { return s.intraBw != scores[0].intraBw || s.intraHops != scores[0].intraHops })
	if sortNet == -1 && equal {
		slices.Reverse(list)
	}
	if len(x.s.nodes[kindNVS]) > 0 && x.s.v.From(19) {
		return x.neighbours(gpu, list)
	}
	return list
}

func (x *searcher) scores(gpu *topoNode, sortNet bool) []score {
	c := &x.cur
	flag := uint64(1) << c.NChannels
	paths := gpu.paths[kindGPU]
	var net []topoPath
	if sortNet {
		net = x.s.nodes[kindNET][c.inter[c.NChannels*2]].paths[kindGPU]
	}
	x.work += x.ngpus
	x.limit.ordered = x.limit.ordered || net != nil
	list := x.buf[:0]
	for i := 1; i < x.ngpus; i++ {
		g := (gpu.index + i) % x.ngpus
		if len(paths[g].hops) == 0 || x.gpus()[g].gpu.used&flag != 0 {
			continue
		}
		s := score{g: g, order: i, intraHops: len(paths[g].hops), intraBw: int(paths[g].bw)}
		if net != nil {
			s.interHops, s.interBw, s.interPCI = len(net[g].hops), int(net[g].bw), pciLeft(x.gpus()[g])
		}
		list = append(list, s)
	}
	x.buf = list
	return list
}

// pciLeft is what a GPU's PCIe link has left, the lesser of both directions.
func pciLeft(gpu *topoNode) int {
	for _, l := range gpu.links {
		if l.kind != linkPCI {
			continue
		}
		for _, back := range l.to.links {
			if back.to == gpu {
				return int(min(l.bw, back.bw))
			}
		}
	}
	return -1
}

// neighbours puts the GPUs beside one first, because switches like few peers;
// since 2.21 no others are tried, and list is not asked for.
func (x *searcher) neighbours(gpu *topoNode, list []int) []int {
	prev, next := (gpu.index-1+x.ngpus)%x.ngpus, (gpu.index+1)%x.ngpus
	first := [2]int{next, prev} // the last comes out in front
	n := 2
	switch x.cur.Pattern {
	case RingPattern:
	case SplitTree, BalancedTree:
		first = [2]int{prev, next}
	default:
		n = 1
	}
	if !x.s.v.From(21) {
		for _, f := range first[:n] {
			if i := slices.Index(list, f); i >= 0 {
				copy(list[1:i+1], list[:i])
				list[0] = f
			}
		}
		return list
	}
	if next == prev {
		n = 1
	}
	flag := uint64(1) << x.cur.NChannels
	mark := len(x.stack)
	for _, f := range slices.Backward(first[:n]) {
		if len(gpu.paths[kindGPU][f].hops) > 0 && x.gpus()[f].gpu.used&flag == 0 {
			x.stack = append(x.stack, f)
		}
	}
	return x.stack[mark:len(x.stack):len(x.stack)]
}
