package report

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"busbar.dev/cluster"
)

// hostList writes names as a hostlist of at most width runes; what does not fit
// is counted. A width below 1 means no limit.
func hostList(names []string, width int) string {
	s := cluster.FormatHosts(names)
	if width < 1 || utf8.RuneCountInString(s) <= width {
		return s
	}
	shown := sort.Search(len(names), func(n int) bool { return len(cluster.FormatHosts(names[:n+1])) > width-14 })
	if shown == 0 {
		return cut(s, width)
	}
	return fmt.Sprintf("%s, … and %d more", cluster.FormatHosts(names[:shown]), len(names)-shown)
}

// cut is a hostlist as far as there is room for it.
func cut(s string, width int) string {
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	return strings.TrimRight(string(r[:width-1]), ",-") + "…"
}

// deviceNames lists devices by what people call them, with runs of numbers folded.
func deviceNames(titles []string, ids []int) string {
	names := make([]string, len(ids))
	for i, d := range ids {
		names[i] = titles[d]
	}
	return strings.ReplaceAll(cluster.FormatHosts(names), ",", ", ")
}
