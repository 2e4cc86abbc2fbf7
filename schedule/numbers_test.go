package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/unit"
)

// machine runs a schedule on numbers: a goroutine a lane, a channel a connection. It knows nothing of
// the checker, so that each can show the other to be wrong.
type machine struct {
	s     *Schedule
	op    coll.Op
	mem   [][buffers][]int64 // Data and Out, of one-byte elements
	temp  [][][]int64        // scratch by chunk
	conns sync.Map
	done  [][]chan struct{} // closed op by op: by rank and lane, one for each op
}

type wire struct{ from, to, lane int }

func (m *machine) conn(from, to, lane int) chan [][]int64 {
	c, _ := m.conns.LoadOrStore(wire{from, to, lane}, make(chan [][]int64, m.s.Depth))
	return c.(chan [][]int64)
}

// chunk is the numbers of a chunk.
func (m *machine) chunk(rank int, buf Buffer, c int32) *[]int64 {
	if buf == Temp || rank >= m.s.Ranks { // a switch has no memory that is laid out
		if buf != Temp {
			c += int32(m.s.Temp)
		}
		return &m.temp[rank][c]
	}
	at, size := m.s.Extent(m.op, rank, buf, int(c))
	part := m.mem[rank][buf][at : at+size]
	return &part
}

func (m *machine) put(rank int, buf Buffer, c int32, v []int64, add bool) {
	dst := m.chunk(rank, buf, c)
	if buf == Temp || rank >= m.s.Ranks {
		if !add {
			*dst = slices.Clone(v)
			return
		}
	}
	for i := range v {
		if add {
			(*dst)[i] += v[i]
		} else {
			(*dst)[i] = v[i]
		}
	}
}

func (m *machine) lane(rank, lane int) {
	for i, o := range m.s.Ops(rank, lane) {
		if w := o.After; w.Count > 0 {
			<-m.done[rank*m.s.Lanes+int(w.Lane)][w.Count-1]
		}
		switch o.Verb {
		case Send, Copy, Fold:
			var msg [][]int64
			for c := o.From; c < o.To; c++ {
				msg = append(msg, slices.Clone(*m.chunk(rank, o.Buf, c)))
			}
			if o.Verb == Send {
				m.conn(rank, int(o.Peer), lane) <- msg
				break
			}
			for k, v := range msg {
				m.put(rank, o.Dst, o.At+int32(k), v, o.Verb == Fold)
			}
		case Recv, RecvReduce:
			for k, v := range <-m.conn(int(o.Peer), rank, lane) {
				m.put(rank, o.Buf, o.From+int32(k), v, o.Verb == RecvReduce)
			}
		}
		close(m.done[rank*m.s.Lanes+lane][i])
	}
}

// run fills the buffers, runs the schedule and returns the contributions.
func (m *machine) run(rnd *rand.Rand) [][]int64 {
	s, n := m.s, m.s.Ranks
	m.mem, m.temp = make([][buffers][]int64, n), make([][][]int64, s.Nodes())
	m.done = make([][]chan struct{}, s.Nodes()*s.Lanes)
	input := make([][]int64, n)
	for r := range s.Nodes() {
		m.temp[r] = make([][]int64, s.Temp+s.Layout.Chunks)
		for l := range s.Lanes {
			m.done[r*s.Lanes+l] = make([]chan struct{}, s.Len(r, l))
			for i := range m.done[r*s.Lanes+l] {
				m.done[r*s.Lanes+l][i] = make(chan struct{})
			}
		}
		if r >= n {
			continue
		}
		size, out := m.op.Size(n), m.op.Size(n)
		if m.op.Sizes != nil {
			size, out = m.op.Send(n, r), m.op.Recv(n, r)
		}
		m.mem[r][Data], m.mem[r][Out] = make([]int64, size), make([]int64, out)
		for i := range m.mem[r][Data] {
			m.mem[r][Data][i] = rnd.Int64N(1 << 40)
		}
		input[r] = slices.Clone(m.mem[r][Data])
	}
	var wg sync.WaitGroup
	for r := range s.Nodes() {
		for l := range s.Lanes {
			wg.Go(func() { m.lane(r, l) })
		}
	}
	wg.Wait()
	return input
}

// expect is the result of a rank by the collective's definition; nil where it has none.
func expect(s *Schedule, op coll.Op, input [][]int64, rank int) (at unit.Bytes, want []int64) {
	n, block := s.Ranks, op.Block(s.Ranks)
	part := func(r, b int) []int64 { return input[r][unit.Bytes(b)*block : unit.Bytes(b+1)*block] }
	sum := func(get func(r int) []int64) []int64 {
		total := make([]int64, len(get(0)))
		for r := range n {
			for i, v := range get(r) {
				total[i] += v
			}
		}
		return total
	}
	whole := func(r int) []int64 { return input[r] }
	switch s.Kind {
	case coll.AllReduce:
		return 0, sum(whole)
	case coll.Reduce:
		if rank == s.Root {
			return 0, sum(whole)
		}
	case coll.ReduceScatter:
		return unit.Bytes(rank) * block, sum(func(r int) []int64 { return part(r, rank) })
	case coll.Broadcast:
		return 0, input[s.Root]
	case coll.AllGather, coll.Hypercube, coll.Gather:
		if s.Kind == coll.Gather && rank != s.Root {
			return 0, nil
		}
		for r := range n {
			want = append(want, part(r, r)...)
		}
		return 0, want
	case coll.Scatter:
		return unit.Bytes(rank) * block, part(s.Root, rank)
	case coll.SendRecv:
		return 0, input[mod(rank-1, n)]
	case coll.AllToAll, coll.AllToAllV:
		for r := range n {
			var first unit.Bytes
			for q := range rank {
				first += op.Pair(n, r, q)
			}
			want = append(want, input[r][first:first+op.Pair(n, r, rank)]...)
		}
		return 0, want
	}
	return 0, nil
}

// TestNumbers runs every combination on numbers, with sizes that do not divide evenly.
func TestNumbers(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 8))
	ran := 0
	for _, n := range []int{1, 2, 3, 6, 8, 11} {
		each(t, rnd, n, func(s *Schedule) {
			op := coll.Op{Kind: s.Kind, Type: coll.Int8, Root: s.Root, Bytes: unit.Bytes(1 + rnd.IntN(500))}
			if s.Kind.Blocked() {
				op.Bytes = unit.Bytes(16 * n * (1 + rnd.IntN(4)))
			}
			if s.Kind == coll.AllToAllV {
				op.Bytes = 0
				op.Sizes = distanceWeighted(n, unit.Bytes(rnd.IntN(3000)), rnd.Float64())
			}
			m := &machine{s: s, op: op}
			input := m.run(rnd)
			buf := Data
			if !s.Kind.InPlace() {
				buf = Out
			}
			for r := range n {
				at, want := expect(s, op, input, r)
				if got := m.mem[r][buf][at : at+unit.Bytes(len(want))]; want != nil && !slices.Equal(got, want) {
					t.Errorf("%s, %d bytes: rank %d has wrong numbers", s, op.Bytes, r)
					break
				}
			}
			ran++
		})
	}
	t.Log(fmt.Sprint(ran, " schedules run on numbers"))
}
