package sim

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/result"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// MostOps is how many ops a schedule should have at most that Rounds plays: each of its messages is a line.
const MostOps = 1 << 17

// Rounds are the messages of a schedule round by round, as one may watch them: what several lanes send the same way is
// together.
func Rounds(s *schedule.Schedule, op coll.Op) (list []result.Round) {
	for _, messages := range s.Messages() {
		var r result.Round
		at := map[[2]int]int{}
		adds := 0
		for _, x := range messages {
			key := [2]int{x.From, x.To}
			i, ok := at[key]
			if !ok {
				i = len(r.Sends)
				at[key] = i
				r.Sends = append(r.Sends, result.Send{From: x.From, To: x.To})
			}
			y, part := &r.Sends[i], partOf(&x)
			y.Bytes += unit.Bytes(math.Round(float64(x.Sent.Len()) * moved(op) / float64(max(s.Layout.Chunks, 1))))
			y.Reduces = y.Reduces || part.Reduces
			y.Parts = append(y.Parts, part)
			if part.Reduces {
				adds++
			}
		}
		slices.SortFunc(r.Sends, func(a, b result.Send) int { return cmp.Or(a.From-b.From, a.To-b.To) })
		r.Phase = phase(s, adds > 0, adds < len(messages))
		list = append(list, r)
	}
	return list
}

// partOf is a message in chunks.
func partOf(x *schedule.Message) result.Part {
	p := result.Part{
		Lane: x.Lane, From: int(x.Sent.From), To: int(x.Sent.To), At: int(x.Taken.From),
		Reduces: x.Taken.Verb == schedule.RecvReduce,
	}
	if x.Sent.Buf != schedule.Data {
		p.Buffer = x.Sent.Buf.String()
	}
	if x.Taken.Buf != schedule.Data {
		p.Into = x.Taken.Buf.String()
	}
	return p
}

// phase names what a round does for the operation, where some messages are added and some are copied.
func phase(s *schedule.Schedule, adds, copies bool) string {
	if s.Kind != coll.AllReduce {
		return strings.ReplaceAll(s.Kind.String(), "_", "-")
	}
	sum, spread := "reduce-scatter", "all-gather"
	if strings.Contains(s.Name, "tree") || s.Name == "chain" {
		sum, spread = "reduce", "broadcast"
	}
	switch {
	case adds && copies:
		return sum + " and " + spread
	case adds:
		return sum
	}
	return spread
}

// Rounds are the rounds of a schedule with the load that each puts on the links of the machine.
func (m *Machine) Rounds(s *schedule.Schedule, op coll.Op, figures *Model, ports Ports) ([]result.Round, error) {
	list := Rounds(s, op)
	w := m.router(s, ports)
	where, leaves := make([]string, len(list)), false
	for i, messages := range s.Messages() {
		r := &list[i]
		t := &passing{m: m, bytes: make([]float64, m.base[len(m.c.Hosts)]), net: map[int64]*cell{}}
		t.hops = make([]uint8, len(t.bytes))
		over, inside := 0, 0
		for _, x := range messages {
			path, ok := w.find(x.From, x.To, s.Channel(x.Lane))
			if !ok {
				return nil, m.noRoute(x.From, x.To)
			}
			if path.hop == OverNet {
				over++
			} else {
				inside++
			}
			t.addBytes(path, int64(x.From*s.Lanes+x.Lane)+1, float64(x.Sent.Len())/float64(max(s.Layout.Chunks, 1)))
		}
		leaves = leaves || over > 0
		switch {
		case inside == 0:
			where[i] = " between nodes"
		case over == 0:
			where[i] = " inside nodes"
		}
		f := &folding{t: t, m: figures, size: moved(op)}
		most := 0.0
		f.each(func(id int64, bytes, flows float64, hops uint8) {
			_, took := f.weigh(id, bytes, flows, hops)
			most = max(most, took)
		})
		r.Time = ps(most)
		f.took = r.Time
		r.Links = append(f.hosts(), f.network()...)
	}
	for i := range list {
		if leaves {
			list[i].Phase += where[i]
		}
	}
	return list, nil
}
