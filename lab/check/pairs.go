package check

import (
	"errors"
	"runtime"
	"slices"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/internal/failure"
	"busbar.dev/lab"
	"busbar.dev/unit"
)

// calibrate measures pairs of ranks: in shared memory, over sockets inside a node, and
// between two nodes.
func (x *session) calibrate() (err error) {
	defer x.env.Progress("measuring pairs of ranks")()
	p := x.lab.State.Plan
	m := &Machine{Cores: runtime.NumCPU()}
	x.machine = m
	bare := p.Slots(1, 2)
	for i := range bare {
		bare[i].Bare = true
	}
	if m.Near, err = x.pair(bare, engine.Auto, true); err != nil {
		return err
	}
	if m.Local, err = x.pair(bare, engine.TCP, true); err != nil {
		return err
	}
	if len(p.Nodes) > 1 {
		if m.Net, err = x.pair(p.Slots(2, 1), engine.Auto, false); err != nil {
			return err
		}
		m.HasNet = true
	}
	return nil
}

// pair measures one pair several times; the quickest times count.
func (x *session) pair(slots []lab.Slot, t engine.Transport, large bool) (Pair, error) {
	w := work{Transport: t}
	small, volume, least, times := 2000, 512*unit.MiB, unit.Bytes(8), 3
	if x.check.Quick {
		small, volume, least, times = 100, 32*unit.MiB, 3, 1
	}
	for _, tr := range Pairs(len(slots), 1) {
		task := task{Trial: tr, Sizes: []unit.Bytes{pairSmall}, Iters: []int{small}, Warm: 5}
		if large && tr.Kind != coll.AllReduce {
			for _, size := range pairSizes() {
				task.Sizes, task.Iters = append(task.Sizes, size), append(task.Iters, int(min(max(volume/size, least), 2000)))
			}
		}
		w.Tasks = append(w.Tasks, task)
	}
	n := len(pairSizes())
	out := Pair{Stored: make([]unit.Time, n), Summed: make([]unit.Time, n)}
	for range times {
		rows, err := x.run(slots, w)
		if err != nil {
			return out, err
		}
		for i := range rows {
			out.take(&rows[i])
		}
	}
	if out.One == 0 || out.Two == 0 {
		return out, failure.Cannot(errors.New("the pair of ranks reported nothing"))
	}
	return out, nil
}

// take keeps the time of a row where it is the quickest of its kind; tasks are those of Pairs.
func (p *Pair) take(r *row) {
	t, _ := r.typical(false)
	keep := func(at *unit.Time) {
		if *at == 0 || t < *at {
			*at = t
		}
	}
	k := slices.Index(pairSizes(), r.Size)
	switch {
	case r.Task == 0 && k < 0:
		keep(&p.One)
	case r.Task == 1 && k < 0:
		keep(&p.Two)
	case r.Task == 0:
		keep(&p.Stored[k])
	case r.Task == 2 && k >= 0:
		keep(&p.Summed[k])
	}
}
