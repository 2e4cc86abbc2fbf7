// Package words writes numbers as sentences have them.
package words

import (
	"strconv"
	"strings"
)

// Plural is a number of things: 1 node, 2 nodes, 3 switches.
func Plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if strings.HasSuffix(one, "ch") {
		one += "e"
	}
	return strconv.Itoa(n) + " " + one + "s"
}

// Thousands is a whole number with commas: 336,226,108.
func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
