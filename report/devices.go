package report

import (
	"fmt"
	"sort"
	"strconv"
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
		return cut1(s, width)
	}
	return fmt.Sprintf("%s, … and %d more", cluster.FormatHosts(names[:shown]), len(names)-shown)
}

// cut1 shortens one item.
func cut1(s string, width int) string {
	r := []rune(s)
	return strings.TrimRight(string(r[:max(1, width-1)]), ",-") + "…"
}

// deviceNames lists devices by what people call them, with runs of numbers folded.
func deviceNames(titles []string, ids []int) string {
	names := make([]string, len(ids))
	for i, d := range ids {
		names[i] = titles[d]
	}
	return strings.ReplaceAll(cluster.FormatHosts(names), ",", ", ")
}

// shortCores writes a cpulist in few characters: every second core of a socket as
// 0-62:2, which taskset reads too, and a list that is still longer than width cut.
func shortCores(list string, width int) string {
	if len(list) <= width/2 {
		return list
	}
	parts := strings.Split(list, ",")
	if step, ok := stride(parts); ok && len(parts) > 2 {
		list = fmt.Sprintf("%s-%s:%d", parts[0], parts[len(parts)-1], step)
	}
	if len(list) > width {
		list = cut1(list, width)
	}
	return list
}

// stride is the step between numbers that all differ by the same.
func stride(parts []string) (int, bool) {
	prev, step := 0, 0
	for i, s := range parts {
		n, err := strconv.Atoi(s)
		switch {
		case err != nil:
			return 0, false
		case i == 1:
			step = n - prev
		case i > 1 && n-prev != step:
			return 0, false
		}
		prev = n
	}
	return step, step > 0
}
