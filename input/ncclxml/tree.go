package ncclxml

import (
	"io"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/tags"
)

// Limits of one text. A rack of 72 GPUs has about 1,000 elements.
const (
	maxElements = 1 << 15
	maxDepth    = 64
	maxKept     = 32 << 20 // bytes of attributes and what holds them
	maxSystems  = 4096
)

// element is one element of the format with the attributes that are used.
type element struct {
	name  string
	line  int
	attrs []tags.Attr
	subs  []*element
}

// get returns an attribute, or "" when it is absent.
func (e *element) get(key string) string {
	for _, a := range e.attrs {
		if a.Key == key {
			return a.Value
		}
	}
	return ""
}

// all lists the elements below e of one name, children only.
func (e *element) all(name string) []*element {
	var list []*element
	for _, s := range e.subs {
		if s.name == name {
			list = append(list, s)
		}
	}
	return list
}

// inside lists where each element may stand; NCCL ignores it elsewhere.
var inside = map[string][]string{
	"cpu":     {"system"},
	"pci":     {"cpu", "pci"},
	"nic":     {"cpu", "pci"},
	"gpu":     {"pci"},
	"pcilink": {"pci"},
	"nvlink":  {"gpu"},
	"xgmi":    {"gpu"},
	"c2c":     {"gpu"},
	"net":     {"nic"},
}

// used are the attributes that are kept.
var used = map[string]bool{
	"version": true, "name": true,
	"numaid": true, "host_hash": true, "affinity": true, "arch": true, "vendor": true, "familyid": true, "modelid": true,
	"busid": true, "class": true, "device": true, "subsystem_vendor": true, "subsystem_device": true,
	"link_speed": true, "link_width": true,
	"dev": true, "sm": true, "rank": true, "gdr": true, "gcn": true,
	"target": true, "count": true, "tclass": true, "bw": true,
	"speed": true, "port": true, "guid": true, "coll": true, "latency": true,
}

// document is what a text holds: systems, each with the note before or in it.
type document struct {
	systems []*element
	notes   map[*element]*note
}

// parser turns tags into elements.
type parser struct {
	f     *cluster.Fragment
	doc   document
	stack []frame
	note  *note // read before its system
	count int
	kept  int
	full  bool
	odd   map[string]bool // names of elements already warned about
}

// frame is an element that is open. One without el is skipped with all in it.
type frame struct {
	name string
	el   *element
}

func (p *parser) run(r io.Reader) error {
	s := tags.NewScanner(r)
	p.odd = map[string]bool{}
	p.doc.notes = map[*element]*note{}
	for {
		t, err := s.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fault(p.f.Source, s.Line(), "%v", err)
		}
		if err := p.takeToken(&t); err != nil {
			return err
		}
		if p.full {
			return nil
		}
	}
	if len(p.stack) > 0 {
		p.cut(s.Line())
	}
	return nil
}

// takeToken handles one token.
func (p *parser) takeToken(t *tags.Token) error {
	switch t.Kind {
	case tags.Decl:
		if strings.EqualFold(t.Name, "ENTITY") {
			return fault(p.f.Source, t.Line, "the text declares XML entities; NCCL topology files have none: remove the DOCTYPE")
		}
	case tags.Comment:
		p.comment(t)
	case tags.Broken:
		if len(p.stack) > 0 && inside[t.Name] != nil {
			p.f.Warnf(t.Line, "", "<%s is not a whole tag; left out", t.Name)
		}
	case tags.Close:
		p.close(t)
	default:
		return p.open(t)
	}
	return nil
}

func (p *parser) comment(t *tags.Token) {
	n := parseNote(t.Text)
	if n == nil {
		return
	}
	if len(p.stack) == 0 {
		p.note = n
		return
	}
	p.doc.notes[p.stack[0].el] = n
}

func (p *parser) open(t *tags.Token) error {
	if t.Name == "system" {
		return p.system(t)
	}
	// mpirun writes [1,0]<stdout>: before a line.
	if len(p.stack) == 0 || t.Name == "stdout" || t.Name == "stderr" {
		return nil
	}
	top := p.stack[len(p.stack)-1]
	var el *element
	switch {
	case top.el == nil:
	case !slices.Contains(inside[t.Name], top.name):
		p.ignored(t, top.name)
	default:
		el = p.element(t)
		if el != nil {
			top.el.subs = append(top.el.subs, el)
		}
	}
	if t.Kind == tags.Open {
		if len(p.stack) == maxDepth {
			return fault(p.f.Source, t.Line, "elements are nested more than %d deep; a PCI tree never is: not a topology file",
				maxDepth)
		}
		p.stack = append(p.stack, frame{t.Name, el})
	}
	return nil
}

// ignored warns about an element that NCCL would ignore too, once per name.
func (p *parser) ignored(t *tags.Token, parent string) {
	if p.odd[t.Name] {
		return
	}
	p.odd[t.Name] = true
	p.f.Warnf(t.Line, "", "<%s> inside <%s> is not part of the format; left out with all in it, as NCCL does", t.Name,
		parent)
}

func (p *parser) system(t *tags.Token) error {
	if len(p.stack) > 0 {
		p.cut(t.Line)
	}
	if len(p.doc.systems) == maxSystems {
		return fault(p.f.Source, t.Line, "more than %d <system> elements; split the text", maxSystems)
	}
	el := p.element(t)
	if el == nil {
		return nil
	}
	p.doc.systems = append(p.doc.systems, el)
	if p.note != nil {
		p.doc.notes[el] = p.note
		p.note = nil
	}
	if t.Kind == tags.Open {
		p.stack = append(p.stack[:0], frame{"system", el})
	}
	return nil
}

// element keeps a tag, or returns nil when the text is beyond its limits.
func (p *parser) element(t *tags.Token) *element {
	e := &element{name: t.Name, line: t.Line}
	for _, a := range t.Attrs {
		if used[a.Key] {
			p.kept += 64 + len(a.Value)
		}
	}
	if p.count++; p.count > maxElements || p.kept > maxKept {
		p.full = true
		p.f.Warnf(t.Line, "", "more than %d elements or %d MiB of attributes; the rest is left out", maxElements, maxKept>>20)
		return nil
	}
	for _, a := range t.Attrs {
		if used[a.Key] {
			e.attrs = append(e.attrs, a)
		}
	}
	return e
}

// close ends the innermost open element of that name. Those inside it were
// never closed; that is reported, and they end too.
func (p *parser) close(t *tags.Token) {
	for i := len(p.stack) - 1; i >= 0; i-- {
		if p.stack[i].name != t.Name {
			continue
		}
		if i < len(p.stack)-1 {
			p.f.Warnf(t.Line, "", "</%s> while <%s> is open; taken as closed", t.Name, p.stack[len(p.stack)-1].name)
		}
		p.stack = p.stack[:i]
		return
	}
}

// cut reports a dump that ends before its end.
func (p *parser) cut(line int) {
	p.f.Warnf(line, "", "the topology ends inside <%s>: cut off; read as far as it goes", p.stack[len(p.stack)-1].name)
	p.stack = p.stack[:0]
}
