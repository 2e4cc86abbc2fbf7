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
	members map[int32]map[int]int // global by communicator's rank
	dumps   map[int]*flightrec.Dump
}

func newSetBuilder() *setBuilder {
	return &setBuilder{flightrec.NewSet(), map[string]int32{}, map[int32]map[int]int{}, map[int]*flightrec.Dump{}}
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

// dump is what is said of a rank.
func (b *setBuilder) dump(rank int, name string) *flightrec.Dump {
	d := b.dumps[rank]
	if d == nil {
		d = &flightrec.Dump{Name: name, Rank: rank, Last: map[int32]int32{}}
		b.dumps[rank], b.Dumps = d, append(b.Dumps, d)
	}
	return d
}

// launch adds what a rank launched last of all that is said of it.
func (b *setBuilder) launch(d *flightrec.Dump, e flightrec.Entry, sig flightrec.Sig) {
	e.Record, e.Sig = int64(len(d.Entries))+1, int32(len(b.Sigs))
	b.Sigs = append(b.Sigs, sig)
	d.Entries = append(d.Entries, e)
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

// inspectorSet is what Inspector's lines say: collectives that ended, with sizes. Numbers count the calls of one
// operation.
func (c *Case) inspectorSet(j *job) *flightrec.Set {
	b := newSetBuilder()
	for _, in := range c.inspect {
		for i := range in.records {
			r := &in.records[i]
			rank := j.ofPID(int(r.PID))
			if rank < 0 && int(r.Ranks) == j.world {
				rank = int(r.Rank)
			}
			if rank < 0 || recorderOps[r.Op] == "" || r.Seq == 0 {
				continue
			}
			g := b.group(r.Comm+r.Op, flightrec.Group{Name: r.Comm})
			b.members[g][int(r.Rank)] = rank
			b.launch(b.dump(rank, in.name), flightrec.Entry{Seq: r.Seq + 1, Group: g, State: flightrec.Completed},
				flightrec.Sig{
					Op: recorderOps[r.Op], Sizes: fmt.Sprintf("[%d bytes]", r.Bytes), In: r.Bytes, Out: r.Bytes,
				})
		}
	}
	return b.finish()
}
