package msccl

// lanes gives every block the lanes of a schedule that its messages go through: one where that is
// possible, else one for its sends and one for its receives. Both ends of a connection have the
// same lane, and the blocks of a GPU have different ones.
type lanes struct {
	send, recv [][]int // by index of the GPU and block; equal where one lane does
	count      int
	used       [][]bool // by index of the GPU
}

// newLanes joins blocks that talk to each other. A group of them that visits a GPU once is one
// lane, as a ring is; in the others every connection is one.
func newLanes(a *Algo) *lanes {
	l := &lanes{used: make([][]bool, len(a.GPUs))}
	index := make([]int, a.NGPUs)
	var first []int // number of a GPU's first block
	total := 0
	for i := range a.GPUs {
		index[a.GPUs[i].ID] = i
		first = append(first, total)
		total += len(a.GPUs[i].Blocks)
		l.send = append(l.send, make([]int, len(a.GPUs[i].Blocks)))
		l.recv = append(l.recv, make([]int, len(a.GPUs[i].Blocks)))
	}
	groups := a.joinConnected(first, total)
	members := make([][]int, total) // GPUs of a group
	twice := make([]bool, total)
	a.eachBlock(func(i, j int, _ *GPU, _ *Block) {
		r := groups.root(first[i] + j)
		n := len(members[r])
		twice[r] = twice[r] || n > 0 && members[r][n-1] == i
		members[r] = append(members[r], i)
	})
	lane := make([]int, total) // plus one, of groups
	wires := map[wire]int{}
	a.eachBlock(func(i, j int, g *GPU, b *Block) {
		r := groups.root(first[i] + j)
		if twice[r] {
			l.connect(wires, index, i, j, g, b)
			return
		}
		if lane[r] == 0 {
			lane[r] = l.free(members[r]...) + 1
		}
		l.send[i][j], l.recv[i][j] = lane[r]-1, lane[r]-1
	})
	return l
}

// joinConnected joins the blocks at the two ends of every connection.
func (a *Algo) joinConnected(first []int, total int) join {
	takes := map[wire]int{}
	a.eachBlock(func(i, j int, g *GPU, b *Block) {
		takes[wire{b.Recv, g.ID, b.Channel}] = first[i] + j
	})
	groups := newJoin(total)
	a.eachBlock(func(i, j int, g *GPU, b *Block) {
		if to, ok := takes[wire{g.ID, b.Send, b.Channel}]; ok && b.Send >= 0 {
			groups.join(first[i]+j, to)
		}
	})
	return groups
}

// connect gives the connections of a block lanes of their own.
func (l *lanes) connect(wires map[wire]int, index []int, i, j int, g *GPU, b *Block) {
	lane := func(w wire, peer int) int {
		if _, ok := wires[w]; !ok {
			wires[w] = l.free(i, index[peer])
		}
		return wires[w]
	}
	if b.Send >= 0 {
		l.send[i][j] = lane(wire{g.ID, b.Send, b.Channel}, b.Send)
		l.recv[i][j] = l.send[i][j]
	}
	if b.Recv >= 0 {
		l.recv[i][j] = lane(wire{b.Recv, g.ID, b.Channel}, b.Recv)
		if b.Send < 0 {
			l.send[i][j] = l.recv[i][j]
		}
	}
}

func (a *Algo) eachBlock(f func(i, j int, g *GPU, b *Block)) {
	for i := range a.GPUs {
		for j := range a.GPUs[i].Blocks {
			f(i, j, &a.GPUs[i], &a.GPUs[i].Blocks[j])
		}
	}
}

// free takes the lowest lane that none of the GPUs has yet.
func (l *lanes) free(gpus ...int) int {
	for n := 0; ; n++ {
		taken := false
		for _, g := range gpus {
			taken = taken || n < len(l.used[g]) && l.used[g][n]
		}
		if taken {
			continue
		}
		for _, g := range gpus {
			for len(l.used[g]) <= n {
				l.used[g] = append(l.used[g], false)
			}
			l.used[g][n] = true
		}
		l.count = max(l.count, n+1)
		return n
	}
}

// join is sets of numbers that grow together.
type join []int

func newJoin(n int) join {
	j := make(join, n)
	for i := range j {
		j[i] = i
	}
	return j
}

func (j join) root(i int) int {
	for j[i] != i {
		j[i] = j[j[i]]
		i = j[i]
	}
	return i
}

// join keeps the smaller number as the root of both.
func (j join) join(a, b int) int {
	a, b = j.root(a), j.root(b)
	if a > b {
		a, b = b, a
	}
	j[b] = a
	return a
}
