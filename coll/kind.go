package coll

import (
	"fmt"
	"strings"
)

// Kind is a collective operation.
type Kind uint8

// The collectives. The zero value is none of them.
const (
	None Kind = iota
	AllReduce
	ReduceScatter
	AllGather
	Broadcast
	Reduce
	AllToAll
	AllToAllV // all-to-all whose blocks differ in size
	Gather
	Scatter
	SendRecv  // every rank sends to the next and receives from the one before, at once
	Hypercube // nccl-tests' all-gather by pairwise exchange; ranks are a power of two
	Barrier   // nobody leaves before everybody has come; moves no data
	kinds
)

var kindNames = [kinds]struct{ word, binary string }{
	AllReduce:     {"all_reduce", "all_reduce_perf"},
	ReduceScatter: {"reduce_scatter", "reduce_scatter_perf"},
	AllGather:     {"all_gather", "all_gather_perf"},
	Broadcast:     {"broadcast", "broadcast_perf"},
	Reduce:        {"reduce", "reduce_perf"},
	AllToAll:      {"all_to_all", "alltoall_perf"},
	AllToAllV:     {"all_to_all_v", "alltoallv_perf"},
	Gather:        {"gather", "gather_perf"},
	Scatter:       {"scatter", "scatter_perf"},
	SendRecv:      {"sendrecv", "sendrecv_perf"},
	Hypercube:     {"hypercube", "hypercube_perf"},
	Barrier:       {"barrier", ""},
}

// Kinds returns all collectives in the order of their constants.
func Kinds() []Kind {
	all := make([]Kind, 0, kinds-1)
	for k := AllReduce; k < kinds; k++ {
		all = append(all, k)
	}
	return all
}

// String is the word of the command line: all_reduce, all_to_all_v, ….
func (k Kind) String() string {
	if k == None || k >= kinds {
		return fmt.Sprintf("collective(%d)", uint8(k))
	}
	return kindNames[k].word
}

// Binary is the name of nccl-tests' program, or "" where it has none.
func (k Kind) Binary() string {
	if k >= kinds {
		return ""
	}
	return kindNames[k].binary
}

// ParseKind reads the command line's words, NCCL's names (AllReduce) and the
// names of nccl-tests' programs, with a folder and a build's suffix
// (./build/alltoall_perf_mpi).
func ParseKind(s string) (Kind, error) {
	word := s
	if i := strings.LastIndexByte(word, '/'); i >= 0 {
		word = word[i+1:]
	}
	word = strings.ToLower(word)
	word, _, _ = strings.Cut(word, "_perf")
	word = strings.NewReplacer("_", "", "-", "", " ", "").Replace(word)
	for _, k := range Kinds() {
		if word == strings.ReplaceAll(kindNames[k].word, "_", "") {
			return k, nil
		}
	}
	words := make([]string, 0, kinds)
	for _, k := range Kinds() {
		words = append(words, k.String())
	}
	return None, fmt.Errorf("operation %q is unknown; use one of %s", s, strings.Join(words, ", "))
}

// MarshalText writes the word.
func (k Kind) MarshalText() ([]byte, error) {
	if k == None || k >= kinds {
		return nil, fmt.Errorf("%s is no operation", k)
	}
	return []byte(k.String()), nil
}

// UnmarshalText reads what ParseKind reads.
func (k *Kind) UnmarshalText(text []byte) error {
	v, err := ParseKind(string(text))
	if err == nil {
		*k = v
	}
	return err
}

// Reduces reports whether the collective combines values.
func (k Kind) Reduces() bool { return k == AllReduce || k == ReduceScatter || k == Reduce }

// Rooted reports whether one rank has a part of its own.
func (k Kind) Rooted() bool { return k == Broadcast || k == Reduce || k == Gather || k == Scatter }

// Blocked reports whether the data consists of one block a rank (all_gather, all_to_all,
// …) rather than of one vector that all ranks share (all_reduce, broadcast, …).
func (k Kind) Blocked() bool {
	switch k {
	case ReduceScatter, AllGather, AllToAll, AllToAllV, Gather, Scatter, Hypercube:
		return true
	}
	return false
}

// InPlace reports whether the result may lie where the contribution lay.
// nccl-tests prints N/A for the in-place half of the others.
func (k Kind) InPlace() bool { return k != AllToAll && k != AllToAllV && k != SendRecv }
