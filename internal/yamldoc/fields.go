package yamldoc

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"busbar.dev/internal/words"
)

// field is a field of a struct that is read and written.
type field struct {
	name      string
	index     []int
	omitEmpty bool
}

// structs remembers the fields of the struct types that one call meets.
type structs map[reflect.Type][]field

// fields lists the exported fields of a struct. The tag yaml:"name,omitempty"
// names them; without one it is the lower-case name, and "-" leaves a field out.
// Fields of an embedded struct are the outer one's, but those of a name that the outer one has itself.
func (s structs) fields(t reflect.Type) []field {
	if f, ok := s[t]; ok {
		return f
	}
	var list []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if f.Anonymous && name == "" {
			for _, x := range s.fields(f.Type) {
				list = append(list, field{x.name, append([]int{i}, x.index...), x.omitEmpty})
			}
			continue
		}
		list = append(list, field{cmp.Or(name, strings.ToLower(f.Name)), []int{i}, opts == "omitempty"})
	}
	all := list
	list = slices.DeleteFunc(slices.Clone(all), func(x field) bool {
		return slices.ContainsFunc(all, func(y field) bool { return y.name == x.name && len(y.index) < len(x.index) })
	})
	s[t] = list
	return list
}

func names(fields []field) []string {
	s := make([]string, len(fields))
	for i, f := range fields {
		s[i] = f.name
	}
	return s
}

// nearest picks the known words that somebody who wrote word may have meant.
func nearest(word string, known []string) []string {
	word = strings.ToLower(word)
	best, at := []string(nil), 1+len(word)/4
	for _, k := range known {
		if len(word) > len(k)+at { // a key may have millions of letters
			continue
		}
		d := words.Distance(word, strings.ToLower(k))
		if d < at {
			best, at = nil, d
		}
		if d == at && d < len(k) {
			best = append(best, k)
		}
	}
	return best
}
