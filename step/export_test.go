package step

// Cold is the fabric with nothing known.
func (f *Fabric) Cold() *Fabric { return NewFabric(f.c, f.layout, f.split, f.version) }

// Members are the ranks of the groups of a kind.
func (f *Fabric) Members(g Group) [][]int {
	at := f.pattern(g)
	var list [][]int
	for r := range f.layout {
		if !f.begins(at, r) {
			continue
		}
		var one []int
		for i := range at.size {
			one = append(one, r+at.rank(i))
		}
		list = append(list, one)
	}
	return list
}

// Finite is finite, for tests.
func (r *Result) Finite() error { return r.finite() }
