package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/words"
)

// fast is one set of point-to-point links among the GPUs of a node: all links
// of a kind to one NVSwitch, or all direct links of a kind.
type fast struct {
	kind    cluster.LinkKind
	name    string // "NVLink 4"
	via     int    // the NVSwitch, -1 for direct links
	gpus    []int
	bundles []*bundle // most lanes first
}

// bundle is the links of a set that are alike.
type bundle struct {
	cluster.Link       // the first of them
	links        []int // indexes into NodeType.Links
	gpus         []int
}

// fastSets finds the NVLink, xGMI and other direct links of a node.
func fastSets(t *cluster.NodeType) []*fast {
	var sets []*fast
	for i, l := range t.Links {
		a, b, via := t.Devices[l.A].Kind, t.Devices[l.B].Kind, -1
		switch {
		case a == cluster.GPU && b == cluster.GPU && l.Kind != cluster.PCIe:
		case a == cluster.GPU && b == cluster.NVSwitch:
			via = l.B
		case a == cluster.NVSwitch && b == cluster.GPU:
			via = l.A
		default:
			continue
		}
		at := slices.IndexFunc(sets, func(s *fast) bool { return s.kind == l.Kind && s.via == via })
		if at < 0 {
			at = len(sets)
			sets = append(sets, &fast{kind: l.Kind, via: via, name: linkName(&cluster.Link{Kind: l.Kind})})
		}
		sets[at].addLink(t, i)
	}
	for _, s := range sets {
		if slices.Sort(s.gpus); s.kind == cluster.NVLink {
			s.name = nvlinkName(t, s.gpus[0])
		}
		slices.SortStableFunc(s.bundles, func(a, b *bundle) int {
			return cmp.Or(cmp.Compare(b.Lanes, a.Lanes), cmp.Compare(b.Rate.Value, a.Rate.Value))
		})
	}
	return sets
}

// switchLinks are the links between NVSwitches: those to a second level.
func switchLinks(t *cluster.NodeType) []int {
	var list []int
	for i, l := range t.Links {
		if t.Devices[l.A].Kind == cluster.NVSwitch && t.Devices[l.B].Kind == cluster.NVSwitch {
			list = append(list, i)
		}
	}
	return list
}

func (s *fast) addLink(t *cluster.NodeType, i int) {
	l := &t.Links[i]
	at := slices.IndexFunc(s.bundles, func(b *bundle) bool {
		return b.Lanes == l.Lanes && b.Rate.Value == l.Rate.Value && b.Rate.Origin == l.Rate.Origin && b.OneWay == l.OneWay
	})
	if at < 0 {
		at = len(s.bundles)
		s.bundles = append(s.bundles, &bundle{Link: *l})
	}
	b := s.bundles[at]
	b.links = append(b.links, i)
	for _, d := range []int{l.A, l.B} {
		for _, gpus := range []*[]int{&b.gpus, &s.gpus} {
			if t.Devices[d].Kind == cluster.GPU && !slices.Contains(*gpus, d) {
				*gpus = append(*gpus, d)
			}
		}
	}
}

// gpuEnd is the GPU of a link to a switch.
func gpuEnd(t *cluster.NodeType, l *cluster.Link) int {
	if t.Devices[l.A].Kind == cluster.GPU {
		return l.A
	}
	return l.B
}

// short is how a bundle is called in a matrix: NV4.
func (b *bundle) short() string {
	if b.Kind == cluster.NVLink && b.Lanes > 0 {
		return fmt.Sprintf("NV%d", b.Lanes)
	}
	return linkName(&cluster.Link{Kind: b.Kind}) + when(b.Lanes > 1, fmt.Sprintf(" ×%d", b.Lanes))
}

// figures says the links of each GPU where those are known, and the rate of a bundle: "450 GB/s one direction each
// (900 GB/s duplex advertised) [spec]".
func (b *bundle) figures(each bool) string {
	if !b.Rate.Known() {
		return "rate unknown"
	}
	return b.Rate.Value.String() + " one direction" + when(each, " each") +
		when(b.Duplex > 0, " ("+b.Duplex.String()+" duplex advertised)") + " [" + b.Rate.Origin.String() + "]"
}

// pairs is the number of GPU pairs that the direct links join.
func (s *fast) pairs(t *cluster.NodeType) int {
	seen := make(map[[2]int]bool)
	for _, b := range s.bundles {
		for _, i := range b.links {
			l := &t.Links[i]
			seen[[2]int{min(l.A, l.B), max(l.A, l.B)}] = true
		}
	}
	return len(seen)
}

// full reports whether every pair of the GPUs has the same direct link.
func (s *fast) full(t *cluster.NodeType) bool {
	n := len(s.gpus)
	return s.via < 0 && len(s.bundles) == 1 && !s.bundles[0].OneWay && s.pairs(t) == n*(n-1)/2
}

// fastCaption says how its GPUs are linked.
func fastCaption(t *cluster.NodeType, s *fast) []string {
	rate := func(b *bundle, way string) string {
		return cmp.Or(when(b.Rate.Known(), b.Rate.Value.String()+way+assumed(b.Rate.Origin)), "rate unknown")
	}
	first, via := s.bundles[0], cmp.Or(when(s.via >= 0, " via NVSwitch"), " mesh")
	switch {
	case s.via >= 0 && len(s.bundles) == 1:
		return nonEmpty(s.name+via, when(first.Lanes > 0, words.Plural(first.Lanes, "link")+" per GPU"),
			rate(first, " one direction"))
	case s.full(t):
		return []string{s.name + ", full mesh", first.short() + " between each pair", rate(first, " one direction")}
	}
	text := []string{s.name + via}
	for _, b := range s.bundles {
		text = append(text, b.short()+when(b.OneWay, " one way")+": "+rate(b, ""))
	}
	return append(text, "one direction")
}

// words says a set in one line.
func (s *fast) words(t *cluster.NodeType) string {
	head := words.Plural(len(s.gpus), "GPU") + ", " + s.name
	if first := s.bundles[0]; s.full(t) {
		return head + ", full mesh: " + first.short() + " between every pair, " + first.figures(false)
	}
	if s.via >= 0 {
		head += " via NVSwitch: "
	} else {
		all := len(t.Of(cluster.GPU))
		head += fmt.Sprintf(", %d of %d pairs joined: ", s.pairs(t), all*(all-1)/2)
	}
	var parts []string
	for _, b := range s.bundles {
		text := fmt.Sprintf("%d × %s, %s", len(b.links), b.short(), b.figures(false))
		switch one := len(s.bundles) == 1; {
		case s.via >= 0:
			text = when(!one, deviceNames(deviceTitles(t), b.gpus)+" ") + countLinks(b.Lanes) + b.figures(one)
		case b.OneWay && len(b.links) == 1:
			text += ", only " + t.Devices[b.A].Name + " → " + t.Devices[b.B].Name
		case b.OneWay:
			text += ", one way"
		}
		parts = append(parts, text)
	}
	return head + strings.Join(parts, "; ")
}

func countLinks(lanes int) string { return when(lanes > 0, words.Plural(lanes, "link")+", ") }
