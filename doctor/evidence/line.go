package evidence

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbar.dev/internal/lines"
)

// torn reports a record of NCCL with something else on its line, such as a piece of
// a table.
func torn(text string) bool {
	head, _, _ := strings.Cut(text, infoMark)
	words := 0
	for range strings.FieldsSeq(head) {
		if words++; words > 4 {
			return true
		}
	}
	return false
}

// maxObject is the longest object on one line that is taken apart.
const maxObject = 1 << 16

// flatten gives the texts in an object that stands on one line, as structured logs
// and records of cases have them: every string is a line of its own, a string
// under a name in capitals is a setting, and numbers stand together. nil: the line is no object.
func flatten(text string) []string {
	t := strings.TrimSpace(text)
	if len(t) < 2 || t[0] != '{' || t[len(t)-1] != '}' || len(t) > maxObject {
		return nil
	}
	var v map[string]any
	if json.Unmarshal([]byte(t), &v) != nil {
		return nil
	}
	var numbers strings.Builder // those of a step of a training, on one line
	for _, k := range slices.Sorted(maps.Keys(v)) {
		if n, ok := v[k].(float64); ok {
			fmt.Fprintf(&numbers, "%s=%v ", k, n)
		}
	}
	return texts([]string{numbers.String()}, "", v, 0)
}

// texts lists the strings of a value, in the order of their names.
func texts(list []string, name string, v any, depth int) []string {
	if depth > 8 || len(list) > 1000 {
		return list
	}
	switch v := v.(type) {
	case string:
		if name != "" && strings.ToUpper(name) == name && strings.Contains(name, "_") {
			v = name + "=" + v
		}
		for _, l := range strings.Split(v, "\n") {
			list = append(list, lines.StripANSI(l))
		}
	case []any:
		for _, x := range v {
			list = texts(list, "", x, depth+1)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			list = texts(list, k, v[k], depth+1)
		}
	}
	return list
}

// unlabelled is a line without the rank that a launcher wrote in front.
func unlabelled(text string) string {
	t := strings.TrimSpace(lines.Bare(text))
	if _, rest, ok := strings.Cut(t, "]:"); ok && strings.HasPrefix(t, "[") {
		t = strings.TrimSpace(rest)
	}
	return t
}

// label reads the rank that launchers write in front of a line: "[rank3]:",
// "[default3]:", "[1,3]<stdout>:", "3: ".
func label(text string) int {
	t := strings.TrimLeft(text, " \t")
	if t == "" {
		return -1
	}
	if t[0] != '[' {
		n, rest, ok := strings.Cut(t, ": ")
		if ok && rest != "" && len(n) <= 7 {
			return Atoi(n)
		}
		return -1
	}
	inner, _, ok := strings.Cut(t[1:], "]")
	if !ok || len(inner) > 16 {
		return -1
	}
	for _, word := range []string{"rank", "default", "Rank "} {
		if n, ok := strings.CutPrefix(inner, word); ok {
			return Atoi(n)
		}
	}
	if _, n, ok := strings.Cut(inner, ","); ok {
		return Atoi(n)
	}
	return -1
}
