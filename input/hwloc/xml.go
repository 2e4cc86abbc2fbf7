package hwloc

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Limits on one document. Objects that are counted only (cores, caches) are not
// limited.
const (
	maxObjects = 1 << 16
	maxInfos   = 1 << 17
	maxDepth   = 512
	maxMatrix  = 256 // objects of a distance matrix
	maxTables  = 64
)

// object is one element of hwloc's tree that is kept.
type object struct {
	kind   string // Package also for hwloc 1's Socket
	line   int
	attr   pairs
	info   pairs
	parent *object
	kids   []*object
}

// pairs are names and values; few enough to look through.
type pairs []pair

type pair struct{ name, value string }

func (p pairs) get(name string) string {
	for _, v := range p {
		if v.name == name {
			return v.value
		}
	}
	return ""
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
	info     pairs              // of the document and its machine
	matrices []*matrix
	counts   map[string]int // of every object, by type as written
}

// kept are the attributes that are read, by kind of object; kinds that are not
// listed are counted only.
var kept = map[string][]string{
	"Machine":  {"cpuset", "nodeset", "local_memory"},
	"System":   {"cpuset", "nodeset"},
	"Group":    {"cpuset", "nodeset"},
	"Package":  {"os_index", "cpuset", "nodeset", "gp_index"},
	"Die":      {"cpuset", "nodeset"},
	"NUMANode": {"os_index", "cpuset", "nodeset", "local_memory", "gp_index"},
	"Bridge":   {"bridge_type", "bridge_pci", "pci_busid", "pci_type", "pci_link_speed", "gp_index"},
	"PCIDev":   {"pci_busid", "pci_type", "pci_link_speed", "name", "subtype", "gp_index"},
	"OSDev":    {"name", "subtype", "osdev_type", "gp_index"},
}

// parser walks through a document's elements.
type parser struct {
	doc   *document
	dec   *xml.Decoder
	top   *topology
	stack []frame  // open objects
	open  []string // open elements
	infos int
	table *matrix
}

// frame is an open object: itself, or the nearest kept one around it.
type frame struct {
	o   *object
	own bool
}

// parse reads a document. With an error it also returns what came before it.
func parse(doc *document) (*topology, error) {
	p := &parser{
		doc: doc,
		dec: xml.NewDecoder(bytes.NewReader(doc.text)),
		top: &topology{byID: map[string]*object{}, counts: map[string]int{}},
	}
	for {
		tok, err := p.dec.Token()
		if err == io.EOF {
			return p.top, nil
		}
		if err == nil {
			err = p.token(tok)
		}
		if err != nil {
			return p.top, fmt.Errorf("line %d: %w", p.line(), plain(err))
		}
	}
}

// plain drops the decoder's own line number, which counts within the document.
func plain(err error) error {
	var syntax *xml.SyntaxError
	if errors.As(err, &syntax) {
		return errors.New(syntax.Msg)
	}
	return err
}

func (p *parser) line() int {
	n, _ := p.dec.InputPos()
	return p.doc.line(n)
}

func (p *parser) token(tok xml.Token) error {
	switch t := tok.(type) {
	case xml.StartElement:
		if len(p.open) >= maxDepth {
			return fmt.Errorf("elements nested deeper than %d", maxDepth)
		}
		p.open = append(p.open, t.Name.Local)
		return p.start(t)
	case xml.EndElement:
		if len(p.open) == 0 {
			return fmt.Errorf("</%s> without a beginning", t.Name.Local)
		}
		p.open = p.open[:len(p.open)-1]
		switch t.Name.Local {
		case "object":
			p.stack = p.stack[:max(0, len(p.stack)-1)]
		case "distances2", "distances2hetero":
			p.endMatrix()
		}
	case xml.CharData:
		return p.text(t)
	}
	return nil
}

func (p *parser) start(t xml.StartElement) error {
	switch t.Name.Local {
	case "topology":
		p.top.version = attr(t, "version")
	case "object":
		return p.object(t)
	case "info":
		return p.info(attr(t, "name"), attr(t, "value"))
	case "distances2", "distances2hetero":
		n, err := strconv.Atoi(attr(t, "nbobjs"))
		if err != nil || n < 1 || n > maxMatrix {
			n = 0 // not a table of ours; its values are passed over
		}
		p.table = &matrix{name: attr(t, "name"), of: attr(t, "type"), n: n}
	}
	return nil
}

func (p *parser) object(t xml.StartElement) error {
	kind := attr(t, "type")
	if _, known := p.top.counts[kind]; known || len(p.top.counts) < 64 {
		p.top.counts[kind]++
	}
	if kind == "Socket" {
		kind = "Package"
	}
	var parent *object
	if len(p.stack) > 0 {
		parent = p.stack[len(p.stack)-1].o
	}
	want, ok := kept[kind]
	if !ok {
		p.stack = append(p.stack, frame{parent, false})
		return nil
	}
	if len(p.top.objects) >= maxObjects {
		return fmt.Errorf("more than %d objects besides cores and caches", maxObjects)
	}
	o := &object{kind: kind, line: p.line(), parent: parent}
	for _, a := range t.Attr {
		for _, w := range want {
			if a.Name.Local == w && o.attr.get(w) == "" {
				o.attr = append(o.attr, pair{w, a.Value})
			}
		}
	}
	if parent != nil {
		parent.kids = append(parent.kids, o)
	}
	p.top.objects = append(p.top.objects, o)
	p.stack = append(p.stack, frame{o, true})
	if gp := o.attr.get("gp_index"); gp != "" {
		p.top.byID[kind+":"+gp] = o
	}
	return nil
}

// info keeps a name and value with the object it is in; that of the machine and,
// since hwloc 3, of the document itself, belongs to the whole.
func (p *parser) info(name, value string) error {
	if p.infos++; p.infos > maxInfos {
		return fmt.Errorf("more than %d info elements", maxInfos)
	}
	if len(p.open) < 2 {
		return nil
	}
	around := p.open[len(p.open)-2]
	if around == "topology" {
		p.top.info = append(p.top.info, pair{name, value})
	}
	if around != "object" || len(p.stack) == 0 {
		return nil
	}
	switch f := p.stack[len(p.stack)-1]; {
	case !f.own:
	case f.o.kind == "Machine" || f.o.kind == "System":
		p.top.info = append(p.top.info, pair{name, value})
	default:
		f.o.info = append(f.o.info, pair{name, value})
	}
	return nil
}

// text takes the contents of a distance matrix.
func (p *parser) text(data []byte) error {
	if p.table == nil || p.table.n == 0 || len(p.open) == 0 {
		return nil
	}
	switch p.open[len(p.open)-1] {
	case "indexes":
		for w := range strings.FieldsSeq(string(data)) {
			if len(p.table.index) < p.table.n {
				p.table.index = append(p.table.index, w)
			}
		}
	case "u64values":
		for w := range strings.FieldsSeq(string(data)) {
			v, err := strconv.ParseUint(w, 10, 64)
			if err != nil {
				return fmt.Errorf("distance %.20q; expected a whole number", w)
			}
			if len(p.table.values) < p.table.n*p.table.n {
				p.table.values = append(p.table.values, v)
			}
		}
	}
	return nil
}

// endMatrix keeps a table that is complete.
func (p *parser) endMatrix() {
	if m := p.table; m != nil && m.n > 0 && len(p.top.matrices) < maxTables && len(m.index) == m.n &&
		len(m.values) == m.n*m.n {
		p.top.matrices = append(p.top.matrices, m)
	}
	p.table = nil
}

func attr(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
