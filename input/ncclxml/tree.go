package ncclxml

import (
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/tags"
)

// Limits of one text. A rack of 72 GPUs has about 1,000 elements.
const (
	maxBytes    = 256 << 20
	maxElements = 1 << 13
	maxDepth    = 64
	maxKept     = 32 << 20 // bytes of attributes and what holds them
	maxSystems  = 4096
)

// element is one element of the format.
type element struct {
	tags.Token
	subs []*element
}

// all lists the elements below e of one name, children only.
func (e *element) all(name string) []*element {
	var list []*element
	for _, s := range e.subs {
		if s.Name == name {
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

// parser turns tags into elements.
type parser struct {
	f       *cluster.Fragment
	systems []*element
	stack   []frame
	count   int
	kept    int
	full    bool
	odd     map[string]bool // names of elements already warned about
}

// frame is an element that is open. One without el is skipped with all in it.
type frame struct {
	name string
	el   *element
}

func (p *parser) run(text string) error {
	p.odd = map[string]bool{}
	for t := range tags.All(text) {
		if err := p.takeToken(t); err != nil || p.full {
			return err
		}
	}
	if len(p.stack) > 0 {
		p.cut(1 + strings.Count(text, "\n"))
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
		if el = p.element(t); el != nil {
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
	if len(p.systems) == maxSystems {
		return fault(p.f.Source, t.Line, "more than %d <system> elements; split the text", maxSystems)
	}
	el := p.element(t)
	if el == nil {
		return nil
	}
	p.systems = append(p.systems, el)
	if t.Kind == tags.Open {
		p.stack = append(p.stack[:0], frame{"system", el})
	}
	return nil
}

// element keeps a tag, or returns nil when the text is beyond its limits.
func (p *parser) element(t *tags.Token) *element {
	for _, a := range t.Attrs {
		p.kept += 64 + len(a.Value)
	}
	if p.count++; p.count > maxElements || p.kept > maxKept {
		p.full = true
		p.f.Warnf(t.Line, "", "more than %d elements or %d MiB of attributes; the rest is left out", maxElements, maxKept>>20)
		return nil
	}
	return &element{Token: *t}
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
