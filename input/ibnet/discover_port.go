package ibnet

import "strings"

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
		d.seen.bad.add(line, "a port line without the neighbour's whole name")
		return
	}
	far := 1 // ibsim's default
	if rest = strings.TrimLeft(rest, " \t"); len(rest) > 0 && rest[0] == '[' {
		var end string
		if far, end = number(rest[1:]); far < 1 || len(end) == 0 || end[0] != ']' {
			d.seen.bad.add(line, "a port line without the neighbour's port")
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
