package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// differentMachines deals with two sources whose GPUs all have addresses and share none.
// A preset's addresses are those of a usual machine of its kind and give way to
// the ones that were read. GPUs of other models, or two presets, are two machines
// under one name: nothing of the further one is taken. Otherwise each source may
// have seen a part of the node, and all are kept. It reports whether to go on.
func (m *merging) differentMachines(t *NodeType, taken map[int]bool) bool {
	if a, b := m.base.Preset, t.Preset; a != "" && b != "" && a != b {
		return m.refuse(t)
	}
	ours, theirs := m.base.Of(GPU), t.Of(GPU)
	if len(ours) == 0 || len(theirs) == 0 || !allAddressed(m.base, ours) || !allAddressed(t, theirs) {
		return true
	}
	for _, i := range theirs {
		if m.to[i] >= 0 {
			return true
		}
	}
	a, b := modelOf(m.base, ours), modelOf(t, theirs)
	switch {
	case a != "" && b != "" && a != b && (m.base.Preset == "") == (t.Preset == ""):
		return m.refuse(t)
	case len(ours) == len(theirs) && (m.base.Preset == "") != (t.Preset == ""):
		byAddress(m.base, ours)
		byAddress(t, theirs)
		for i := range ours {
			m.to[theirs[i]], taken[ours[i]] = ours[i], true
		}
		m.warn("", "the %d GPUs have other addresses in %s than in %s; taken as the same, in the order of their addresses", len(ours), m.src, m.add)
	default:
		m.warn("", "%s has %d GPUs and %s has %d, and no address in common; kept all, as parts of one node; if these are two machines, name them with HOST=FILE", m.src, len(ours), m.add, len(theirs))
	}
	return true
}

// refuse leaves the further source out.
func (m *merging) refuse(t *NodeType) bool {
	for i := range m.to {
		m.to[i] = -1
	}
	m.warn("", "%s has %s, %s has %s: two different machines under one name; kept the first", m.src, inventory(m.base), m.add, inventory(t))
	return false
}

func allAddressed(t *NodeType, ids []int) bool {
	return !slices.ContainsFunc(ids, func(i int) bool { return t.Devices[i].PCI == "" })
}

// modelOf is the model of the devices when they have one and the same.
func modelOf(t *NodeType, ids []int) string {
	model := t.Devices[ids[0]].Model.Value
	for _, i := range ids {
		if t.Devices[i].Model.Value != model {
			return ""
		}
	}
	return model
}

// inventory says what a machine is: "8 GPUs (NVIDIA H100, dgx-h100)".
func inventory(t *NodeType) string {
	ids := t.Of(GPU)
	var what []string
	if len(ids) > 0 {
		if model := modelOf(t, ids); model != "" {
			what = append(what, model)
		}
	}
	if t.Preset != "" {
		what = append(what, t.Preset)
	}
	s := fmt.Sprintf("%d GPUs", len(ids))
	if len(what) > 0 {
		s += " (" + strings.Join(what, ", ") + ")"
	}
	return s
}

// byAddress sorts devices by address, and those without one by number.
func byAddress(t *NodeType, ids []int) {
	slices.SortStableFunc(ids, func(i, k int) int {
		return cmp.Or(cmp.Compare(t.Devices[i].PCI, t.Devices[k].PCI), t.Devices[i].Index-t.Devices[k].Index)
	})
}
