package step

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/unit"
)

// mostKinds bounds the kinds of groups that are compared; those with the slowest NICs come first.
const mostKinds = 6

// alike is the share of a rate by which two NICs may differ and still be equal.
const alike = 0.03

// hostKinds tells ranks apart whose hosts differ in what their groups wait for: the node's type and the rates of its
// cables. It is made when first asked for.
type hostKinds struct {
	once sync.Once
	c    *cluster.Cluster
	host []int               // by host: those with the same number are equal
	rate []map[int]unit.Rate // by that number: of the NICs that a GPU sends through
}

func (k *hostKinds) find() {
	cables := slowCables(k.c)
	index := map[string]int{}
	k.host = make([]int, len(k.c.Hosts))
	for h := range k.c.Hosts {
		key := fmt.Sprint(k.c.Hosts[h].Type, cables[h])
		id, ok := index[key]
		if !ok {
			id = len(index)
			index[key] = id
			k.rate = append(k.rate, gpuRates(k.c.TypeOf(h), cables[h]))
		}
		k.host[h] = id
	}
}

// slowCables are the rates of cables that are slower than their NIC, by host and NIC.
func slowCables(c *cluster.Cluster) map[int]map[int]unit.Rate {
	slow := map[int]map[int]unit.Rate{}
	for i := range c.Network.Links {
		l := &c.Network.Links[i]
		if !l.B.ToHosts() || l.B.NIC < 0 || !l.Rate.Known() || l.State == cluster.Down {
			continue
		}
		rate := l.Rate.Value * unit.Rate(l.Cables())
		for _, s := range l.B.Hosts {
			for h := s.First; h < s.First+s.N && h < len(c.Hosts); h++ {
				t := c.TypeOf(h)
				if t == nil {
					continue
				}
				nics := t.Of(cluster.NIC)
				if l.B.NIC >= len(nics) || t.Devices[nics[l.B.NIC]].NIC == nil ||
					rate >= (1-alike)*t.Devices[nics[l.B.NIC]].NIC.Rate().Value {
					continue
				}
				if slow[h] == nil {
					slow[h] = map[int]unit.Rate{}
				}
				slow[h][nics[l.B.NIC]] = rate
			}
		}
	}
	return slow
}

// gpuRates is the rate of the NICs nearest to each GPU of a node.
func gpuRates(t *cluster.NodeType, cables map[int]unit.Rate) map[int]unit.Rate {
	rates := map[int]unit.Rate{}
	if t == nil {
		return rates
	}
	for _, n := range t.Nearest() {
		for _, k := range n.NICs {
			if nic := t.Devices[k].NIC; nic != nil {
				r := nic.Rate().Value
				if cable, ok := cables[k]; ok {
					r = cable
				}
				rates[n.GPU] += r
			}
		}
	}
	return rates
}

// differ reports whether ranks of a layout differ in what their groups wait for.
func (k *hostKinds) differ(l nccl.Layout) bool {
	if k == nil || k.c == nil || len(l) == 0 {
		return false
	}
	k.once.Do(k.find)
	first := k.host[l[0].Host]
	rate := k.rate[first][l[0].GPU]
	for _, r := range l {
		if id := k.host[r.Host]; id != first || k.rate[id][r.GPU] < (1-alike)*rate || rate < (1-alike)*k.rate[id][r.GPU] {
			return true
		}
	}
	return false
}

// groupKind is a group that stands for all that have as many ranks on each kind of host and GPU.
type groupKind struct {
	first   int       // rank
	slowest unit.Rate // of its GPUs' NICs
}

// groupKinds are the kinds of groups among those that begin at some ranks, those with the slowest NICs first.
func (f *Fabric) groupKinds(firsts func(yield func(int) bool), ranks func(int) nccl.Layout) []groupKind {
	seen := map[string]groupKind{}
	var key []int
	var text []byte
	for first := range firsts {
		k := groupKind{first: first}
		key = key[:0]
		for i, r := range ranks(first) {
			id := f.kinds.host[r.Host]
			key = append(key, id<<12|r.GPU)
			if rate := f.kinds.rate[id][r.GPU]; i == 0 || rate < k.slowest {
				k.slowest = rate
			}
		}
		slices.Sort(key)
		text = text[:0]
		for _, v := range key {
			text = append(text, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
		}
		if f.leaves.crosses(ranks(first)) {
			text = append(text, 'x')
		}
		if _, ok := seen[string(text)]; !ok {
			seen[string(text)] = k
		}
	}
	list := slices.Collect(maps.Values(seen))
	slices.SortFunc(list, func(a, b groupKind) int { return cmp.Or(cmp.Compare(a.slowest, b.slowest), a.first-b.first) })
	return list[:min(len(list), mostKinds)]
}

// slowestGroup is the predictor of the group that takes longest of one that is known and of the other kinds: all ranks
// wait for it.
func (f *Fabric) slowestGroup(g Group, known *predict.Predictor) (*predict.Predictor, error) {
	at := f.pattern(g)
	firsts := func(yield func(int) bool) {
		for r := 0; at.from+r < len(f.layout); r++ {
			if f.begins(at, r) && !yield(r) {
				return
			}
		}
	}
	op := coll.Op{Kind: coll.AllReduce, Bytes: kindBytes, Type: coll.BFloat16}
	if g == Experts {
		op.Kind = coll.AllToAll
	}
	worst, err := priced(known, op)
	if err != nil {
		return known, nil // which says so when it is asked
	}
	for _, k := range f.groupKinds(firsts, func(first int) nccl.Layout { return f.ranks(g, first) }) {
		p, err := f.groupAt(g, k.first)
		if err != nil {
			return nil, err
		}
		if t, err := priced(p, op); err == nil && t.time > worst.time*(1+alike) {
			known, worst = p, t
		}
	}
	return known, nil
}

// kindBytes is the size by which groups are compared: a bucket of gradients or more.
const kindBytes = 64 * unit.MiB

// slowestPair is the first rank of the pair of neighbours in the pipeline that takes longest, if that is another one
// than the pair that begins at rank from.
func (f *Fabric) slowestPair(stages, stride, from int) int {
	firsts := func(yield func(int) bool) {
		for r := 0; r+stride < len(f.layout); r++ {
			if r/stride%stages < stages-1 && !yield(r) {
				return
			}
		}
	}
	pair := func(first int) nccl.Layout { return nccl.Layout{f.layout[first], f.layout[first+stride]} }
	op := coll.Op{Kind: coll.SendRecv, Bytes: kindBytes, Type: coll.BFloat16}
	time := func(first int) (unit.Span, error) {
		p, err := predict.NewWithPlanner(f.cache.found, f.c, pair(first), f.version, f.Env, nil)
		if err != nil {
			return 0, err
		}
		t, err := priced(p, op)
		return t.time, err
	}
	worst, err := time(from)
	if err != nil {
		return from
	}
	for _, k := range f.groupKinds(firsts, pair) {
		if t, err := time(k.first); err == nil && t > worst*(1+alike) {
			from, worst = k.first, t
		}
	}
	return from
}
