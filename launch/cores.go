package launch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// mostCores is more than Linux is built for.
const mostCores = 1 << 13

// ParseCores reads a kernel's list of processors: "0-15,64-79". The list is sorted and without
// doubles; an empty text is an empty list.
func ParseCores(text string) ([]int, error) {
	var list []int
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for _, part := range strings.Split(text, ",") {
		a, b, ranged := strings.Cut(strings.TrimSpace(part), "-")
		from, err := strconv.Atoi(a)
		to := from
		if err == nil && ranged {
			to, err = strconv.Atoi(b)
		}
		if err != nil || from < 0 || to < from || to >= mostCores {
			return nil, fmt.Errorf("%q; expected processors below %d, such as 0-15,64-79", part, mostCores)
		}
		for c := from; c <= to; c++ {
			list = append(list, c)
		}
		if len(list) > 4*mostCores {
			return nil, fmt.Errorf("more than %d processors", mostCores)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// FormatCores writes a sorted list as ParseCores reads it.
func FormatCores(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		k := i
		for k+1 < len(list) && list[k+1] == list[k]+1 {
			k++
		}
		part := strconv.Itoa(list[i])
		if k > i {
			part += "-" + strconv.Itoa(list[k])
		}
		parts = append(parts, part)
		i = k + 1
	}
	return strings.Join(parts, ",")
}
