package yamldoc

import (
	"reflect"
	"slices"
	"strings"
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
		if name == "" {
			name = strings.ToLower(f.Name)
		}
		list = append(list, field{name, []int{i}, opts == "omitempty"})
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
		d := distance(word, strings.ToLower(k), at)
		if d < at {
			best, at = nil, d
		}
		if d == at && d < len(k) {
			best = append(best, k)
		}
	}
	return best
}

// distance is the number of letters to add, drop, change or swap with their
// neighbour to get from a to b; more than most where it is.
func distance(a, b string, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		two, one, row := rows[(i+1)%3], rows[(i+2)%3], rows[i%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			row[j] = min(one[j], row[j-1], one[j-1]) + 1
			if a[i-1] == b[j-1] {
				row[j] = one[j-1]
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], two[j-2]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}
