// Package coll holds the collectives and their arithmetic: names, the sizes of
// buffers, and the bandwidths that nccl-tests prints.
//
// It knows nothing of how a collective is done; package schedule does. All figures are
// those of nccl-tests 2.19, so that a table of ours can be laid beside one of its own.
package coll

import (
	"fmt"

	"busbar.dev/unit"
)

// Op is one collective call, alike on all ranks. The zero values of Type, Reduce and
// Root are nccl-tests' defaults: float, sum, rank 0.
type Op struct {
	Kind Kind
	// Bytes is the size asked for (-b): of the one vector for all_reduce, broadcast,
	// reduce and sendrecv; of all ranks' blocks together for the blocked kinds.
	// The blocked kinds use less when it does not divide evenly; see Size.
	Bytes  unit.Bytes
	Type   Dtype
	Reduce Redop
	Root   int
	// Sizes[i][j] is what rank i sends to rank j, of all_to_all_v only. When nil, the
	// blocks are equal.
	Sizes [][]unit.Bytes
}

// Check reports what makes the call impossible on n ranks.
func (o Op) Check(n int) error {
	switch {
	case o.Kind == None || o.Kind >= kinds:
		return fmt.Errorf("%s is no operation", o.Kind)
	case n < 1:
		return fmt.Errorf("%s of %d ranks; at least one is needed", o.Kind, n)
	case o.Bytes < 0:
		return fmt.Errorf("%s of %d bytes; sizes are not negative", o.Kind, int64(o.Bytes))
	case o.Root < 0 || o.Root >= n:
		return fmt.Errorf("%s with root %d; ranks are 0 to %d", o.Kind, o.Root, n-1)
	case o.Kind == Hypercube && n&(n-1) != 0:
		return fmt.Errorf("hypercube of %d ranks; the number must be a power of two", n)
	case o.Sizes != nil && o.Kind != AllToAllV:
		return fmt.Errorf("%s with sizes of its own for each pair; only all_to_all_v has them", o.Kind)
	case o.Sizes != nil && len(o.Sizes) != n:
		return fmt.Errorf("all_to_all_v with sizes for %d ranks; there are %d", len(o.Sizes), n)
	}
	for i, row := range o.Sizes {
		if len(row) != n {
			return fmt.Errorf("all_to_all_v: rank %d has sizes for %d peers; there are %d", i, len(row), n)
		}
		for j, b := range row {
			if b < 0 {
				return fmt.Errorf("all_to_all_v: rank %d sends %d bytes to rank %d; sizes are not negative", i, int64(b), j)
			}
		}
	}
	return nil
}

// Count is nccl-tests' count column: elements of the vector, or of one block for the
// blocked kinds, whose blocks are rounded down to a multiple of 16 bytes (a small size
// may thus come out as 0).
func (o Op) Count(n int) int64 {
	elem := int64(o.Type.Size())
	count := int64(o.Bytes) / elem
	switch {
	case o.Kind == Barrier:
		return 0
	case o.Kind.Blocked() && n > 0:
		return count / int64(n) &^ (16/elem - 1)
	}
	return count
}

// Block is the bytes of one block of a blocked kind, and of the vector of the others.
func (o Op) Block(n int) unit.Bytes {
	return unit.Bytes(o.Count(n) * int64(o.Type.Size()))
}

// Pair is the bytes that rank from has for rank to in an all-to-all.
func (o Op) Pair(n, from, to int) unit.Bytes {
	if o.Sizes != nil {
		return o.Sizes[from][to]
	}
	return o.Block(n)
}

// Size is nccl-tests' size column: the bytes that are really used.
func (o Op) Size(n int) unit.Bytes {
	switch {
	case o.Sizes != nil:
		return o.greatest()
	case o.Kind.Blocked():
		return unit.Bytes(n) * o.Block(n)
	}
	return o.Block(n)
}

// greatest is the most that a rank sends or receives under Sizes.
func (o Op) greatest() unit.Bytes {
	var most unit.Bytes
	into := make([]unit.Bytes, len(o.Sizes))
	for _, row := range o.Sizes {
		var sum unit.Bytes
		for j, b := range row {
			sum += b
			into[j] += b
		}
		most = max(most, sum)
	}
	for _, b := range into {
		most = max(most, b)
	}
	return most
}

// Send is the size of a rank's send buffer; what it does not read counts as nothing.
func (o Op) Send(n, rank int) unit.Bytes {
	root := rank == o.Root
	switch o.Kind {
	case AllReduce, Reduce, SendRecv, AllGather, Gather, Hypercube:
		return o.Block(n)
	case Broadcast:
		return only(root, o.Block(n))
	case ReduceScatter, AllToAll:
		return unit.Bytes(n) * o.Block(n)
	case Scatter:
		return only(root, unit.Bytes(n)*o.Block(n))
	case AllToAllV:
		var sum unit.Bytes
		for to := range n {
			sum += o.Pair(n, rank, to)
		}
		return sum
	}
	return 0
}

// Recv is the size of a rank's receive buffer; what it does not write counts as nothing.
func (o Op) Recv(n, rank int) unit.Bytes {
	root := rank == o.Root
	switch o.Kind {
	case AllReduce, Broadcast, SendRecv, ReduceScatter, Scatter:
		return o.Block(n)
	case Reduce:
		return only(root, o.Block(n))
	case AllGather, AllToAll, Hypercube:
		return unit.Bytes(n) * o.Block(n)
	case Gather:
		return only(root, unit.Bytes(n)*o.Block(n))
	case AllToAllV:
		var sum unit.Bytes
		for from := range n {
			sum += o.Pair(n, from, rank)
		}
		return sum
	}
	return 0
}

func only(cond bool, b unit.Bytes) unit.Bytes {
	if cond {
		return b
	}
	return 0
}
