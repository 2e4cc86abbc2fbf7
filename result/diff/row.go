package diff

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// key is what makes two rows the same. The algorithm is left out where both sides
// have one only: that another was chosen is part of the change.
type key struct {
	op          coll.Kind
	redop       string
	root        int
	size        unit.Bytes
	dtype       string
	ranks       int
	nodes, each int
	transport   string
	compress    string
	inPlace     bool
	source      result.Source
	setting     string
	algo        string
}

func keyOf(r result.Row) key {
	k := key{
		op: r.Op, redop: r.Redop, root: r.Root, size: r.Size, dtype: r.Dtype, ranks: r.Ranks, nodes: r.Nodes, each: r.PerNode,
		transport: r.Transport, compress: r.Compress, inPlace: r.InPlace, source: r.Source, algo: r.Algo + " " + r.Proto,
	}
	k.setting = fmt.Sprint(r.Channels, r.Env) // which fmt writes in order
	return k
}

// callOf is the operation and its size alone.
func callOf(r result.Row) key {
	return key{op: r.Op, redop: r.Redop, root: r.Root, size: r.Size, inPlace: r.InPlace}
}

// bundle is all rows that are the same on one side.
type bundle struct {
	key   key
	algo  string
	list  []result.Row
	first int // where the sweep that it belongs to begins
}

// gather puts rows that are the same together, in the order of their sweeps and sizes.
func gather(sweeps result.Sweeps, keyOf func(result.Row) key) []*bundle {
	at := map[key]*bundle{}
	begins := map[key]int{}
	var all []*bundle
	for _, r := range sweeps.Rows() {
		k := keyOf(r)
		b := at[k]
		if b == nil {
			of := k
			of.size, of.algo = 0, ""
			if _, ok := begins[of]; !ok {
				begins[of] = len(begins)
			}
			b = &bundle{key: k, algo: strings.TrimSpace(r.Algo + " " + r.Proto), first: begins[of]}
			at[k] = b
			all = append(all, b)
		}
		b.list = append(b.list, r)
	}
	slices.SortStableFunc(all, order)
	return all
}

// common reports a row that both sides have.
func common(was, is []*bundle) bool {
	return slices.ContainsFunc(was, func(a *bundle) bool {
		return slices.ContainsFunc(is, func(b *bundle) bool { return a.key == b.key })
	})
}

// setups are what the rows of a side were measured with: everything but operation, form, algorithm and size.
func setups(side []*bundle) map[key]bool {
	list := map[key]bool{}
	for _, b := range side {
		k := b.key
		k.op, k.redop, k.root, k.size, k.dtype, k.inPlace, k.algo = 0, "", 0, 0, "", false, ""
		list[k] = true
	}
	return list
}

// settle forgets the algorithm of rows that have one on each side.
func settle(sides ...[]*bundle) {
	most := map[key]int{}
	for _, side := range sides {
		count := map[key]int{}
		for _, b := range side {
			k := b.key
			k.algo = ""
			count[k]++
			most[k] = max(most[k], count[k])
		}
	}
	for _, side := range sides {
		for _, b := range side {
			k := b.key
			k.algo = ""
			if most[k] == 1 {
				b.key = k
			}
		}
	}
}

// runs are the medians of the rows, in µs.
func (b *bundle) runs() []float64 {
	var list []float64
	for _, r := range b.list {
		list = append(list, r.Middle().Micros())
	}
	return list
}

// calls are the times of single calls of all rows, in µs.
func (b *bundle) calls() []float64 {
	var list []float64
	for _, r := range b.list {
		for _, took := range r.Samples {
			list = append(list, took.Micros())
		}
	}
	return list
}
