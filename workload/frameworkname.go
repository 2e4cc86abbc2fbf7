package workload

import (
	"slices"
	"strings"
	"sync"
)

// spelling is one way to write a framework's name, as words.
type spelling struct {
	words []string
	name  string
}

// spellings are all of them, and what every framework is built on.
var spellings = sync.OnceValues(func() (list []spelling, on map[string][]string) {
	on = map[string][]string{}
	for i := range frameworks() {
		f := &frameworks()[i]
		for _, text := range append([]string{f.Name}, f.Also...) {
			list = append(list, spelling{frameworkWords(text), f.Name})
		}
		on[f.Name] = append(on[f.Name], f.On...)
	}
	return list, on
})

// frameworkWords cuts a name at what is neither letter nor digit.
func frameworkWords(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// mostWords bounds the name of a framework.
const mostWords = 40

// frameworkIn is the framework that a text names; "" where it names none. Of several that which is built on the others is meant: NeMo of
// "NeMo / Megatron-Core", Megatron-DeepSpeed of "DeepSpeed with Megatron-LM"; else the one that is named first.
func frameworkIn(text string) string {
	words := frameworkWords(text)
	if len(words) > mostWords {
		return ""
	}
	found := namedIn(words)
	if len(found) < 2 {
		return strings.Join(found, "")
	}
	_, on := spellings()
	above := slices.DeleteFunc(slices.Clone(found), func(name string) bool {
		return slices.ContainsFunc(found, func(other string) bool { return slices.Contains(on[other], name) })
	})
	if len(above) == 1 {
		return above[0]
	}
	for i := range frameworks() { // one that is built on all of them
		name := frameworks()[i].Name
		if !slices.ContainsFunc(above, func(x string) bool { return !slices.Contains(on[name], x) }) {
			return name
		}
	}
	return append(above, found...)[0]
}

// namedIn are the frameworks whose names stand among words, in their order; a name inside a longer one does not count.
func namedIn(words []string) []string {
	list, _ := spellings()
	var found []string
	for at := 0; at < len(words); {
		longest, name := 1, ""
		for i := range list {
			if n := len(list[i].words); at+n <= len(words) && (n > longest || name == "") && slices.Equal(list[i].words, words[at:at+n]) {
				longest, name = n, list[i].name
			}
		}
		if name != "" && !slices.Contains(found, name) {
			found = append(found, name)
		}
		at += longest
	}
	return found
}

// frameworkRows are the releases of a framework, the oldest first.
func frameworkRows(name string) []*Framework {
	var rows []*Framework
	for i := range frameworks() {
		if frameworks()[i].Name == name {
			rows = append(rows, &frameworks()[i])
		}
	}
	return rows
}
