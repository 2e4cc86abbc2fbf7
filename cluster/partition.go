package cluster

// partition is numbered things in sets; a set goes by its smallest member.
type partition []int

// newPartition puts each of n things into a set of its own.
func newPartition(n int) partition { return identity(n) }

func (p partition) find(i int) int {
	for p[i] != i {
		p[i] = p[p[i]]
		i = p[i]
	}
	return i
}

// unite makes one set of those of two things.
func (p partition) unite(a, b int) {
	a, b = p.find(a), p.find(b)
	p[max(a, b)] = min(a, b)
}

// roots is the set of each thing.
func (p partition) roots() []int {
	roots := make([]int, len(p))
	for i := range p {
		roots[i] = p.find(i)
	}
	return roots
}

// groupsOf lists what has the same root, in the order of the first of each.
func groupsOf(roots []int) [][]int {
	at := map[int]int{}
	var out [][]int
	for i, p := range roots {
		k, ok := at[p]
		if !ok {
			k = len(out)
			at[p] = k
			out = append(out, nil)
		}
		out[k] = append(out[k], i)
	}
	return out
}
