package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// fast is one set of point-to-point links among the GPUs of a node: all links
// of a kind to one NVSwitch, or all direct links of a kind.
type fast struct {
	kind    cluster.LinkKind
	name    string // "NVLink 4"
	via     int    // the NVSwitch, -1 for direct links
	gpus    []int
	bundles []bundle // most lanes first
}

// bundle is the links of a set that are alike.
type bundle struct {
	lanes  int
	rate   cluster.Fact[unit.Rate]
	duplex unit.Rate
	oneWay bool
	links  []int // indexes into NodeType.Links
	gpus   []int
}

// fastSets finds the NVLink, xGMI and other direct links of a node.
func fastSets(t *cluster.NodeType) []fast {
	var sets []fast
	for i, l := range t.Links {
		a, b := &t.Devices[l.A], &t.Devices[l.B]
		via := -1
		switch {
		case a.Kind == cluster.GPU && b.Kind == cluster.GPU && l.Kind != cluster.PCIe:
		case a.Kind == cluster.GPU && b.Kind == cluster.NVSwitch:
			via = l.B
		case a.Kind == cluster.NVSwitch && b.Kind == cluster.GPU:
			via = l.A
		default:
			continue
		}
		at := slices.IndexFunc(sets, func(s fast) bool { return s.kind == l.Kind && s.via == via })
		if at < 0 {
			at = len(sets)
			sets = append(sets, fast{kind: l.Kind, via: via})
		}
		sets[at].add(t, i, l)
	}
	for i := range sets {
		s := &sets[i]
		s.name = setName(t, s)
		slices.Sort(s.gpus)
		slices.SortStableFunc(s.bundles, func(a, b bundle) int {
			return cmp.Or(cmp.Compare(b.lanes, a.lanes), cmp.Compare(b.rate.Value, a.rate.Value))
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

func (s *fast) add(t *cluster.NodeType, i int, l cluster.Link) {
	at := slices.IndexFunc(s.bundles, func(b bundle) bool {
		return b.lanes == l.Lanes && b.rate.Value == l.Rate.Value && b.rate.Origin == l.Rate.Origin && b.oneWay == l.OneWay
	})
	if at < 0 {
		at = len(s.bundles)
		s.bundles = append(s.bundles, bundle{lanes: l.Lanes, rate: l.Rate, duplex: l.Duplex, oneWay: l.OneWay})
	}
	b := &s.bundles[at]
	b.links = append(b.links, i)
	for _, d := range []int{l.A, l.B} {
		if t.Devices[d].Kind != cluster.GPU {
			continue
		}
		if !slices.Contains(b.gpus, d) {
			b.gpus = append(b.gpus, d)
		}
		if !slices.Contains(s.gpus, d) {
			s.gpus = append(s.gpus, d)
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

func setName(t *cluster.NodeType, s *fast) string {
	if s.kind == cluster.NVLink && len(s.gpus) > 0 {
		return nvlinkName(t, s.gpus[0])
	}
	return linkName(&cluster.Link{Kind: s.kind})
}

// short is how a bundle is called in a matrix: NV4.
func (b *bundle) short(kind cluster.LinkKind) string {
	if kind == cluster.NVLink && b.lanes > 0 {
		return fmt.Sprintf("NV%d", b.lanes)
	}
	if b.lanes > 1 {
		return fmt.Sprintf("%s ×%d", linkName(&cluster.Link{Kind: kind}), b.lanes)
	}
	return linkName(&cluster.Link{Kind: kind})
}

// figures says the rate of a bundle: "450 GB/s one direction each (900 GB/s
// duplex advertised) [spec]".
func (b *bundle) figures() string {
	if !b.rate.Known() {
		return "rate unknown"
	}
	s := b.rate.Value.String() + " one direction"
	if b.duplex > 0 {
		s += " (" + b.duplex.String() + " duplex advertised)"
	}
	return s + " [" + b.rate.Origin.String() + "]"
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
	return s.via < 0 && len(s.bundles) == 1 && !s.bundles[0].oneWay && s.pairs(t) == n*(n-1)/2
}

// fastCaption says how its GPUs are linked.
func fastCaption(t *cluster.NodeType, s *fast) []string {
	rate := func(b *bundle, way string) string {
		if !b.rate.Known() {
			return "rate unknown"
		}
		return b.rate.Value.String() + way + assumed(b.rate.Origin)
	}
	first := &s.bundles[0]
	switch {
	case s.via >= 0 && len(s.bundles) == 1:
		links := ""
		if first.lanes > 0 {
			links = words.Plural(first.lanes, "link") + " per GPU"
		}
		return nonEmpty(s.name+" via NVSwitch", links, rate(first, " one direction"))
	case s.full(t):
		return []string{s.name + ", full mesh", first.short(s.kind) + " between each pair", rate(first, " one direction")}
	}
	text := []string{s.name}
	if s.via >= 0 {
		text[0] += " via NVSwitch"
	} else {
		text[0] += " mesh"
	}
	for i := range s.bundles {
		b := &s.bundles[i]
		way := ""
		if b.oneWay {
			way = " one way"
		}
		text = append(text, b.short(s.kind)+way+": "+rate(b, ""))
	}
	return append(text, "one direction")
}

// words says a set in one line.
func (s *fast) words(t *cluster.NodeType) string {
	head := words.Plural(len(s.gpus), "GPU") + ", " + s.name
	switch {
	case s.via >= 0 && len(s.bundles) == 1:
		b := &s.bundles[0]
		return head + " via NVSwitch: " + countLinks(b.lanes) +
			strings.Replace(b.figures(), " one direction", " one direction each", 1)
	case s.via >= 0:
		head += " via NVSwitch:"
		for i := range s.bundles {
			b := &s.bundles[i]
			head += fmt.Sprintf("%s %s %s%s", sep(i), deviceNames(deviceTitles(t), b.gpus), countLinks(b.lanes), b.figures())
		}
		return head
	case s.full(t):
		b := &s.bundles[0]
		return head + ", full mesh: " + b.short(s.kind) + " between every pair, " + b.figures()
	}
	all := len(t.Of(cluster.GPU))
	head += fmt.Sprintf(", %d of %d pairs joined:", s.pairs(t), all*(all-1)/2)
	for i := range s.bundles {
		b := &s.bundles[i]
		head += fmt.Sprintf("%s %d × %s, %s", sep(i), len(b.links), b.short(s.kind), b.figures())
		if b.oneWay && len(b.links) == 1 {
			l := &t.Links[b.links[0]]
			head += ", only " + t.Devices[l.A].Name + " → " + t.Devices[l.B].Name
		} else if b.oneWay {
			head += ", one way"
		}
	}
	return head
}

func sep(i int) string {
	if i == 0 {
		return ""
	}
	return ";"
}

func countLinks(lanes int) string {
	if lanes < 1 {
		return ""
	}
	return words.Plural(lanes, "link") + ", "
}
