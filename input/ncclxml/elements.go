package ncclxml

import (
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/input/internal/tags"
)

// newElement makes an element with attributes, a key and a value by turns; what is not known is left out.
func newElement(name string, attrs ...string) *element {
	e := &element{Token: &tags.Token{Name: name}}
	for i := 0; i < len(attrs); i += 2 {
		if value := clean(attrs[i+1]); value != "" {
			e.Attrs = append(e.Attrs, tags.Attr{Key: attrs[i], Value: value})
		}
	}
	return e
}

// addFilled adds an element that holds others.
func addFilled(e, sub *element) {
	if len(sub.Kids) > 0 {
		e.Kids = append(e.Kids, sub)
	}
}

// known writes a number; 0 is unknown.
func known(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// hex writes a PCI id.
func hex(id string) string {
	if id == "" {
		return ""
	}
	return "0x" + id
}

// size counts the elements from e down.
func size(e *element) int {
	n := 1
	for _, k := range e.Kids {
		n += size(k)
	}
	return n
}

// print writes an element as NCCL's dump does: one space between attributes,
// double quotes, two spaces of indentation a level.
func print(out *strings.Builder, e *element, depth int) {
	indent := strings.Repeat("  ", depth)
	out.WriteString(indent + "<" + e.Name)
	for _, a := range e.Attrs {
		fmt.Fprintf(out, " %s=\"%s\"", a.Key, a.Value)
	}
	if len(e.Kids) == 0 {
		out.WriteString("/>\n")
		return
	}
	out.WriteString(">\n")
	for _, s := range e.Kids {
		print(out, s, depth+1)
	}
	out.WriteString(indent + "</" + e.Name + ">\n")
}

// clean keeps a value inside its quotes and NCCL's length. NCCL knows no
// entities, so what would need one is dropped.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune(`"'<>&`, r) {
			return -1
		}
		return r
	}, s)
	return s[:min(len(s), maxValue)]
}
