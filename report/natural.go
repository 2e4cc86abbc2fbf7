package report

import (
	"cmp"
	"slices"
	"strings"
)

// compareNatural orders names as people count: node2 before node10.
func compareNatural(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		p, q := leadingDigits(x), leadingDigits(y)
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

// leadingDigits counts the digits at the front of s.
func leadingDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// sortNatural sorts names in place and returns them.
func sortNatural(names []string) []string {
	slices.SortStableFunc(names, compareNatural)
	return names
}
