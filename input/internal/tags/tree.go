package tags

import (
	"fmt"

	"busbar.dev/cluster"
)

// maxDepth is how deep elements may be nested; a tree of PCI bridges is never half as deep.
const maxDepth = 256

// Element is a tag with what is in it.
type Element struct {
	*Token

	Up   *Element // what it is in; nil of a root
	Kids []*Element
}

// All lists the elements of one name right inside e.
func (e *Element) All(name string) []*Element {
	var list []*Element
	for _, k := range e.Kids {
		if k.Name == name {
			list = append(list, k)
		}
	}
	return list
}

// Trees calls take for every element called root, with all that is in it. What is torn or was never closed is read as
// far as it goes, with a warning; so is a text of more than most elements in one root.
func Trees(f *cluster.Fragment, text, root string, most int, take func(*Element)) error {
	var open []*Element
	n, last := 0, 0
	cut := func(line int) {
		if len(open) > 0 {
			f.Warnf(line, "", "the topology ends inside <%s>: cut off; read as far as it goes", open[len(open)-1].Name)
			take(open[0])
			open = nil
		}
	}
	for t := range All(text) {
		last = t.Line
		switch {
		case t.Kind == Decl, t.Name == "stdout", t.Name == "stderr": // mpirun writes [1,0]<stdout>: before a line
		case len(open) == 0 && (t.Name != root || t.Kind > Empty):
		case t.Kind == Broken:
			f.Warnf(t.Line, "", "<%.60s is not a whole tag; left out", t.Name)
		case t.Kind == Close:
			for i := len(open) - 1; i >= 0; i-- {
				if open[i].Name != t.Name {
					continue
				}
				if i < len(open)-1 {
					f.Warnf(t.Line, "", "</%s> while <%s> is open; taken as closed", t.Name, open[len(open)-1].Name)
				}
				if i == 0 {
					take(open[0])
				}
				open = open[:i]
				break
			}
		default:
			if t.Name == root {
				cut(t.Line)
				n = 0
			}
			if n++; n > most {
				f.Warnf(t.Line, "", "more than %d elements; the rest is left out", most)
				take(open[0])
				return nil
			}
			e := &Element{Token: t}
			if at := len(open) - 1; at >= 0 {
				e.Up = open[at]
				e.Up.Kids = append(e.Up.Kids, e)
			}
			if open = append(open, e); len(open) > maxDepth {
				return fmt.Errorf("%s:%d: elements are nested more than %d deep; a PCI tree never is: not a topology file",
					f.Source, t.Line, maxDepth)
			}
			if t.Kind == Empty {
				if open = open[:len(open)-1]; e.Up == nil {
					take(e)
				}
			}
		}
	}
	cut(last)
	return nil
}
