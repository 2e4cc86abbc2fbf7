package nccl

import (
	"fmt"
	"strings"
)

// Op is a collective that NCCL has a model of.
type Op uint8

// Collectives, with NCCL's numbers (NCCL 2.28 src/include/nccl_common.h).
const (
	Broadcast Op = iota
	Reduce
	AllGather
	ReduceScatter
	AllReduce
	nOps = 5
)

// Algo is an algorithm, with NCCL's numbers.
type Algo uint8

// Algorithms.
const (
	Tree Algo = iota
	Ring
	CollNetDirect
	CollNetChain
	NVLS
	NVLSTree
	PAT
	nAlgos = 7
)

// Proto is a protocol, with NCCL's numbers.
type Proto uint8

// Protocols.
const (
	LL Proto = iota
	LL128
	Simple
	nProtos = 3
)

// names are ours, as output has them, and NCCL's own.
type names struct{ ours, nccl string }

var (
	opNames = []names{
		Broadcast: {"broadcast", "Broadcast"}, Reduce: {"reduce", "Reduce"}, AllGather: {"all_gather", "AllGather"},
		ReduceScatter: {"reduce_scatter", "ReduceScatter"}, AllReduce: {"all_reduce", "AllReduce"},
	}
	algoNames = []names{
		Tree: {"tree", "Tree"}, Ring: {"ring", "Ring"}, CollNetDirect: {"collnet_direct", "CollNetDirect"},
		CollNetChain: {"collnet_chain", "CollNetChain"},
		NVLS:         {"nvls", "NVLS"}, NVLSTree: {"nvls_tree", "NVLSTree"}, PAT: {"pat", "PAT"},
	}
	protoNames = []names{LL: {"ll", "LL"}, LL128: {"ll128", "LL128"}, Simple: {"simple", "Simple"}}
)

func (o Op) String() string    { return name(opNames, int(o)) }
func (a Algo) String() string  { return name(algoNames, int(a)) }
func (p Proto) String() string { return name(protoNames, int(p)) }

// ParseAlgo reads nvls_tree and NCCL's NVLSTree.
func ParseAlgo(s string) (Algo, error) {
	i, err := find("algorithm", s, algoNames)
	return Algo(i), err
}

// ParseProto reads ll128 and NCCL's LL128.
func ParseProto(s string) (Proto, error) {
	i, err := find("protocol", s, protoNames)
	return Proto(i), err
}

func name(list []names, i int) string {
	if i < len(list) {
		return list[i].ours
	}
	return fmt.Sprintf("?%d", i)
}

// ncclNames are NCCL's names of a list.
func ncclNames(list []names) []string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = n.nccl
	}
	return words
}

func find(what, s string, list []names) (int, error) {
	var words []string
	for i, n := range list {
		if strings.EqualFold(n.ours, s) || strings.EqualFold(n.nccl, s) {
			return i, nil
		}
		words = append(words, n.ours)
	}
	return 0, fmt.Errorf("%s %q; one of %s", what, s, strings.Join(words, ", "))
}
