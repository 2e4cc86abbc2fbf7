// Package natural orders names as people count: node2 before node10, mlx5_9 before mlx5_10.
package natural

import (
	"cmp"
	"slices"
	"strings"
)

// Compare orders two names. Names that differ are never equal.
func Compare(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		p, q := digits(x), digits(y)
		switch {
		case p > 0 && q > 0:
			m, n := strings.TrimLeft(x[:p], "0"), strings.TrimLeft(y[:q], "0")
			if c := cmp.Or(cmp.Compare(len(m), len(n)), strings.Compare(m, n)); c != 0 {
				return c
			}
			x, y = x[p:], y[q:]
		case x[0] != y[0]:
			return cmp.Compare(x[0], y[0])
		default:
			x, y = x[1:], y[1:]
		}
	}
	// Names that differ in leading zeros only still have an order.
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(a, b))
}

// digits counts the digits at the front of s.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// Sort sorts names in place and returns them.
func Sort(names []string) []string {
	slices.SortFunc(names, Compare)
	return names
}
