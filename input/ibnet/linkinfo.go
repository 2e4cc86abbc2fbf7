package ibnet

import (
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lines"
)

// MatchLinkInfo reports whether iblinkinfo's output, with or without -l, is
// somewhere in the text. The "Link info" lines of ibqueryerrors do not count.
func MatchLinkInfo(data []byte) bool {
	return lines.Find(data, ")==>", func(line string) bool {
		_, ok := parseLink(line)
		return ok
	})
}

// ReadLinkInfo reads iblinkinfo's output, with or without -l.
func ReadLinkInfo(name string, r io.Reader) (*cluster.Fragment, error) {
	l := linkInfo{fabric: newFabric(), cur: -1}
	if err := l.read(name, r, l.line); err != nil {
		return nil, err
	}
	if l.orphans.n > 0 && l.seen.portLines == 0 {
		return nil, fmt.Errorf("%s:%d: %s without the node above; expected a line such as Switch: 0x0002c903… leaf1: before its links; give the whole output of iblinkinfo, or that of iblinkinfo -l", name, l.orphans.line, plural(l.orphans.n, "link line", "link lines"))
	}
	if l.seen.portLines == 0 {
		return nil, fmt.Errorf("%s: no link lines; expected iblinkinfo's arrows, such as 2 1[ ] ==( 4X 53.125 Gbps Active/ LinkUp)==> …; give the whole output of iblinkinfo", name)
	}
	if l.resolve(); l.full {
		return nil, l.errTooMany(name)
	}
	if l.orphans.n > 0 {
		l.seen.bad.add(l.orphans.line, "a link without the node above")
		l.seen.bad.n += l.orphans.n - 1
	}
	f := l.fragment(name, "iblinkinfo")
	l.warnIncomplete(f)
	return f, nil
}

// linkInfo reads line by line. Without -l a line names its neighbour by LID and
// description only, so cables are resolved when all nodes are known.
type linkInfo struct {
	*fabric
	cur     int32
	pending []farEnd
	orphans noticed // links whose node nothing names
}

// farEnd is a cable whose other end is to be found.
type farEnd struct {
	near int32
	line int32
	guid uint64
	lid  int
	num  int
	desc string
}

// line takes one line.
func (l *linkInfo) line(b string, num int) {
	if link, ok := parseLink(b); ok {
		l.link(link, num)
		return
	}
	b = strings.TrimSpace(b)
	if len(b) == 0 || b[len(b)-1] != ':' {
		return
	}
	word, rest, ok := strings.Cut(b[:len(b)-1], ": ")
	if !ok {
		return
	}
	switch word {
	case "Switch":
		guid, desc, ok := hex(rest)
		if !ok || guid == 0 {
			return
		}
		l.cur = l.withGUID(guid, aSwitch, num)
		rest = desc
	case "CA":
		l.cur = l.add(anAdapter, num)
	case "Router":
		l.cur = l.add(aRouter, num)
	default:
		return
	}
	if l.cur >= 0 {
		l.nodes[l.cur].own = true
		l.nodes[l.cur].mention(strings.TrimSpace(rest))
	}
}

func (l *linkInfo) link(link linkLine, line int) {
	n := l.cur
	if link.named || n < 0 {
		// With -l every line names its port, and nothing says of what kind it is.
		if link.guid == 0 {
			l.orphans.add(line, "")
			return
		}
		if n = l.withGUID(link.guid, someNode, line); n < 0 {
			return
		}
		l.nodes[n].own = true
		l.nodes[n].mention(link.desc)
	}
	p := l.take(n, link, line)
	if p >= 0 && link.far.num > 0 {
		l.pending = append(l.pending, farEnd{
			near: p, line: int32(line), guid: link.far.guid,
			lid: link.far.lid, num: link.far.num, desc: plain(link.far.desc),
		})
	}
}

// take records a line's own port, -1 when it cannot be one.
func (f *fabric) take(n int32, link linkLine, line int) int32 {
	p := f.port(n, link.num, line)
	if p < 0 {
		return -1
	}
	f.seen.portLines++
	f.seen.notes += link.notes
	pt := &f.ports[p]
	pt.own, pt.state, pt.lid = true, link.state, int32(link.lid)
	if f.nodes[n].kind == aSwitch {
		f.nodes[n].lid = int32(link.lid)
	} else {
		pt.guid = link.guid
	}
	if link.state == cluster.Down {
		return p // the standard lets a down port answer anything else
	}
	pt.is, pt.could = link.is, link.could
	if pt.could.lanes > 4 && pt.is.lanes <= 4 {
		// Chips list 12X among their widths, but a port of today has four lanes, and
		// the simulator says so of every link.
		pt.could.lanes = 4
		f.seen.wide.add(line, f.where(p))
	}
	if link.is.speed == noSpeed {
		f.seen.unknown.add(line, f.where(p))
	}
	return p
}
