package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/stats"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// nodeSymmetry looks for GPUs that differ from their neighbours: the straggler
// of every collective inside the node.
func (a *auditor) nodeSymmetry(n *node) {
	if len(n.gpus) < 2 {
		return
	}
	a.unlikeModels(n)
	a.unlikeNICPaths(n)
	a.unlikeFastLinks(n)
}

// odd splits GPUs by a property and returns the common value and the GPUs that
// differ from it.
func odd(gpus []int, value func(g int) string) (common string, differ []int) {
	var by groups[string, int]
	for _, g := range gpus {
		by.add(value(g), g)
	}
	for _, v := range by.order {
		if common == "" || len(by.of[v]) > len(by.of[common]) {
			common = v
		}
	}
	return common, slices.DeleteFunc(slices.Clone(gpus), func(g int) bool { return value(g) == common })
}

func (a *auditor) unlikeModels(n *node) {
	model := func(g int) string { return n.t.Devices[g].Model.Value }
	common, differ := odd(n.gpus, model)
	if len(differ) > 0 {
		a.say("gpu-models-unlike", n.hosts+"/"+n.t.Devices[differ[0]].Name, n.names(differ), orUnknown(model(differ[0])),
			orUnknown(common))
	}
}

func orUnknown(s string) string {
	return cmp.Or(s, "of unknown model")
}

// unlikeNICPaths reports GPUs with a longer path to their NIC than the nearest
// ones of the node have.
func (a *auditor) unlikeNICPaths(n *node) {
	var best cluster.Class
	for _, g := range n.gpus {
		if n.class[g].Nearer(best) {
			best = n.class[g]
		}
	}
	var far []int
	for _, g := range n.gpus {
		if c := n.class[g]; c.Type != cluster.Apart && c.Type != best.Type {
			far = append(far, g)
		}
	}
	if len(far) == 0 {
		return
	}
	a.say("asymmetry-nic", n.hosts+"/"+n.t.Devices[far[0]].Name, n.names(far), n.class[far[0]], best)
}

// fastShape is the sorted list of a GPU's NVLink or xGMI classes to its peers.
func fastShape(m cluster.Matrix, i, gpus int) string {
	var s []string
	for k := range gpus {
		c := m.Class[i][k]
		if strings.HasPrefix(c, "NV") || strings.HasPrefix(c, "XGMI") {
			s = append(s, c)
		}
	}
	slices.Sort(s)
	return strings.Join(s, " ")
}

func (a *auditor) unlikeFastLinks(n *node) {
	m := n.t.Matrix()
	pos := map[int]int{}
	for i, g := range n.gpus {
		pos[g] = i
	}
	shape := func(g int) string { return fastShape(m, pos[g], len(n.gpus)) }
	common, differ := odd(n.gpus, shape)
	unread := func(row []string) bool { return slices.Contains(row[:len(n.gpus)], cluster.Class{}.String()) }
	if len(differ) == 0 || slices.ContainsFunc(m.Class[:len(n.gpus)], unread) {
		return
	}
	has := "have"
	if len(differ) == 1 {
		has = "has"
	}
	a.say("asymmetry-nvlink", n.hosts+"/"+n.t.Devices[differ[0]].Name, n.names(differ), has,
		cmp.Or(shape(differ[0]), "none"), cmp.Or(common, "none"))
}

// nodeLinks looks at PCIe links that run below what they could.
func (a *auditor) nodeLinks(n *node) {
	for _, l := range n.t.Links {
		if l.Kind != cluster.PCIe {
			continue
		}
		child := l.B
		if n.t.Devices[l.A].Parent == l.B {
			child = l.A
		}
		where := n.where(child)
		narrow := l.MaxLanes > 2 && l.Lanes > 0 && l.Lanes < l.MaxLanes // no card of a cluster's network has but two
		slow := l.MaxGTs > 0 && l.GTs > 0 && l.GTs < l.MaxGTs
		text := fmt.Sprintf("PCIe trained to x%d at %g GT/s, both ends could do x%d at %g GT/s", l.Lanes, l.GTs, l.MaxLanes,
			l.MaxGTs)
		switch {
		case narrow:
			a.say("pcie-trained-low", where, text)
		case slow && n.t.Devices[child].Kind == cluster.GPU:
			a.say("pcie-trained-low/idle", where, text)
		case slow && n.fedAnyway(child, l.Rate.Value):
			a.say("pcie-trained-low/enough", where, text)
		case slow:
			a.say("pcie-trained-low/slot", where, text)
		}
	}
}

// fedAnyway reports a NIC whose PCIe link carries more than its ports do, or
// whose ports are too slow to matter.
func (n *node) fedAnyway(d int, pcie unit.Rate) bool {
	nic := n.t.Devices[d].NIC
	if n.t.Devices[d].Kind != cluster.NIC || nic == nil {
		return false
	}
	r := nic.Rate()
	return r.Known() && (r.Value < pcie || r.Value <= 10*unit.Gbps)
}

// nodePairs looks at what was measured or refused between GPUs.
func (a *auditor) nodePairs(n *node) {
	var byClass groups[string, cluster.Pair]
	refused := map[string][]cluster.Pair{}
	m := n.t.Matrix()
	for _, p := range n.t.Pairs {
		if p.P2P == cluster.No {
			refused[p.Why] = append(refused[p.Why], p)
		}
		if p.Rate.Origin != cluster.Measured {
			continue
		}
		i, k := slices.Index(n.gpus, p.A), slices.Index(n.gpus, p.B)
		if i < 0 || k < 0 {
			continue
		}
		byClass.add(m.Class[i][k], p)
	}
	for _, c := range byClass.order {
		a.slowPairs(n, c, byClass.of[c])
	}
	for _, why := range slices.Sorted(maps.Keys(refused)) {
		p := refused[why][0]
		a.say("p2p-off", n.where(p.A), len(refused[why]), n.t.Devices[p.A].Name, n.t.Devices[p.B].Name,
			strings.TrimRight(" "+why, " "))
	}
}

// slowPairs reports measured pairs far below the median of their class, at the GPU that most of them have in common.
func (a *auditor) slowPairs(n *node, class string, pairs []cluster.Pair) {
	if len(pairs) < 3 {
		return
	}
	slices.SortFunc(pairs, func(x, y cluster.Pair) int { return cmp.Compare(x.Rate.Value, y.Rate.Value) })
	median := pairs[stats.At(len(pairs), 0.5)].Rate.Value
	count := map[int]int{}
	slow := 0
	for _, p := range pairs {
		if p.Rate.Value < median*0.7 {
			slow++
			count[p.A]++
			count[p.B]++
		}
	}
	if slow == 0 {
		return
	}
	worst := slices.MaxFunc(n.gpus, func(x, y int) int { return count[x] - count[y] })
	of := class + " pairs"
	if class == "?" {
		of = "all pairs"
	}
	a.say("pair-slow", n.where(worst), words.Plural(slow, "pair"), of, median, pairs[0].Rate.Value,
		n.t.Devices[pairs[0].A].Name, n.t.Devices[pairs[0].B].Name, count[worst], n.t.Devices[worst].Name)
}
