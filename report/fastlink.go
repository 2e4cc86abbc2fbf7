package report

import (
	"cmp"
	"fmt"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/words"
)

// shortLink is how links are called in a matrix: NV4.
func shortLink(b *cluster.Link) string {
	if b.Kind == cluster.NVLink && b.Lanes > 0 {
		return fmt.Sprintf("NV%d", b.Lanes)
	}
	return linkName(&cluster.Link{Kind: b.Kind}) + when(b.Lanes > 1, fmt.Sprintf(" ×%d", b.Lanes))
}

// linkFigures says the links of each GPU where those are known, and the rate of a bundle: "450 GB/s one direction each
// (900 GB/s duplex advertised) [spec]".
func linkFigures(b *cluster.Link, each bool) string {
	if !b.Rate.Known() {
		return "rate unknown"
	}
	return b.Rate.Value.String() + " one direction" + when(each, " each") +
		when(b.Duplex > 0, " ("+b.Duplex.String()+" duplex advertised)") + " [" + b.Rate.Origin.String() + "]"
}

// fastName is the links' kind: "NVLink 4".
func fastName(t *cluster.NodeType, s *cluster.FastSet) string {
	if s.Kind == cluster.NVLink {
		return nvlinkName(t, s.GPUs[0])
	}
	return linkName(&cluster.Link{Kind: s.Kind})
}

// fastCaption says how its GPUs are linked.
func fastCaption(t *cluster.NodeType, s *cluster.FastSet) []string {
	rate := func(b *cluster.Bundle, way string) string {
		return cmp.Or(when(b.Rate.Known(), b.Rate.Value.String()+way+assumed(b.Rate.Origin)), "rate unknown")
	}
	first, via := s.Bundles[0], cmp.Or(when(s.Via >= 0, " via NVSwitch"), when(len(s.GPUs) == 2, " of 2 GPUs"), " mesh")
	switch {
	case s.Via >= 0 && len(s.Bundles) == 1:
		return nonEmpty(fastName(t, s)+via, when(first.Lanes > 0, words.Plural(first.Lanes, "link")+" per GPU"),
			rate(first, " one direction"))
	case s.Full(t):
		return []string{
			fastName(t, s) + ", full mesh", shortLink(&first.Link) + " between each pair", rate(first, " one direction"),
		}
	}
	text := []string{fastName(t, s) + via}
	for _, b := range s.Bundles {
		text = append(text, shortLink(&b.Link)+when(b.OneWay, " one way")+": "+rate(b, ""))
	}
	return append(text, "one direction")
}

// fastWords says a set in one line.
func fastWords(t *cluster.NodeType, s *cluster.FastSet) string {
	head := words.Plural(len(s.GPUs), "GPU") + ", " + fastName(t, s)
	if first := s.Bundles[0]; s.Full(t) {
		return head + ", full mesh: " + shortLink(&first.Link) + " between every pair, " + linkFigures(&first.Link, false)
	}
	if s.Via >= 0 {
		head += " via NVSwitch: "
	} else {
		all := len(t.Of(cluster.GPU))
		head += fmt.Sprintf(", %d of %d pairs joined: ", s.Pairs(t), all*(all-1)/2)
	}
	var parts []string
	for _, b := range s.Bundles {
		text := fmt.Sprintf("%d × %s, %s", len(b.Links), shortLink(&b.Link), linkFigures(&b.Link, false))
		switch one := len(s.Bundles) == 1; {
		case s.Via >= 0:
			text = when(!one, deviceNames(t.Titles(), b.GPUs)+" ") + countLinks(b.Lanes) + linkFigures(&b.Link, one)
		case b.OneWay && len(b.Links) == 1:
			text += ", only " + t.Devices[b.A].Name + " → " + t.Devices[b.B].Name
		case b.OneWay:
			text += ", one way"
		}
		parts = append(parts, text)
	}
	return head + strings.Join(parts, "; ")
}

func countLinks(lanes int) string { return when(lanes > 0, words.Plural(lanes, "link")+", ") }
