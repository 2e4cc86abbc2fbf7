package coll

import (
	"math"
	"testing"

	"busbar.dev/unit"
)

func TestNamesParseAndPrint(t *testing.T) {
	for _, k := range Kinds() {
		for _, s := range []string{k.String(), k.Binary(), "./build/" + k.Binary() + "_mpi"} {
			if k.Binary() == "" && s != k.String() {
				continue
			}
			if got, err := ParseKind(s); err != nil || got != k {
				t.Errorf("%q: %v, %v; want %v", s, got, err, k)
			}
		}
		text, err := k.MarshalText()
		var back Kind
		if err != nil || back.UnmarshalText(text) != nil || back != k {
			t.Errorf("%v does not survive its text", k)
		}
	}
	for s, want := range map[string]Kind{
		"AllReduce": AllReduce, "allreduce": AllReduce, "all-to-all": AllToAll, "AlltoAllv": AllToAllV, "send_recv": SendRecv,
	} {
		if got, err := ParseKind(s); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", s, got, err, want)
		}
	}
	if _, err := ParseKind("all_reuce"); err == nil {
		t.Error("a misspelled word was taken")
	}
	for d := Float; d < dtypes; d++ {
		if got, err := ParseDtype(d.String()); err != nil || got != d {
			t.Errorf("%v: %v, %v", d, got, err)
		}
	}
	for r := Sum; r < redops; r++ {
		if got, err := ParseRedop(r.String()); err != nil || got != r {
			t.Errorf("%v: %v, %v", r, got, err)
		}
	}
}

// The columns and factors of nccl-tests 2.19 for 1 MiB on 8 ranks and 100 bytes on 6.
func TestArithmeticOfNCCLTests(t *testing.T) {
	tests := []struct {
		kind        Kind
		n           int
		bytes       unit.Bytes
		count       int64
		size        unit.Bytes
		send, recv  unit.Bytes // of rank 1, root 0
		factor, bus float64    // busbw in GB/s when the call takes 1 ms
	}{
		{AllReduce, 8, unit.MiB, 262144, 1048576, 1048576, 1048576, 1.75, 1.835008},
		{ReduceScatter, 8, unit.MiB, 32768, 1048576, 1048576, 131072, .875, .917504},
		{AllGather, 8, unit.MiB, 32768, 1048576, 131072, 1048576, .875, .917504},
		{Broadcast, 8, unit.MiB, 262144, 1048576, 0, 1048576, 1, 1.048576},
		{Reduce, 8, unit.MiB, 262144, 1048576, 1048576, 0, 1, 1.048576},
		{AllToAll, 8, unit.MiB, 32768, 1048576, 1048576, 1048576, .875, .917504},
		{AllToAllV, 8, unit.MiB, 32768, 1048576, 1048576, 1048576, .875, .917504},
		{Gather, 8, unit.MiB, 32768, 1048576, 131072, 0, .875, .917504},
		{Scatter, 8, unit.MiB, 32768, 1048576, 0, 131072, .875, .917504},
		{SendRecv, 8, unit.MiB, 262144, 1048576, 1048576, 1048576, 1, 1.048576},
		{Hypercube, 8, unit.MiB, 32768, 1048576, 131072, 1048576, 1, .917504},
		{Barrier, 8, unit.MiB, 0, 0, 0, 0, 0, 0},
		{AllReduce, 6, 100, 25, 100, 100, 100, 2 * 5. / 6, .0001 / 6 * 10},
		{AllGather, 6, 100, 4, 96, 16, 96, 5. / 6, .00008},
		{ReduceScatter, 6, 60, 0, 0, 0, 0, 5. / 6, 0},
		{AllReduce, 1, 64, 16, 64, 64, 64, 0, 0},
	}
	for _, tt := range tests {
		o := Op{Kind: tt.kind, Bytes: tt.bytes}
		if err := o.Check(tt.n); err != nil {
			t.Errorf("%v: %v", tt.kind, err)
		}
		rank := min(1, tt.n-1)
		if o.Count(tt.n) != tt.count || o.Size(tt.n) != tt.size || o.Send(tt.n, rank) != tt.send ||
			o.Recv(tt.n, rank) != tt.recv {
			t.Errorf("%v %d: count %d size %d send %d recv %d; want %d %d %d %d", tt.kind, tt.n, o.Count(tt.n),
				int64(o.Size(tt.n)),
				int64(o.Send(tt.n, rank)), int64(o.Recv(tt.n, rank)), tt.count, int64(tt.size), int64(tt.send), int64(tt.recv))
		}
		if f := tt.kind.BusFactor(tt.n); math.Abs(f-tt.factor) > 1e-12 {
			t.Errorf("%v %d: factor %v, want %v", tt.kind, tt.n, f, tt.factor)
		}
		if bw := float64(o.BusBW(tt.n, unit.Millisecond) / unit.GBps); math.Abs(bw-tt.bus) > 1e-9 {
			t.Errorf("%v %d: busbw %v, want %v", tt.kind, tt.n, bw, tt.bus)
		}
	}
}

func TestUnevenAllToAll(t *testing.T) {
	o := Op{Kind: AllToAllV, Sizes: [][]unit.Bytes{{0, 10, 20}, {1, 2, 3}, {100, 0, 0}}}
	if err := o.Check(3); err != nil {
		t.Fatal(err)
	}
	if o.Size(3) != 101 || o.Send(3, 0) != 30 || o.Recv(3, 2) != 23 {
		t.Errorf("size %d, send %d, recv %d", o.Size(3), o.Send(3, 0), o.Recv(3, 2))
	}
}

func TestImpossibleCalls(t *testing.T) {
	for _, tt := range []struct {
		o Op
		n int
	}{
		{Op{}, 4},
		{Op{Kind: AllReduce}, 0},
		{Op{Kind: AllReduce, Bytes: -1}, 2},
		{Op{Kind: Broadcast, Root: 4}, 4},
		{Op{Kind: Hypercube}, 6},
		{Op{Kind: AllReduce, Sizes: make([][]unit.Bytes, 2)}, 2},
		{Op{Kind: AllToAllV, Sizes: make([][]unit.Bytes, 3)}, 2},
		{Op{Kind: AllToAllV, Sizes: [][]unit.Bytes{{1, -1}, {1, 1}}}, 2},
	} {
		if tt.o.Check(tt.n) == nil {
			t.Errorf("%+v on %d ranks was taken", tt.o, tt.n)
		}
	}
}
