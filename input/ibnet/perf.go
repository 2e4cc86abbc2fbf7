package ibnet

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lines"
)

// MatchPerf reports whether perfquery's output is somewhere in the text.
func MatchPerf(data []byte) bool {
	return lines.Find(data, "ounters: ", func(line string) bool {
		_, _, ok := perfHeader(line)
		return ok
	})
}

// ReadPerf reads the port counters that perfquery prints, with or without -x,
// of any number of ports. perfquery identifies a port by LID and number; the
// fragment gives it to a switch named lid and the number, which is right for the
// usual question and for Join to correct.
func ReadPerf(name string, r io.Reader) (*cluster.Fragment, error) {
	f := newFabric()
	cur, all, blocks := int32(-1), noticed{}, 0
	err := f.read(name, r, func(b string, at int) {
		lid, num, head := perfHeader(b)
		if !head {
			if cur >= 0 {
				f.ports[cur].countLine(b)
			}
			return
		}
		blocks++
		if cur = -1; num == 255 {
			all.addNotice(at, "")
			return
		}
		if n := f.lidNode(lid, at); n >= 0 {
			cur = f.port(n, num, at)
		}
		if !f.full {
			f.ports[cur].own, f.ports[cur].lid = true, int32(lid)
		}
	})
	if err != nil {
		return nil, err
	}
	if blocks == 0 {
		return nil, fmt.Errorf("%s: no counters; expected perfquery's output, such as # Port counters: Lid 3 port 2; give "+
			"the output of perfquery LID PORT", name)
	}
	frag := f.fragment(name, "perfquery")
	if all.n > 0 {
		frag.Warnf(all.line, "", "%d blocks are sums over all ports of a switch and say nothing of one port; left out; "+
			"query each port (perfquery -l LID)", all.n)
	}
	return frag, nil
}

// lidNode finds or adds the node of a LID; -1 when there are too many.
func (f *fabric) lidNode(lid, line int) int32 {
	id := "lid" + strconv.Itoa(lid)
	n := f.named(id, aSwitch, line)
	if n >= 0 {
		f.nodes[n].own, f.nodes[n].lid = true, int32(lid)
		f.nodes[n].desc = id
	}
	return n
}

// perfHeader reads "# Port extended counters: Lid 1719 port 2 (CapMask: …)". Port
// 0 and a route by hops instead of a LID are not read.
func perfHeader(b string) (lid, num int, ok bool) {
	b = strings.TrimSpace(b)
	_, rest, ok := strings.Cut(b, "ounters: Lid ")
	if !ok || !strings.HasPrefix(b, "# ") {
		return 0, 0, false
	}
	lid, rest = number(rest)
	rest, ok = strings.CutPrefix(rest, " port ")
	if !ok || lid < 1 || lid > 0xffff {
		return 0, 0, false
	}
	num, _ = number(rest)
	return lid, num, num >= 1 && num <= maxPort
}

// countLine reads "SymbolErrorCounter:..............1234".
func (p *port) countLine(b string) {
	name, value, ok := strings.Cut(strings.TrimSpace(b), ":")
	if !ok {
		return
	}
	v, rest, ok := counter(strings.TrimLeft(value, ". \t"))
	if ok && len(rest) == 0 {
		p.count(name, v)
	}
}
