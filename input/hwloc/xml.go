package hwloc

import (
	"html"
	"strconv"
	"strings"
	"unicode"

	"busbar.dev/input/internal/num"
	"busbar.dev/input/internal/tags"
	"busbar.dev/internal/lazyre"
)

// Limits on a text.
const (
	maxBytes    = 256 << 20 // lstopo writes under 3 MB for a machine of a thousand cores
	maxElements = 1 << 18   // of a document
	maxMatrix   = 256       // objects of a distance matrix
)

// Match reports whether the text holds an hwloc XML document.
func Match(data []byte) bool { return machineFirst.Match(data) }

// machineFirst tells hwloc's element from libvirt's of this name: only hwloc's begins with the machine as an object.
var machineFirst = lazyre.New(`<topology(?:[^<]|<[^/])*?<object[^>]*type="`)

// object is one of hwloc's tree.
type object = tags.Element

// topology is one document.
type topology struct {
	version  string
	objects  []*object          // in the order of the text
	byID     map[string]*object // by "type:gp_index"
	about    []*object          // which infos of the whole are in: the document, since hwloc 3, and its machine
	matrices []matrix
}

// matrix is a table of distances: row-major values over the objects named.
type matrix struct {
	name   string
	index  []string // "OSDev:332", or a bare number
	of     string   // type of the objects of bare numbers
	values []uint64
}

// collect adds what is in an element.
func (top *topology) collect(e *object) {
	for _, k := range e.Kids {
		switch k.Name {
		case "object":
			kind := kindOf(k)
			top.objects = append(top.objects, k)
			top.byID[kind+":"+k.Get("gp_index")] = k
			if kind == "Machine" || kind == "System" {
				top.about = append(top.about, k)
			}
			top.collect(k)
		case "distances2", "distances2hetero":
			top.addMatrix(k)
		}
	}
}

// of lists the objects of a type.
func (top *topology) of(kind string) (list []*object) {
	for _, o := range top.objects {
		if kindOf(o) == kind {
			list = append(list, o)
		}
	}
	return list
}

// kindOf is an object's type, "" of what is none; hwloc 1 calls packages sockets.
func kindOf(o *object) string {
	if kind := o.Get("type"); kind != "Socket" && o.Name == "object" {
		return kind
	} else if kind == "Socket" {
		return "Package"
	}
	return ""
}

// info is what elements say under a name, the last first, without what firmware strings contain and XML forbids.
func info(name string, of ...*object) string {
	for _, o := range of {
		for _, i := range o.All("info") {
			if i.Get("name") == name {
				return strings.Map(func(r rune) rune {
					if !unicode.IsGraphic(r) {
						return '?'
					}
					return r
				}, html.UnescapeString(i.Get("value")))
			}
		}
	}
	return ""
}

// addMatrix keeps a table that is complete.
func (top *topology) addMatrix(e *object) {
	n := num.Int(e.Get("nbobjs"))
	m := matrix{name: e.Get("name"), of: e.Get("type")}
	for _, k := range e.Kids {
		for w := range strings.FieldsSeq(k.Text) {
			v, err := strconv.ParseUint(w, 10, 64)
			switch {
			case k.Name == "indexes" && len(m.index) < n:
				m.index = append(m.index, w)
			case k.Name == "u64values" && err == nil && len(m.values) < n*n:
				m.values = append(m.values, v)
			}
		}
	}
	if n > 0 && n <= maxMatrix && len(m.index) == n && len(m.values) == n*n {
		top.matrices = append(top.matrices, m)
	}
}
