package hang

import (
	"fmt"
	"maps"
	"slices"

	"busbar.dev/input/flightrec"
)

// recorderOps are the recorder's words for NCCL's operations.
var recorderOps = map[string]string{
	"AllReduce": "all_reduce", "AllGather": "_all_gather_base", "ReduceScatter": "_reduce_scatter_base",
	"Broadcast": "broadcast", "Reduce": "reduce",
}

// setBuilder brings what others wrote about collectives into the form of the recorder's dumps.
type setBuilder struct {
	*flightrec.Set

	groups  map[string]int32
	sigs    map[flightrec.Sig]int32
	members map[int32]map[int]int // global by communicator's rank
}

func newSetBuilder() *setBuilder {
	return &setBuilder{
		flightrec.NewSet(), map[string]int32{}, map[flightrec.Sig]int32{}, map[int32]map[int]int{},
	}
}

// group is the number of a communicator, or of a part of its operations.
func (b *setBuilder) group(key string, as flightrec.Group) int32 {
	g, ok := b.groups[key]
	if !ok {
		g = int32(len(b.Groups))
		b.groups[key], b.members[g] = g, map[int]int{}
		b.Groups = append(b.Groups, as)
	}
	return g
}

// sig is the number of what an operation is.
func (b *setBuilder) sig(s flightrec.Sig) int32 {
	i, ok := b.sigs[s]
	if !ok {
		i = int32(len(b.Sigs))
		b.sigs[s] = i
		b.Sigs = append(b.Sigs, s)
	}
	return i
}

// finish gives the groups their ranks.
func (b *setBuilder) finish() *flightrec.Set {
	for g, byRank := range b.members {
		for _, k := range slices.Sorted(maps.Keys(byRank)) {
			b.Groups[g].Ranks = append(b.Groups[g].Ranks, byRank[k])
		}
	}
	return b.Set
}

// inspectorSet is what Inspector's lines say: collectives that ended, with sizes and times. Who comes late to one
// spends less time in it, which tells when it was launched. Numbers count the calls of one operation.
func (c *Case) inspectorSet(j *job) *flightrec.Set {
	const end = 1 << 60 // of all collectives, ns: only differences count
	b := newSetBuilder()
	dumps := map[int]*flightrec.Dump{}
	seen := map[string]bool{} // a line of a file that is there cut and whole
	for _, in := range c.inspect {
		for i := range in.records {
			r := &in.records[i]
			rank := j.ofPID(int(r.PID))
			if rank < 0 && int(r.Ranks) == j.world {
				rank = int(r.Rank)
			}
			key := fmt.Sprint(r.Comm, " ", r.Op, " ", r.Seq, " ", rank)
			if rank < 0 || recorderOps[r.Op] == "" || r.Seq == 0 || seen[key] {
				continue
			}
			seen[key] = true
			d := dumps[rank]
			if d == nil {
				d = &flightrec.Dump{Name: in.name, Rank: rank}
				dumps[rank], b.Dumps = d, append(b.Dumps, d)
			}
			e := flightrec.Entry{
				Record: int64(len(d.Entries)) + 1, Seq: r.Seq + 1, Group: b.group(r.Comm+r.Op, flightrec.Group{Name: r.Comm}),
				Created: end - int64(1000*r.ExecUs), DurationMs: r.ExecUs / 1000, State: flightrec.Completed,
			}
			b.members[e.Group][int(r.Rank)] = rank
			e.Sig = b.sig(flightrec.Sig{
				Op: recorderOps[r.Op], Sizes: fmt.Sprintf("[%d bytes]", r.Bytes), In: r.Bytes, Out: r.Bytes,
			})
			d.Entries = append(d.Entries, e)
		}
	}
	return b.finish()
}
