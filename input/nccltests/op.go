package nccltests

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"busbar.dev/coll"
)

// opOf is the collective of a program such as all_reduce_perf or all_reduce_perf_mpi,
// coll.None when it is none of nccl-tests.
func opOf(program string) coll.Kind {
	stem, _, ok := strings.Cut(program, "_perf")
	if ok {
		for _, k := range coll.Kinds() {
			if k.Binary() == stem+"_perf" {
				return k
			}
		}
	}
	return coll.None
}

// nameOps decides what the tables measured: the program if the text names it, else what only one collective prints;
// of sizes too small to tell, what those of the same ranks and columns are, where these are all of one.
func (o *Output) nameOps() {
	of := map[string]coll.Kind{}
	key := func(t *Table) string {
		_, redop, root := t.largest()
		return fmt.Sprint(t.NRanks(), redop, root)
	}
	for i := range o.Tables {
		t := &o.Tables[i]
		if t.Op = opOf(t.Test); t.Op == coll.None {
			t.Op, t.OpFrom = t.opByColumns(), "columns"
		}
		if known, ok := of[key(t)]; t.Op != coll.None && ok && known != t.Op {
			of[key(t)] = coll.None
		} else if t.Op != coll.None {
			of[key(t)] = t.Op
		}
	}
	for i := range o.Tables {
		t := &o.Tables[i]
		if t.Op = cmp.Or(t.Op, of[key(t)]); t.Op == coll.None {
			t.OpFrom = ""
		}
	}
}

// ranksOf is how many ranks give such a factor between busbw and algbw, (n-1)/n or twice that; 0 where several numbers
// or none do.
func ranksOf(factor float64) int {
	if factor > 1 {
		factor /= 2
	}
	n := math.Round(1 / (1 - factor))
	if factor < 0.6 || n > 32 || math.Abs((n-1)/n-factor) > 0.1/(n*n) {
		return 0
	}
	return int(n)
}

// opByColumns tells collectives apart by their reduction, their root and the
// factor between busbw and algbw. All-gather and all-to-all look alike, and so
// do gather and scatter; those stay unknown.
func (t *Table) opByColumns() coll.Kind {
	p, redop, root := t.largest()
	if p == nil || p.Out.PrintedAlg < 1e7 {
		return coll.None
	}
	factor := float64(p.Out.PrintedBus / p.Out.PrintedAlg)
	if t.NRanks() == 0 {
		t.world = ranksOf(factor)
	}
	n := float64(t.NRanks())
	if n < 2 {
		return coll.None
	}
	// Two printed decimals are all there is of either rate.
	near := func(want float64) bool {
		slack := 0.02 + 0.01e9*(1+want)/float64(p.Out.PrintedAlg)
		return math.Abs(factor-want) < slack*want
	}
	switch {
	case redop != "" && root >= 0 && near(1):
		return coll.Reduce
	case redop != "" && root < 0 && near(2*(n-1)/n):
		return coll.AllReduce
	case redop != "" && root < 0 && near((n-1)/n):
		return coll.ReduceScatter
	case redop == "" && root >= 0 && near(1) && !near((n-1)/n):
		return coll.Broadcast
	}
	return coll.None
}
