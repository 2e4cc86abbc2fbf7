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

// The names in our output, and NCCL's own.
var (
	opNames    = []string{"broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce"}
	algoNames  = []string{"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"}
	protoNames = []string{"ll", "ll128", "simple"}

	ncclOps    = []string{"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"}
	ncclAlgos  = []string{"Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"}
	ncclProtos = []string{"LL", "LL128", "Simple"}
)

func (o Op) String() string    { return name(opNames, int(o)) }
func (a Algo) String() string  { return name(algoNames, int(a)) }
func (p Proto) String() string { return name(protoNames, int(p)) }

// MarshalText writes the name: all_reduce.
func (o Op) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// MarshalText writes the name: nvls_tree.
func (a Algo) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// MarshalText writes the name: ll128.
func (p Proto) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// ParseOp reads all_reduce and NCCL's AllReduce.
func ParseOp(s string) (Op, error) {
	i, err := find("collective", s, opNames, ncclOps)
	return Op(i), err
}

// ParseAlgo reads nvls_tree and NCCL's NVLSTree.
func ParseAlgo(s string) (Algo, error) {
	i, err := find("algorithm", s, algoNames, ncclAlgos)
	return Algo(i), err
}

// ParseProto reads ll128 and NCCL's LL128.
func ParseProto(s string) (Proto, error) {
	i, err := find("protocol", s, protoNames, ncclProtos)
	return Proto(i), err
}

func name(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("?%d", i)
}

func find(what, s string, lists ...[]string) (int, error) {
	for _, list := range lists {
		for i, n := range list {
			if strings.EqualFold(n, s) {
				return i, nil
			}
		}
	}
	return 0, fmt.Errorf("%s %q; one of %s", what, s, strings.Join(lists[0], ", "))
}

// algos is how many of the algorithms a release has: PAT came with 2.23.
func (v Version) algos() int {
	if v.From(23) {
		return nAlgos
	}
	return int(PAT)
}
