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
	stack   []*element // those that are open
	count   int
	kept    int
	full    bool
	odd     map[string]bool // names of elements already warned about
}

func (p *parser) run(text string) error {
	p.odd = map[string]bool{}
	for t := range tags.All(text) {
		switch {
		case t.Kind == tags.Decl: // entities are not followed
		case t.Kind == tags.Broken:
			if len(p.stack) > 0 && inside[t.Name] != nil {
				p.f.Warnf(t.Line, "", "<%s is not a whole tag; left out", t.Name)
			}
		case t.Kind == tags.Close:
			p.close(t)
		case t.Name == "system", len(p.stack) > 0 && t.Name != "stdout" && t.Name != "stderr":
			// mpirun writes [1,0]<stdout>: before a line.
			if err := p.open(t); err != nil || p.full {
				return err
			}
		}
	}
	if len(p.stack) > 0 {
		p.cut(1 + strings.Count(text, "\n"))
	}
	return nil
}

// open adds an element to the innermost open one. What NCCL does not know stays out with all that is in it.
func (p *parser) open(t *tags.Token) error {
	for _, a := range t.Attrs {
		p.kept += 64 + len(a.Value)
	}
	if p.count++; p.count > maxElements || p.kept > maxKept {
		p.full = true
		p.f.Warnf(t.Line, "", "more than %d elements or %d MiB of attributes; the rest is left out", maxElements, maxKept>>20)
		return nil
	}
	el := &element{Token: *t}
	if t.Name == "system" {
		if len(p.stack) > 0 {
			p.cut(t.Line)
		}
		p.systems = append(p.systems, el)
	} else {
		switch top := p.stack[len(p.stack)-1]; {
		case slices.Contains(inside[t.Name], top.Name):
			top.subs = append(top.subs, el)
		case (top.Name == "system" || inside[top.Name] != nil) && !p.odd[t.Name]:
			p.odd[t.Name] = true
			p.f.Warnf(t.Line, "", "<%s> inside <%s> is not part of the format; left out with all in it, as NCCL does", t.Name,
				top.Name)
		}
	}
	if t.Kind != tags.Open {
		return nil
	}
	if len(p.stack) == maxDepth {
		return fault(p.f.Source, t.Line, "elements are nested more than %d deep; a PCI tree never is: not a topology file",
			maxDepth)
	}
	p.stack = append(p.stack, el)
	return nil
}

// close ends the innermost open element of that name. Those inside it were
// never closed; that is reported, and they end too.
func (p *parser) close(t *tags.Token) {
	for i := len(p.stack) - 1; i >= 0; i-- {
		if p.stack[i].Name != t.Name {
			continue
		}
		if i < len(p.stack)-1 {
			p.f.Warnf(t.Line, "", "</%s> while <%s> is open; taken as closed", t.Name, p.stack[len(p.stack)-1].Name)
		}
		p.stack = p.stack[:i]
		return
	}
}

// cut reports a dump that ends before its end.
func (p *parser) cut(line int) {
	p.f.Warnf(line, "", "the topology ends inside <%s>: cut off; read as far as it goes", p.stack[len(p.stack)-1].Name)
	p.stack = p.stack[:0]
}
