package ibnet

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lines"
)

// MatchDiscover reports whether ibnetdiscover's topology, or a net file of ibsim,
// is somewhere in the text.
func MatchDiscover(data []byte) bool {
	for _, word := range []string{"Switch", "Ca", "Hca"} {
		if lines.Find(data, word, func(line string) bool {
			_, ok := nodeHeader(strings.TrimLeft(line, " \t"))
			return ok
		}) {
			return true
		}
	}
	return false
}

// ReadDiscover reads ibnetdiscover's topology, or a net file of ibsim. name is
// the source's name in messages.
func ReadDiscover(name string, r io.Reader) (*cluster.Fragment, error) {
	d := discovery{fabric: newFabric(), cur: -1}
	if err := d.read(name, r, d.line); err != nil {
		return nil, err
	}
	if len(d.nodes) == 0 {
		return nil, fmt.Errorf("%s: no node lines; expected ibnetdiscover's topology, such as Switch 36 \"S-0002c903…\" "+
			"or Ca 1 \"H-0002c903…\"; give the whole output of ibnetdiscover", name)
	}
	format := "ibsim net"
	if d.scan {
		format = "ibnetdiscover"
	}
	f := d.fragment(name, format)
	d.warnIncomplete(f)
	return f, nil
}

// discovery reads line by line: identifiers, then a node's header, then its ports.
type discovery struct {
	*fabric
	cur     int32 // node whose port lines follow, -1 none
	scan    bool  // the header says that a tool scanned a fabric
	vendor  uint64
	device  uint64
	printed uint64 // switchguid= or caguid=
}

// line takes one line.
func (d *discovery) line(b string, num int) {
	if b = strings.TrimLeft(b, " \t"); b == "" {
		return
	}
	switch b[0] {
	case '[':
		if d.cur >= 0 {
			d.portLine(b, num)
		}
	case '#':
		if strings.HasPrefix(b, "# Topology file:") || strings.HasPrefix(b, "# Initiated from") {
			d.scan = true
		}
	case 'S', 'C', 'H', 'R':
		if h, ok := nodeHeader(b); ok {
			d.nodeLine(h, num)
		}
	default:
		d.idLine(b)
	}
}

// idLine takes vendid=, devid=, switchguid= and caguid=, which come before a header.
func (d *discovery) idLine(b string) {
	key, value, ok := strings.Cut(b, "=")
	if !ok || len(key) > 12 {
		return
	}
	v, _, ok := hex(value)
	if !ok {
		return
	}
	switch key {
	case "vendid":
		d.vendor = v
	case "devid":
		d.device = v
	case "switchguid", "caguid", "rtguid":
		d.printed = v
	}
}

// header is a node's first line, cut into parts.
type header struct {
	kind    kind
	ports   int
	id      string
	comment string
}

// nodeHeader reads `Switch	64 "S-0002…"		# "leaf4" enhanced port 0 lid 4 lmc 0`.
func nodeHeader(b string) (h header, ok bool) {
	word := b
	for i, c := range b {
		if c == ' ' || c == '\t' {
			word = b[:i]
			break
		}
	}
	switch word {
	case "Switch":
		h.kind = aSwitch
	case "Ca", "Hca":
		h.kind = anAdapter
	case "Rt":
		h.kind = aRouter
	default:
		return h, false
	}
	b = strings.TrimLeft(b[len(word):], " \t")
	if h.ports, b = number(b); h.ports < 1 || len(b) == 0 || b[0] != ' ' && b[0] != '\t' {
		return h, false
	}
	if h.id, b, ok = quoted(strings.TrimLeft(b, " \t")); !ok {
		return h, false
	}
	_, h.comment, _ = strings.Cut(b, "#")
	return h, true
}

// quoted reads a text in double quotes at the start of b.
func quoted(b string) (text, rest string, ok bool) {
	if len(b) < 2 || b[0] != '"' {
		return "", b, false
	}
	end := strings.IndexByte(b[1:], '"')
	if end < 1 {
		return "", b, false
	}
	return b[1 : end+1], b[end+2:], true
}

func (d *discovery) nodeLine(h header, num int) {
	n := d.named(h.id, h.kind, num)
	if n < 0 {
		return
	}
	d.cur = n
	nd := &d.nodes[n]
	_, desc, after := comment(h.comment)
	nd.kind, nd.own = h.kind, true
	nd.ports = h.ports
	nd.line = int32(num)
	if s := plain(desc); s != "" {
		nd.desc = s
	}
	if h.ports > maxPort {
		nd.ports = 0
		d.seen.beyond.addNotice(num, fmt.Sprintf("%d ports of %s", h.ports, nd.title()))
	}
	nd.vendor, nd.device = uint32(d.vendor), uint32(d.device)
	nd.guid = cmp.Or(nd.guid, d.printed)
	d.printed, d.device = 0, 0
	if h.kind == aSwitch {
		nd.lid = int32(lidIn(after))
	}
}

// comment splits what follows # into the text before, inside and after the
// quotes. Old versions print the description without quotes.
func comment(b string) (before, desc, after string) {
	first, last := strings.IndexByte(b, '"'), strings.LastIndexByte(b, '"')
	if first >= 0 && last > first {
		return b[:first], b[first+1 : last], b[last+1:]
	}
	end := len(b)
	for _, stop := range []string{" enhanced port ", " base port ", " port 0 ", " lid "} {
		if i := strings.Index(b[:end], stop); i >= 0 {
			end = i
		}
	}
	return "", b[:end], b[end:]
}

// lidIn finds "lid 7".
func lidIn(b string) int {
	i := strings.Index(b, "lid ")
	if i < 0 {
		return 0
	}
	n, _ := number(b[i+4:])
	return max(n, 0)
}

// portLine takes one cable end of the current node:
//
//	[35]	"S-2c5eab0300c26280"[32]		# "spine2" lid 236 4xNDR
//	[1](2c90300300011) 	"S-0002c90300100001"[1]		# lid 7 lmc 0 "leaf1" lid 1 4xHDR
//	[3]	"Switch2"[3] w=4
func (d *discovery) portLine(b string, line int) {
	num, rest := number(b[1:])
	if num < 1 || len(rest) == 0 || rest[0] != ']' {
		return
	}
	guid, rest := portGUID(rest[1:])
	if len(rest) == 0 || rest[0] != '"' {
		return // a line of something else in the log
	}
	id, rest, ok := quoted(rest)
	if !ok {
		d.seen.bad.addNotice(line, "a port line without the neighbour's whole name")
		return
	}
	far := 1 // ibsim's default
	if rest = strings.TrimLeft(rest, " \t"); len(rest) > 0 && rest[0] == '[' {
		var end string
		if far, end = number(rest[1:]); far < 1 || len(end) == 0 || end[0] != ']' {
			d.seen.bad.addNotice(line, "a port line without the neighbour's port")
			return
		}
		rest = end[1:]
	}
	farGUID, rest := portGUID(rest)
	options, note, _ := strings.Cut(rest, "#")

	n := d.named(id, someNode, line)
	if n < 0 {
		return
	}
	near, other := d.port(d.cur, num, line), d.port(n, far, line)
	if near < 0 || other < 0 {
		return
	}
	d.seen.portLines++
	p, q := &d.ports[near], &d.ports[other]
	before, desc, after := comment(note)
	d.nodes[n].mention(desc)
	p.own, p.line = true, int32(line)
	if guid != 0 {
		p.guid = guid
	}
	if farGUID != 0 {
		q.guid = farGUID
	}
	if lid := lidIn(before); lid > 0 {
		p.lid = int32(lid)
	}
	if lid := lidIn(after); lid > 0 {
		q.lid = int32(lid)
	}
	d.connect(near, other, line)
	p.is = trained(options, after)
}

// portGUID skips "[ext 5]", "(2c90300300011)" and blanks, and returns the GUID.
func portGUID(b string) (guid uint64, rest string) {
	for {
		b = strings.TrimLeft(b, " \t")
		switch {
		case strings.HasPrefix(b, "[ext "):
			end := strings.IndexByte(b, ']')
			if end < 0 {
				return guid, b
			}
			b = b[end+1:]
		case len(b) > 0 && b[0] == '(':
			g, end, ok := hex(b[1:])
			if !ok || len(end) == 0 || end[0] != ')' {
				return guid, b
			}
			guid, b = g, end[1:]
		default:
			return guid, b
		}
	}
}

// trained finds the last 4xHDR behind "lid 7", or ibsim's option w=4.
func trained(options, after string) width {
	if i := strings.Index(after, "lid "); i >= 0 {
		_, rest := number(after[i+4:])
		rest = strings.TrimLeft(rest, " \t")
		if end := strings.IndexAny(rest, " \t"); end >= 0 {
			rest = rest[:end]
		}
		if w, ok := parseWidth(rest); ok {
			return w
		}
	}
	if i := strings.Index(options, "w="); i >= 0 {
		if n, _ := number(options[i+2:]); n == 1 || n == 2 || n == 4 || n == 8 || n == 12 {
			return width{lanes: uint8(n)}
		}
	}
	return width{}
}
