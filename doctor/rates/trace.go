package rates

import (
	"cmp"
	"slices"

	"busbar.dev/result/trace"
)

// AddTrace adds the collectives that a profiler recorded of one rank. Calls of a group are matched by the number that
// the profiler gives them, else by their order. A trace does not say on which host it was made: number tells processes
// apart.
func (w *Window) AddTrace(t *trace.Trace, number int) {
	order := map[string]uint64{}
	for i := range t.Events {
		e := &t.Events[i]
		if e.Call < 0 {
			continue
		}
		c := &t.Calls[e.Call]
		if c.P2P || c.Size < 2 {
			continue
		}
		m := w.memberOf(Member{
			Comm: GroupOf(c), Name: c.Desc, Rank: max(slices.Index(c.Ranks, t.Rank), 0), Ranks: c.Size, Global: t.Rank,
			World: t.World, Local: -1, PID: number,
		})
		if m < 0 {
			return
		}
		seq := order[c.Group]
		if order[c.Group]++; e.Seq >= 0 {
			seq = uint64(e.Seq)
		}
		w.addSample(m, c.Op.String(), int64(c.Bytes), c.Algo, "", Sample{seq, e.Start / 1000, float64(e.End-e.Start) / 1e3},
			true)
	}
}

// GroupOf is what a call's communicator is known by in the rows of a report.
func GroupOf(c *trace.Call) string { return cmp.Or(c.Group, "group") }
