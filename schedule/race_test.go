package schedule

import "fmt"

// races remembers who touched a chunk last, and how far each lane knows the others of its rank
// to be.
type races struct {
	c     *checker
	known []int32 // by participant, lane, other lane: ops of other that are done for certain
	seen  []access
	more  map[int][]stamp // further readers of a cell, by its index
}

// stamp is one access: a lane and the number of ops it will have done by then. The zero value
// is none.
type stamp struct{ lane, count int32 }

type access struct{ write, read stamp }

func newRaces(c *checker) *races {
	return &races{
		c: c, known: make([]int32, len(c.lanes)*c.s.Lanes), seen: make([]access, len(c.cells)), more: map[int][]stamp{},
	}
}

// learn notes what a wait has shown.
func (r *races) learn(rank, ln int, w Wait) {
	k := &r.known[(rank*r.c.s.Lanes+ln)*r.c.s.Lanes+int(w.Lane)]
	*k = max(*k, w.Count)
}

// before reports whether an access surely came before what the lane does now.
func (r *races) before(rank, ln int, s stamp) bool {
	return s.count == 0 || int(s.lane) == ln || r.known[(rank*r.c.s.Lanes+ln)*r.c.s.Lanes+int(s.lane)] >= s.count
}

// touch notes an access and reports one that nothing orders.
func (r *races) touch(rank, ln int, o Op, buf Buffer, chunk int, write bool) error {
	if r == nil {
		return nil
	}
	cell := rank*r.c.per + r.c.at[buf] + chunk
	a := &r.seen[cell]
	now := stamp{int32(ln), r.c.lanes[rank*r.c.s.Lanes+ln].pc + 1}
	if !r.before(rank, ln, a.write) {
		return r.fault(rank, ln, o, buf, chunk, a.write, "wrote")
	}
	if !write {
		if !r.before(rank, ln, a.read) {
			r.more[cell] = append(r.more[cell], a.read)
		}
		a.read = now
		return nil
	}
	for _, s := range append(r.more[cell], a.read) {
		if !r.before(rank, ln, s) {
			return r.fault(rank, ln, o, buf, chunk, s, "read")
		}
	}
	if len(r.more) > 0 {
		delete(r.more, cell)
	}
	a.write, a.read = now, stamp{}
	return nil
}

func (r *races) fault(rank, ln int, o Op, buf Buffer, chunk int, s stamp, did string) error {
	return r.c.fault(Race, rank, ln, o, fmt.Sprintf("touches %s[%d], which lane %d %s at op %d; nothing orders the two",
		buf, chunk, s.lane, did, s.count-1))
}
