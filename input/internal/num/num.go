// Package num reads numbers that have bounds.
package num

import (
	"strconv"
	"strings"
)

// Or reads a whole number from low to high; of any other text it gives other.
func Or(s string, low, high, other int) int {
	if n, err := strconv.Atoi(strings.TrimSpace(s)); err == nil && n >= low && n <= high {
		return n
	}
	return other
}
