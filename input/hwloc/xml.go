package hwloc

import (
	"bytes"
	"fmt"
	"html"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"busbar.dev/input/internal/tags"
	"busbar.dev/internal/lines"
)

// Limits on a text. Objects that are counted only (cores, caches) are not limited.
const (
	maxBytes   = 256 << 20 // lstopo writes under 3 MB for a machine of a thousand cores
	maxOpen    = 1024      // documents that are open at once, in alternating lines
	maxObjects = 1 << 16   // of the documents that are open
	maxInfos   = 1 << 17   // of one document
	maxDepth   = 512
	maxMatrix  = 256 // objects of a distance matrix
	maxTables  = 64
)

// Match reports whether the text holds an hwloc XML document.
func Match(data []byte) bool {
	for {
		_, after, found := bytes.Cut(data, []byte("<topology"))
		if !found {
			return false
		}
		data = after
		// libvirt has an element of this name too; only hwloc's begins with the
		// machine as an object.
		head := data[:min(len(data), 4096)]
		k := bytes.Index(head, []byte("<object"))
		if k >= 0 && bytes.Contains(head[k:], []byte("type=\"")) && !bytes.Contains(head[:k], []byte("</")) {
			return true
		}
	}
}

// object is one element of hwloc's tree that is kept.
type object struct {
	kind   string // Package also for hwloc 1's Socket
	line   int
	attr   tags.Attrs
	info   tags.Attrs
	parent *object
	kids   []*object
}

// matrix is a table of distances: row-major values over the objects named.
type matrix struct {
	name   string
	index  []string // "OSDev:332", or a bare number
	of     string   // type of the objects of bare numbers
	values []uint64
	n      int
}

// topology is one document.
type topology struct {
	version  string
	objects  []*object
	byID     map[string]*object // by "type:gp_index"
	info     tags.Attrs         // of the document and its machine
	matrices []*matrix
	counts   map[string]int // of every object, by type as written
	last     int            // line
	whole    bool           // its end is there
	err      error          // why what follows was not read
}

// kept are the kinds of objects that are kept; others are counted only.
var kept = []string{"Machine", "System", "Group", "Package", "Die", "NUMANode", "Bridge", "PCIDev", "OSDev"}

// parser walks through a document's elements.
type parser struct {
	top   *topology
	open  []element
	infos int
	table *matrix
}

// element is an open one: an object that is kept, else with the nearest kept one around it.
type element struct {
	name string
	o    *object
	own  bool
}

// find calls take for every document of a text, those that broke off last. Lines of several may alternate: what a
// launcher puts in front of a line tells whose it is.
func find(name, text string, take func(*topology)) error {
	if strings.Contains(text, "<!ENTITY") {
		return fmt.Errorf("%s: the text declares XML entities; lstopo writes none: remove the DOCTYPE", name)
	}
	open := map[string]*parser{}
	objects, num := 0, 0
	end := func(mark string, whole bool) {
		top := open[mark].top
		top.whole = whole
		objects -= len(top.objects)
		delete(open, mark)
		take(top)
	}
	for line := range strings.Lines(text) {
		num++
		if !strings.Contains(line, "<") {
			continue
		}
		line = lines.StripANSI(line)
		bare := lines.Bare(line)
		mark := line[:len(line)-len(bare)]
		for t := range tags.All(bare) {
			p, isTop := open[mark], t.Name == "topology"
			if p != nil && isTop {
				end(mark, t.Kind == tags.Close)
				p = nil
			}
			switch {
			case isTop && t.Kind == tags.Open && len(open) >= maxOpen:
				return fmt.Errorf("%s:%d: %d topologies are open at once; expected each to end", name, num, len(open))
			case isTop && t.Kind == tags.Open:
				open[strings.Clone(mark)] = newParser(t.Get("version"))
			case p == nil || t.Kind == tags.Decl:
			case len(p.top.counts) == 0 && (t.Name != "object" || t.Kind != tags.Open && t.Kind != tags.Empty):
				delete(open, mark) // another tool's element of this name
			default:
				p.top.last = num
				before := len(p.top.objects)
				p.element(t, num, objects)
				objects += len(p.top.objects) - before
			}
		}
	}
	for _, mark := range slices.Sorted(maps.Keys(open)) {
		if len(open[mark].top.counts) > 0 {
			end(mark, false)
		}
	}
	return nil
}

func newParser(version string) *parser {
	return &parser{
		top:  &topology{version: version, byID: map[string]*object{}, counts: map[string]int{}},
		open: []element{{name: "topology"}},
	}
}

// element takes a tag, unless one before it could not be taken. objects is how many all open documents have.
func (p *parser) element(t *tags.Token, line, objects int) {
	if p.top.err != nil {
		return
	}
	if err := p.tag(t, line, objects); err != nil {
		p.top.err = fmt.Errorf("line %d: %w", line, err)
	}
}

func (p *parser) tag(t *tags.Token, line, objects int) error {
	last := len(p.open) - 1
	switch t.Kind {
	case tags.Broken:
		return fmt.Errorf("<%.40s is not a whole tag", t.Name)
	case tags.Close:
		if p.open[last].name != t.Name {
			return fmt.Errorf("</%.40s> while <%s> is open", t.Name, p.open[last].name)
		}
		p.open = p.open[:last]
		if p.table != nil && strings.HasPrefix(t.Name, "distances2") {
			p.endMatrix()
		}
		return nil
	}
	el := element{name: t.Name, o: p.open[last].o}
	switch t.Name {
	case "object":
		var err error
		if el.o, el.own, err = p.object(t, line, objects); err != nil {
			return err
		}
	case "info":
		if p.infos++; p.infos > maxInfos {
			return fmt.Errorf("more than %d info elements", maxInfos)
		}
		p.info(p.open[last], tags.Attr{Key: t.Get("name"), Value: printable(t.Get("value"))})
	case "distances2", "distances2hetero":
		n, err := strconv.Atoi(t.Get("nbobjs"))
		if err == nil && n >= 1 && n <= maxMatrix {
			p.table = &matrix{name: t.Get("name"), of: t.Get("type"), n: n}
		}
	case "indexes", "u64values":
		if err := p.values(t); err != nil {
			return err
		}
	}
	if t.Kind == tags.Open {
		p.open = append(p.open, el)
	}
	if len(p.open) > maxDepth {
		return fmt.Errorf("elements nested deeper than %d", maxDepth)
	}
	return nil
}

// object adds an object, or gives the one around those that are counted only.
func (p *parser) object(t *tags.Token, line, objects int) (o *object, own bool, err error) {
	kind := t.Get("type")
	if _, known := p.top.counts[kind]; known || len(p.top.counts) < 64 {
		p.top.counts[kind]++
	}
	if kind == "Socket" {
		kind = "Package"
	}
	parent := p.open[len(p.open)-1].o
	if !slices.Contains(kept, kind) {
		return parent, false, nil
	}
	if objects >= maxObjects {
		return nil, false, fmt.Errorf("more than %d objects besides cores and caches", maxObjects)
	}
	o = &object{kind: kind, line: line, parent: parent, attr: t.Attrs}
	if parent != nil {
		parent.kids = append(parent.kids, o)
	}
	p.top.objects = append(p.top.objects, o)
	if gp := t.Get("gp_index"); gp != "" {
		p.top.byID[kind+":"+gp] = o
	}
	return o, true, nil
}

// info keeps a name and value with the object it is in; that of the machine and,
// since hwloc 3, of the document itself, belongs to the whole.
func (p *parser) info(in element, a tags.Attr) {
	switch {
	case in.name == "topology", in.own && (in.o.kind == "Machine" || in.o.kind == "System"):
		p.top.info = append(p.top.info, a)
	case in.own:
		in.o.info = append(in.o.info, a)
	}
}

// printable is a value without what firmware strings contain and XML forbids.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return '?'
		}
		return r
	}, html.UnescapeString(s))
}

// values takes the contents of a distance matrix.
func (p *parser) values(t *tags.Token) error {
	if p.table == nil {
		return nil
	}
	for w := range strings.FieldsSeq(t.Text) {
		if t.Name == "indexes" && len(p.table.index) < p.table.n {
			p.table.index = append(p.table.index, strings.Clone(w))
		}
		if t.Name == "indexes" || len(p.table.values) >= p.table.n*p.table.n {
			continue
		}
		v, err := strconv.ParseUint(w, 10, 64)
		if err != nil {
			return fmt.Errorf("distance %.20q; expected a whole number", w)
		}
		p.table.values = append(p.table.values, v)
	}
	return nil
}

// endMatrix keeps a table that is complete.
func (p *parser) endMatrix() {
	if m := p.table; len(p.top.matrices) < maxTables && len(m.index) == m.n && len(m.values) == m.n*m.n {
		p.top.matrices = append(p.top.matrices, m)
	}
	p.table = nil
}
