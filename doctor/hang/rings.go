package hang

import (
	"fmt"
	"slices"
	"strconv"

	"busbar.dev/coll"
	"busbar.dev/input/flightrec"
	"busbar.dev/input/profile"
	"busbar.dev/input/ras"
)

// ringFile is a ring of the profiler plugin with the name of its file.
type ringFile struct {
	*profile.Ring

	name string
}

// AddRing takes a ring of the profiler plugin. Of a process that was read before the newer reading counts, and whether
// it launched anything since is known then.
func (c *Case) AddRing(name string, r *profile.Ring) {
	for i := range c.rings {
		old := &c.rings[i]
		if old.PID != r.PID || old.Host != r.Host || !old.Created.Equal(r.Created) {
			continue
		}
		c.ringMoved = c.ringMoved || old.Next != r.Next
		c.ringStill = true
		if r.Next >= old.Next {
			old.Ring, old.name = r, name
		}
		return
	}
	c.rings = append(c.rings, ringFile{r, name})
}

// launchedAfter reports that rings have a collective that an answer of RAS did not count yet: the job went on after it.
func (c *Case) launchedAfter(r *ras.Report) bool {
	counts := map[uint64]map[string]map[int]uint64{} // by communicator and operation
	for i := range r.Comms {
		counts[r.Comms[i].Hash] = launched(&r.Comms[i])
	}
	for _, f := range c.rings {
		for i := range f.Ops {
			o := &f.Ops[i]
			m := &f.Comms[o.Comm]
			if n, ok := counts[m.Hash][o.Function][m.Rank]; ok && o.Sequence >= n {
				return true
			}
		}
	}
	return false
}

// maxRingOps are the last operations of a ring that are compared.
const maxRingOps = 2048

// ringSet is what rings say in the form of the recorder's dumps, whose rules then hold for them: the same order, sizes
// and states, of NCCL itself and without asking the process. It is empty where the rings say nothing about ends.
func (c *Case) ringSet() *flightrec.Set {
	b := newSetBuilder()
	rings := slices.DeleteFunc(slices.Clone(c.rings), func(r ringFile) bool { return r.Rank < 0 })
	if !slices.ContainsFunc(rings, func(r ringFile) bool {
		return slices.ContainsFunc(r.Ops, func(o profile.Op) bool { return o.Ended })
	}) {
		return b.Set
	}
	for _, r := range rings {
		for i := range r.Comms {
			m := &r.Comms[i]
			b.members[b.comm(m)][m.Rank] = r.Rank
		}
	}
	ended := endedOf(rings)
	numbers := map[uint64]map[ringCall]int32{} // of a communicator's calls in the first ring that has it
	for _, r := range rings {
		d := b.dump(r.Rank, r.name)
		ops := r.Ops[max(0, len(r.Ops)-maxRingOps):]
		ran := make([]int, len(r.Comms)) // a communicator's last collective that started: what was before it is over
		for i := range ops {
			if o := &ops[i]; o.Started && o.Kind != coll.None {
				ran[o.Comm] = i
			}
		}
		next := make([]int32, len(r.Comms))
		for i := range r.Comms {
			m := &r.Comms[i]
			d.Member = append(d.Member, b.comm(m))
			next[i] = firstNumber(ops, i, numbers[m.Hash])
			if calls := callsOf(ops, i); numbers[m.Hash] == nil && len(calls) > 0 {
				numbers[m.Hash] = map[ringCall]int32{}
				for k, call := range calls {
					numbers[m.Hash][call] = next[i] + int32(k)
				}
			}
		}
		for i := range ops {
			o := &ops[i]
			m := &r.Comms[o.Comm]
			e := flightrec.Entry{Created: o.Launched.UnixNano(), Group: d.Member[o.Comm], State: flightrec.Scheduled}
			sig := flightrec.Sig{
				Op: recorderOps[o.Function], Sizes: fmt.Sprintf("[%d]", o.Count), Dtypes: o.Type, In: int64(o.Count),
				Out: int64(o.Count),
			}
			if sig.Op == "" {
				e.P2P, sig.Op = true, fmt.Sprint(o.Function, " ", o.Peer)
			} else {
				if e.Seq = next[o.Comm]; e.Seq <= 0 {
					continue // no call of it is known of all members
				}
				next[o.Comm]++
			}
			switch {
			case m.Ended, i < ran[o.Comm], ended[memberCall{m.Hash, ringCall{o.Kind, o.Sequence}}] >= len(b.members[e.Group]):
				e.State = flightrec.Completed
			case o.Started:
				e.State = flightrec.Started
			}
			b.launch(d, e, sig)
		}
	}
	return b.finish()
}

// comm is the group of a communicator.
func (b *setBuilder) comm(m *profile.Comm) int32 {
	hash := strconv.FormatUint(m.Hash, 16)
	return b.group(hash, flightrec.Group{Name: hash, Desc: commName(m.Name)})
}

// memberCall is an operation on a communicator.
type memberCall struct {
	comm uint64
	ringCall
}

// endedOf counts the members on which an operation ended. On one of them alone that says little: NCCL stamps the end of
// a kernel by its first thread, and in a tree a leaf that has sent its part up is done while the others still wait for
// the result (seen with 2.28.9).
func endedOf(rings []ringFile) map[memberCall]int {
	count := map[memberCall]int{}
	for _, r := range rings {
		ops := r.Ops[max(0, len(r.Ops)-maxRingOps):]
		for i := range ops {
			if o := &ops[i]; o.Ended {
				count[memberCall{r.Comms[o.Comm].Hash, ringCall{o.Kind, o.Sequence}}]++
			}
		}
	}
	return count
}

// ringCall names an operation on a communicator.
type ringCall struct {
	kind coll.Kind
	seq  uint64
}

// callsOf are a communicator's collectives in their order.
func callsOf(ops []profile.Op, comm int) (list []ringCall) {
	for i := range ops {
		if o := &ops[i]; o.Comm == comm && recorderOps[o.Function] != "" {
			list = append(list, ringCall{o.Kind, o.Sequence})
		}
	}
	return list
}

// firstNumber is that of a communicator's first call in a ring. Rings lose different numbers of operations: the first
// call that another ring has too is the same in both. 0 where they share none.
func firstNumber(ops []profile.Op, comm int, others map[ringCall]int32) int32 {
	if others == nil && len(ops) > 0 && ops[0].Number == 0 {
		return 1
	}
	if others == nil {
		return maxRingOps + 1 // others may have lost less
	}
	for i, call := range callsOf(ops, comm) {
		if n := others[call]; n > 0 {
			return n - int32(i)
		}
	}
	return 0
}

// commName is a communicator's name; what NCCL fills in where nobody gave one is none.
func commName(s string) string {
	if s == "unknown" || s == "null" {
		return ""
	}
	return s
}
