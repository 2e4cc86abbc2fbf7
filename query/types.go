package query

import (
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Fields of questions are texts, as flags, addresses and JSON have them, so that one struct serves all three. Where a Go program
// has a value instead of a text, the field's type has a function that takes it: SizeOf(64 * unit.MiB), OpOf(coll.AllGather).
// Types of package workload (Recompute, Precision, …) and of its pipeline have constants.
type (
	// Op names a collective: all_reduce, AllReduce or all_reduce_perf.
	Op string
	// Size is a size such as 64K, 1.32GB or 25MiB; where a question takes several, they are separated by commas.
	Size string
	// Dtype names the type of elements: float, bf16, f8e4m3.
	Dtype string
	// Layout is who takes part, as NODESxGPUS: 2x4 is two nodes with four GPUs each.
	Layout string
	// Layouts are layouts to compare: 1x4,2x2,4x1.
	Layouts string
	// Parallel are parallel degrees: dp=8,tp=4,zero=1.
	Parallel string
)

// OpOf is a collective as a question's field.
func OpOf(k coll.Kind) Op { return Op(k.String()) }

// SizeOf is a size, or several, as a question's field; no byte is lost. Without any it is the empty field, which asks for the
// question's default.
func SizeOf(sizes ...unit.Bytes) Size {
	texts := make([]string, len(sizes))
	for i, s := range sizes {
		texts[i] = s.Exact()
		if plain := strconv.FormatInt(int64(s), 10); texts[i] == plain+"B" {
			texts[i] = plain + " B" // who writes 7B may mean parameters; who has a value does not
		}
	}
	return Size(strings.Join(texts, ","))
}

// DtypeOf is a type of elements as a question's field.
func DtypeOf(d coll.Dtype) Dtype { return Dtype(d.String()) }

// LayoutOf is so many nodes with so many GPUs each.
func LayoutOf(nodes, gpus int) Layout { return Layout(fmt.Sprintf("%dx%d", nodes, gpus)) }

// LayoutsOf are layouts to compare. Without any it is the empty field, which compares nothing and asks about all GPUs.
func LayoutsOf(list ...Layout) Layouts {
	return Layouts(commas(list))
}

// commas joins texts.
func commas[T ~string](list []T) string {
	texts := make([]string, len(list))
	for i, l := range list {
		texts[i] = string(l)
	}
	return strings.Join(texts, ",")
}

// ParallelOf are the degrees of a split. A DP of 0 is as many replicas as the other degrees leave.
func ParallelOf(s workload.Split) Parallel {
	shard, left := s.Shard, s.DP == 0
	s.Shard = 0 // as String writes it, it depends on DP
	text := s.String()
	if left {
		text = strings.TrimPrefix(text, "dp=1,")
	}
	switch {
	case shard == workload.ShardNode:
		text += ",shard=node"
	case shard > 0:
		text += fmt.Sprintf(",shard=%d", shard)
	}
	return Parallel(text)
}

func (o Op) kind() (coll.Kind, error)             { return coll.ParseKind(string(o)) }
func (s Size) bytes() (unit.Bytes, error)         { return unit.ParseBytes(string(s)) }
func (d Dtype) dtype() (coll.Dtype, error)        { return coll.ParseDtype(string(d)) }
func (p Parallel) split() (workload.Split, error) { return workload.ParseSplit(string(p)) }
