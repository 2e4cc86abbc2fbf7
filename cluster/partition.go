package cluster

// Partition is numbered things in sets; a set goes by its smallest member.
type Partition []int

// NewPartition puts each of n things into a set of its own.
func NewPartition(n int) Partition { return identity(n) }

// Find is the smallest member of the set of i.
func (p Partition) Find(i int) int {
	for p[i] != i {
		p[i] = p[p[i]]
		i = p[i]
	}
	return i
}

// Unite makes one set of those of two things.
func (p Partition) Unite(a, b int) {
	a, b = p.Find(a), p.Find(b)
	p[max(a, b)] = min(a, b)
}

// roots is the set of each thing.
func (p Partition) roots() []int {
	roots := make([]int, len(p))
	for i := range p {
		roots[i] = p.Find(i)
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
