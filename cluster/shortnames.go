package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/internal/lazyre"
)

// separators part the words of a name.
const separators = "_.-"

// ShortNames leaves out of names what all of them have in common: of
// A09-P1-LEAF-01 and B09-P1-LEAF-02 remain A09…01 and B09…02. Names of unlike build stay as they are.
func ShortNames(names []string) []string {
	parts := make([][]string, len(names))
	for i, n := range names {
		parts[i] = nameParts.FindAllString(n, -1)
		if len(parts[i]) != len(parts[0]) {
			return names
		}
	}
	short := make([]string, len(names))
	for k := range parts[0] {
		differs := slices.ContainsFunc(parts, func(p []string) bool { return p[k] != parts[0][k] })
		for i, s := range short {
			switch cut := strings.HasSuffix(s, "…"); {
			case differs && cut:
				short[i] += strings.TrimLeft(parts[i][k], separators)
			case differs:
				short[i] += parts[i][k]
			case !cut:
				short[i] += "…"
			}
		}
	}
	if slices.Contains(short, "…") {
		return names
	}
	return short
}

// nameParts cuts a name before each separator, so that the parts joined are the name.
var nameParts = lazyre.New(`(?s).[^` + separators + `]*`)

// TightRange writes node[0010-0019] as node0010–19; other lists stay as they are.
func TightRange(list string) string {
	m := oneRange.FindStringSubmatch(list)
	if m == nil {
		return list
	}
	low, high, same := m[2], m[3], 0
	for same < len(high)-2 && len(low) == len(high) && low[same] == high[same] {
		same++
	}
	return m[1] + low + "–" + high[same:]
}

var oneRange = lazyre.New(`^([^\[]*)\[([0-9]+)-([0-9]+)\]$`)

// ShortCores writes a cpulist in few characters: every second core of a socket as
// 0-62:2, which taskset reads too, and a list that is still longer than width cut.
func ShortCores(list string, width int) string {
	if len(list) <= width/2 {
		return list
	}
	parts := strings.Split(list, ",")
	if step, ok := stride(parts); ok && len(parts) > 2 {
		list = fmt.Sprintf("%s-%s:%d", parts[0], parts[len(parts)-1], step)
	}
	if len(list) > width {
		list = strings.TrimRight(list[:max(1, width-1)], ",-") + "…"
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
