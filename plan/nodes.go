package plan

import (
	"math/bits"

	"busbar.dev/nccl"
)

// EqualNodes is how many nodes a layout has that all have as many ranks, one after the other; 0 where they differ.
func EqualNodes(l nccl.Layout) int {
	node := 0
	for _, r := range l {
		if r.Host == l[0].Host {
			node++
		}
	}
	for i, r := range l {
		if r.Host != l[i-i%node].Host || i >= node && r.Host == l[i-node].Host {
			return 0
		}
	}
	if node == 0 || len(l)%node != 0 {
		return 0
	}
	return len(l) / node
}

// NodeCounts are the numbers of nodes that are tried where fewer than there are may be better, the most first: all of them,
// and those with four binary digits before zeros (1 to 16, 18, 20, …, 32, 36, …).
func NodeCounts(most int) []int {
	var list []int
	for n := most; n > 0; n-- {
		if n == most || bits.Len(uint(n))-bits.TrailingZeros(uint(n)) <= 4 {
			list = append(list, n)
		}
	}
	return list
}
