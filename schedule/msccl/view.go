package msccl

import (
	"fmt"

	"busbar.dev/coll"
)

// View is a way in which a program may call a file's collective. A file does not name its root.
type View struct {
	Kind    coll.Kind
	Root    int
	InPlace bool // input and output are one memory, as NCCL defines it for the collective
}

func (v View) String() string {
	text := v.Kind.String() + " out of place"
	if v.InPlace {
		text = v.Kind.String() + " in place"
	}
	if v.Kind.Rooted() {
		text += fmt.Sprintf(", root %d", v.Root)
	}
	return text
}

// words are the file's names of collectives.
var words = map[string]coll.Kind{
	"allreduce": coll.AllReduce, "allgather": coll.AllGather, "reducescatter": coll.ReduceScatter, "reduce_scatter": coll.ReduceScatter,
	"alltoall": coll.AllToAll, "broadcast": coll.Broadcast, "reduce": coll.Reduce,
}

// Views are the calls that a file says it serves: one for each place, and of a rooted collective
// for each root that it could have.
func (a *Algo) Views() ([]View, error) {
	kind, ok := words[a.Coll]
	if !ok {
		return nil, undecided("coll=%q; what that means is only known of allreduce, allgather, reducescatter, alltoall, broadcast and reduce", a.Coll)
	}
	roots := 1
	if kind.Rooted() {
		roots = a.NGPUs
	}
	var views []View
	for _, inPlace := range []bool{true, false} {
		if inPlace && (!a.InPlace || !kind.InPlace()) || !inPlace && !a.OutOfPlace {
			continue
		}
		for root := range roots {
			views = append(views, View{kind, root, inPlace})
		}
	}
	if len(views) == 0 {
		return nil, fmt.Errorf("inplace=%v, outofplace=%v: the file serves no call of %s", a.InPlace, a.OutOfPlace, kind)
	}
	return views, nil
}

// blocked reports whether the loop's chunks are those of all ranks' blocks.
func (v View) blocked() bool {
	return v.Kind == coll.AllGather || v.Kind == coll.ReduceScatter || v.Kind == coll.AllToAll
}

// sizes is the number of chunks of a call's input and output.
func (v View) sizes(a *Algo) (input, output int) {
	input, output = a.ChunksPerLoop, a.ChunksPerLoop
	switch v.Kind {
	case coll.AllGather:
		input /= a.NGPUs
	case coll.ReduceScatter:
		output /= a.NGPUs
	}
	return input, output
}

// contributes reports whether a rank's input holds something.
func (v View) contributes(rank int) bool { return v.Kind != coll.Broadcast || rank == v.Root }

// hasResult reports whether a rank gets an output.
func (v View) hasResult(rank int) bool { return v.Kind != coll.Reduce || rank == v.Root }

// shifts is where a rank's input and output begin among the chunks of the whole.
func (v View) shifts(a *Algo, rank int) (input, output int) {
	part := a.ChunksPerLoop / a.NGPUs * rank
	switch v.Kind {
	case coll.AllGather:
		return part, 0
	case coll.ReduceScatter:
		return 0, part
	}
	return 0, 0
}
