// Package num reads numbers that have bounds.
package num

import (
	"strconv"
	"strings"
)

// Int is a whole number; of any other text it is 0, or as near to a number that is too large as can be.
func Int(s string) int {
	n, _ := strconv.Atoi(strings.TrimSpace(s))
	return n
}

// Or reads a whole number from low to high; of any other text it gives other.
func Or(s string, low, high, other int) int {
	if n, err := strconv.Atoi(strings.TrimSpace(s)); err == nil && n >= low && n <= high {
		return n
	}
	return other
}
