package health

import (
	"maps"
	"slices"
	"strings"

	"busbar.dev/finding"
)

// mostTransports bounds how many transports beside TCP have histories.
const mostTransports = 4

// over is the history of pairs over a transport: RDMA and NCCL show many times what TCP does, and a pair's past, its
// class and its sweeps are those of one transport. "" is TCP's, which is the history itself; nil where there are too
// many.
func (h *History) over(by string) *History {
	if by == "" {
		return h
	}
	o := h.others[by]
	if o != nil || len(h.others) == mostTransports || len(by) > longest {
		return o
	}
	o = New(h.opt)
	for i, name := range h.nodes.list {
		if !h.node[i].gone {
			o.SetPlace(name, h.placeOf(int32(i)))
		}
	}
	if h.others == nil {
		h.others = map[string]*History{}
	}
	h.others[by] = o
	return o
}

func (h *History) placeOf(i int32) (p Place) {
	if n := h.node[i].leaf; n >= 0 {
		p.Leaf = h.leaves.list[n]
	}
	if n := h.node[i].kind; n >= 0 {
		p.Type = h.types.list[n]
	}
	return p
}

// transportFindings are those of pairs over all transports. Words and names of TCP's have nothing added: they were
// there first.
func (h *History) transportFindings() []finding.Finding {
	list := h.pairsNow()
	for _, by := range slices.Sorted(maps.Keys(h.others)) {
		for _, f := range h.others[by].pairsNow() {
			f.ID += "@" + by
			if f.ExplainedBy != "" {
				f.ExplainedBy += "@" + by
			}
			f.Transport = by
			f.Text = "Over " + strings.ToUpper(by) + ": " + f.Text
			list = append(list, f)
		}
	}
	return list
}

// Way is a transport and a rail over which a pair was measured.
type Way struct {
	By   string `json:"by,omitempty"`   // empty: TCP
	Rail string `json:"rail,omitempty"` // empty: not told
}

// Ways are those of a pair in one direction, in a fixed order.
func (h *History) Ways(from, to string) (list []Way) {
	for _, by := range append([]string{""}, slices.Sorted(maps.Keys(h.others))...) {
		o := h.over(by)
		for _, rail := range slices.Sorted(slices.Values(o.rails.list)) {
			if i, ok := o.find(from, to, rail); ok && len(o.series[i].samples) > 0 {
				list = append(list, Way{by, rail})
			}
		}
	}
	return list
}

// find is the number of a series.
func (h *History) find(from, to, rail string) (int32, bool) {
	a, ok1 := h.nodes.num[from]
	b, ok2 := h.nodes.num[to]
	r, ok3 := h.rails.num[rail]
	i, ok4 := h.index[pairKey{a, b, r}]
	return i, ok1 && ok2 && ok3 && ok4
}
