package ibnet

import (
	"bytes"
	"fmt"
	"io"
	"strconv"

	"busbar/cluster"
	"busbar/input/internal/lines"
)

// MatchPerf reports whether perfquery's output is somewhere in the text.
func MatchPerf(data []byte) bool {
	return lines.Find(data, "ounters: ", func(line []byte) bool {
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
	in := lines.NewReader(r)
	for in.Next() {
		b := in.Line()
		if lid, num, ok := perfHeader(b); ok {
			blocks++
			if cur = -1; num == 255 {
				all.add(in.Num(), "")
				continue
			}
			if n := f.lidNode(lid, in.Num()); n >= 0 {
				cur = f.port(n, num, in.Num())
			}
			if f.full {
				return nil, errTooMany(name, in.Num())
			}
			f.ports[cur].own, f.ports[cur].lid = true, int32(lid)
			continue
		}
		if cur >= 0 {
			f.ports[cur].countLine(b)
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, in.Num(), err)
	}
	if blocks == 0 {
		return nil, fmt.Errorf("%s: no counters; expected perfquery's output, such as # Port counters: Lid 3 port 2; give the output of perfquery LID PORT", name)
	}
	frag := f.fragment(name, "perfquery")
	if all.n > 0 {
		frag.Warnf(all.line, "", "%d blocks are sums over all ports of a switch and say nothing of one port; left out; query each port (perfquery -l LID)", all.n)
	}
	return frag, nil
}

// lidNode finds or adds the node of a LID; -1 when there are too many.
func (f *fabric) lidNode(lid, line int) int32 {
	id := "lid" + strconv.Itoa(lid)
	n := f.named([]byte(id), aSwitch, line)
	if n >= 0 {
		f.nodes[n].own, f.nodes[n].lid = true, int32(lid)
		f.nodes[n].desc = id
	}
	return n
}

// perfHeader reads "# Port extended counters: Lid 1719 port 2 (CapMask: …)". Port
// 0 and a route by hops instead of a LID are not read.
func perfHeader(b []byte) (lid, num int, ok bool) {
	b = bytes.TrimSpace(b)
	_, rest, ok := bytes.Cut(b, []byte("ounters: Lid "))
	if !ok || !bytes.HasPrefix(b, []byte("# ")) {
		return 0, 0, false
	}
	lid, rest = number(rest)
	rest, ok = bytes.CutPrefix(rest, []byte(" port "))
	if !ok || lid < 1 || lid > 0xffff {
		return 0, 0, false
	}
	num, _ = number(rest)
	return lid, num, num >= 1 && num <= maxPort
}

// countLine reads "SymbolErrorCounter:..............1234".
func (p *port) countLine(b []byte) {
	name, value, ok := bytes.Cut(bytes.TrimSpace(b), []byte{':'})
	if !ok {
		return
	}
	v, rest, ok := counter(bytes.TrimLeft(value, ". \t"))
	if ok && len(rest) == 0 {
		p.count(name, v)
	}
}
