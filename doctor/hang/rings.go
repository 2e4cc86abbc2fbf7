package hang

import (
	"fmt"
	"slices"
	"strconv"

	"busbar.dev/coll"
	"busbar.dev/input/flightrec"
	"busbar.dev/input/profile"
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
	anchors, ended := anchorsOf(rings), endedOf(rings)
	for _, r := range rings {
		d := b.dump(r.Rank, r.name)
		ops := r.Ops[max(0, len(r.Ops)-maxRingOps):]
		next := make([]int32, len(r.Comms))
		for i := range r.Comms {
			d.Member = append(d.Member, b.comm(&r.Comms[i]))
			if a := anchors[r.Comms[i].Hash]; a.number > 0 {
				if n := before(ops, i, a.call); n >= 0 {
					next[i] = a.number - n
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
			case m.Ended, o.Ended && exact(o.Algo), endedLater(ops[i+1:], o.Comm),
				o.Ended && ended[memberCall{m.Hash, ringCall{o.Kind, o.Sequence}}] >= len(b.members[e.Group]):
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

// exact reports algorithms whose end is told right: NCCL stamps the end of a kernel by its first thread, and in a tree,
// on a leaf, that has sent its part up and is done while the others still wait for the result (seen with 2.28.9).
func exact(algo string) bool { return algo == "ring" || algo == "" }

// memberCall is an operation on a communicator.
type memberCall struct {
	comm uint64
	ringCall
}

// endedOf counts the members on which an operation ended: one that ended everywhere is over, whoever stamped it.
func endedOf(rings []ringFile) map[memberCall]int {
	count := map[memberCall]int{}
	for _, r := range rings {
		ops := r.Ops[max(0, len(r.Ops)-maxRingOps):]
		for i := range ops {
			if o := &ops[i]; o.Ended && !exact(o.Algo) {
				count[memberCall{r.Comms[o.Comm].Hash, ringCall{o.Kind, o.Sequence}}]++
			}
		}
	}
	return count
}

// endedLater reports that a later operation of the communicator ended: what was before it has too, for they run in
// order.
func endedLater(rest []profile.Op, comm int) bool {
	for i := range rest[:min(len(rest), 256)] {
		if rest[i].Comm == comm && rest[i].Ended && rest[i].Kind != coll.None && exact(rest[i].Algo) {
			return true
		}
	}
	return false
}

// ringCall names an operation on a communicator.
type ringCall struct {
	kind coll.Kind
	seq  uint64
}

// anchor is a call that all members have, and its number: the true one where a ring still has the communicator's first.
type anchor struct {
	call   ringCall
	number int32
}

// anchorsOf finds for every communicator a call that all rings of its members have: from there on calls are numbered
// alike, though the oldest of each ring are lost.
func anchorsOf(rings []ringFile) map[uint64]anchor {
	seen := map[uint64]map[ringCall]int{}
	count := map[uint64]int{}
	first := map[uint64][]ringCall{}
	for _, r := range rings {
		ops := r.Ops[max(0, len(r.Ops)-maxRingOps):]
		has := map[uint64]bool{}
		for i := range ops {
			o := &ops[i]
			h := r.Comms[o.Comm].Hash
			if recorderOps[o.Function] == "" {
				continue
			}
			if seen[h] == nil {
				seen[h] = map[ringCall]int{}
			}
			k := ringCall{o.Kind, o.Sequence}
			if count[h] == 0 {
				first[h] = append(first[h], k)
			}
			seen[h][k]++
			has[h] = true
		}
		for h := range has {
			count[h]++
		}
	}
	anchors := map[uint64]anchor{}
	for h, list := range first {
		for _, k := range list {
			if seen[h][k] == count[h] {
				anchors[h] = anchor{k, maxRingOps + 1}
				break
			}
		}
	}
	for _, r := range rings {
		if len(r.Ops) == 0 || r.Ops[0].Number > 0 || len(r.Ops) > maxRingOps {
			continue
		}
		for i := range r.Comms {
			h := r.Comms[i].Hash
			if n := before(r.Ops, i, anchors[h].call); n >= 0 {
				anchors[h] = anchor{anchors[h].call, n + 1}
			}
		}
	}
	return anchors
}

// before counts a communicator's calls before one; -1 where that is not there.
func before(ops []profile.Op, comm int, c ringCall) int32 {
	n := int32(0)
	for i := range ops {
		o := &ops[i]
		if o.Comm != comm || recorderOps[o.Function] == "" {
			continue
		}
		if (ringCall{o.Kind, o.Sequence}) == c {
			return n
		}
		n++
	}
	return -1
}

// commName is a communicator's name; what NCCL fills in where nobody gave one is none.
func commName(s string) string {
	if s == "unknown" || s == "null" {
		return ""
	}
	return s
}
