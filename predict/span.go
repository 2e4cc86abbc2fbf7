package predict

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/unit"
)

// Span names some of the sizes asked for: neighbours among them as a range.
func Span(asked, some []unit.Bytes) string {
	var runs []string
	for i := 0; i < len(some); {
		at := slices.Index(asked, some[i])
		j := i + 1
		for j < len(some) && at+j-i < len(asked) && asked[at+j-i] == some[j] {
			j++
		}
		text := some[i].String()
		if j > i+1 {
			text += "–" + some[j-1].String()
		}
		runs = append(runs, text)
		i = j
	}
	const most = 4
	if len(runs) > most {
		return fmt.Sprintf("%s and %d more ranges of sizes", strings.Join(runs[:most], ", "), len(runs)-most)
	}
	return and(runs)
}
