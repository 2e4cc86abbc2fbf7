package report

import (
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/svg"
)

// separators part the words of a name.
const separators = "-_."

// shortNames leaves out of names what all of them have in common: of
// A09-P1-LEAF-01 and B09-P1-LEAF-02 remain A09…01 and B09…02. Names that would no
// longer be told apart, and names of unlike build, stay as they are.
func shortNames(names []string) []string {
	if len(names) < 2 {
		return names
	}
	words := make([][]string, len(names))
	for i, n := range names {
		words[i] = splitName(n)
		if len(words[i]) != len(words[0]) {
			return names
		}
	}
	common := make([]bool, len(words[0]))
	for k := range common {
		common[k] = true
		for i := range words {
			common[k] = common[k] && words[i][k] == words[0][k]
		}
	}
	out, seen := make([]string, len(names)), make(map[string]bool)
	for i := range words {
		out[i] = keepWords(words[i], common)
		if out[i] == "" || seen[out[i]] {
			return names
		}
		seen[out[i]] = true
	}
	return out
}

// splitName cuts a name before each separator, so that the words joined are the
// name.
func splitName(s string) []string {
	var words []string
	for {
		at := strings.IndexAny(s[min(1, len(s)):], separators)
		if at < 0 {
			return append(words, s)
		}
		words = append(words, s[:at+1])
		s = s[at+1:]
	}
}

// keepWords joins the words that are not common, with … for the others.
func keepWords(words []string, common []bool) string {
	var b strings.Builder
	skipped := false
	for k, w := range words {
		if common[k] {
			skipped = true
			continue
		}
		if skipped {
			w = "…" + strings.TrimLeft(w, separators)
		}
		b.WriteString(w)
		skipped = false
	}
	if skipped && b.Len() > 0 {
		b.WriteString("…")
	}
	return b.String()
}

// maxListed is how many names of a box are tried to be set before the rest is only
// hinted at.
const maxListed = 12

// fitList writes as many names as fit a width, as a hostlist, with … for the rest;
// a single name that is too long is cut in its middle, for names differ at their
// ends.
func fitList(lead string, names []string, ty svg.Type, w float64) string {
	if len(names) == 0 {
		return svg.Fit(strings.TrimSuffix(lead, " × "), ty, w)
	}
	list := cluster.FormatHosts(names)
	for _, s := range []string{lead + list, lead + tightRange(list)} {
		if svg.TextWidth(s, ty) <= w {
			return s
		}
	}
	for n := min(len(names)-1, maxListed); n > 0; n-- {
		if s := lead + cluster.FormatHosts(names[:n]) + ", …"; svg.TextWidth(s, ty) <= w {
			return s
		}
	}
	rest := ""
	if len(names) > 1 {
		rest = ", …"
	}
	return lead + svg.FitEnds(names[0], ty, w-svg.TextWidth(lead+rest, ty)) + rest
}

// tightRange writes node[0010-0019] as node0010–19; other lists stay as they are.
func tightRange(list string) string {
	stem, rest, _ := strings.Cut(list, "[")
	low, high, ok := strings.Cut(strings.TrimSuffix(rest, "]"), "-")
	if !ok || strings.Trim(low+high, "0123456789") != "" || !strings.HasSuffix(list, "]") {
		return list
	}
	same := 0
	for same < len(high)-2 && len(low) == len(high) && low[same] == high[same] {
		same++
	}
	return stem + low + "–" + high[same:]
}
