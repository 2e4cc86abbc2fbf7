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
		return nil, fmt.Errorf("%s:%d: %s without the node above; expected a line such as Switch: 0x0002c903… leaf1: "+
			"before its links; give the whole output of iblinkinfo, or that of iblinkinfo -l", name, l.orphans.line,
			plural(l.orphans.n, "link line", "link lines"))
	}
	if l.seen.portLines == 0 {
		return nil, fmt.Errorf("%s: no link lines; expected iblinkinfo's arrows, such as 2 1[ ] ==( 4X 53.125 Gbps Active/ "+
			"LinkUp)==> …; give the whole output of iblinkinfo", name)
	}
	if l.resolve(); l.full {
		return nil, l.errTooMany(name)
	}
	if l.orphans.n > 0 {
		l.seen.bad.addNotice(l.orphans.line, "a link without the node above")
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
		l.cur = l.addNode(anAdapter, num)
	case "Router":
		l.cur = l.addNode(aRouter, num)
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
			l.orphans.addNotice(line, "")
			return
		}
		if n = l.withGUID(link.guid, someNode, line); n < 0 {
			return
		}
		l.nodes[n].own = true
		l.nodes[n].mention(link.desc)
	}
	p := l.takePort(n, link, line)
	if p >= 0 && link.far.num > 0 {
		l.pending = append(l.pending, farEnd{
			near: p, line: int32(line), guid: link.far.guid,
			lid: link.far.lid, num: link.far.num, desc: plain(link.far.desc),
		})
	}
}

// takePort records a line's own port, -1 when it cannot be one.
func (f *fabric) takePort(n int32, link linkLine, line int) int32 {
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
		f.seen.wide.addNotice(line, f.where(p))
	}
	if link.is.speed == noSpeed {
		f.seen.unknown.addNotice(line, f.where(p))
	}
	return p
}

// linkLine is one line of iblinkinfo, cut into parts. Zero parts were not there.
type linkLine struct {
	guid     uint64 // of the port; of the switch when it has one for all
	desc     string // with -l only
	named    bool   // a description is there, if an empty one
	lid, num int
	state    cluster.State
	is       width
	could    width // the larger parts that "Could be" names
	notes    int
	far      struct {
		guid     uint64
		desc     string
		lid, num int
	}
}

// parseLink reads
//
//	2    1[  ] ==( 4X          10.0 Gbps Active/  LinkUp)==>       3    1[  ] "node1 HCA-1" ( )
//	2    8[  ] ==(                Down/ Polling)==>             [  ] "" ( )
//	0x0002c90300300101     22    1[  ] ==( 4X … )==>       4    4[  ] "leaf4" (Could be 12X )
//	0x0002c90300300101 "   node16 mlx5_0"     22    1[  ] ==( … )==>  0x0002c90300100004      4    4[  ] "leaf4" ( )
func parseLink(b string) (l linkLine, ok bool) {
	left, rest, ok := strings.Cut(b, "==(")
	if !ok {
		return l, false
	}
	mid, right, ok := strings.Cut(rest, ")==>")
	if !ok || !l.near(left) || !l.training(mid) {
		return l, false
	}
	l.farEnd(right)
	return l, true
}

// near reads what stands before the arrow.
func (l *linkLine) near(b string) bool {
	b = strings.TrimSpace(b)
	if strings.HasPrefix(b, "0x") {
		var ok bool
		if l.guid, b, ok = hex(b); !ok {
			return false
		}
		b = strings.TrimLeft(b, " \t")
	}
	if len(b) > 0 && b[0] == '"' {
		end := strings.LastIndexByte(b, '"')
		if end == 0 {
			return false
		}
		l.desc, l.named, b = b[1:end], true, b[end+1:]
	}
	if l.lid, l.num, b = lidPort(b); l.num < 1 {
		return false
	}
	return len(b) > 0 && b[0] == '['
}

// lidPort reads "  22    1" before the bracket that holds a chassis' port label.
func lidPort(b string) (lid, num int, rest string) {
	lid, rest = number(strings.TrimLeft(b, " \t"))
	num, rest = number(strings.TrimLeft(rest, " \t"))
	return max(lid, 0), num, rest
}

// training reads what stands inside the arrow.
func (l *linkLine) training(b string) bool {
	state, _, ok := strings.Cut(b, "/")
	if !ok {
		return false
	}
	word, rest := field(state)
	if w, ok := parseWidth(word); ok {
		l.is = w
		word, rest = field(rest)
		l.is.speed = speedSignalled(word)
		word, rest = field(rest) // Gbps
		if word != "Gbps" {
			return false
		}
		word, rest = field(rest)
		if word == "(FDR10)" {
			l.is.speed = fdr10
			word, _ = field(rest)
		}
	}
	switch word {
	case "Active":
		l.state = cluster.Up
	case "Down":
		l.state = cluster.Down
	case "Initialize", "Init", "Armed":
		l.state = cluster.Init
	}
	return true
}

// farEnd reads what stands behind the arrow. A port with nothing on it has an
// empty bracket and an empty name there.
func (l *linkLine) farEnd(b string) {
	b = strings.TrimSpace(b)
	if strings.HasPrefix(b, "0x") {
		g, rest, ok := hex(b)
		if !ok {
			return
		}
		l.far.guid, b = g, rest
	}
	lid, num, _ := lidPort(b)
	first, last := strings.IndexByte(b, '"'), strings.LastIndexByte(b, '"')
	if num < 1 || first < 0 || last <= first {
		return
	}
	l.far.lid, l.far.num = lid, num
	l.far.desc = b[first+1 : last]
	l.couldBe(b[last+1:])
}

// couldBe reads the remarks behind the neighbour's name: iblinkinfo adds one for
// the width and one for the speed when both ends support more than is in use, so
// that no remark means that the link runs as fast as it can.
func (l *linkLine) couldBe(b string) {
	l.could = l.is
	for {
		var ok bool
		if _, b, ok = strings.Cut(b, "Could be "); !ok {
			return
		}
		l.notes++
		word, _ := field(b)
		word = strings.TrimRight(word, ")")
		if word == "FDR10" {
			l.could.speed = fdr10
		} else if s := speedSignalled(word); s != noSpeed {
			l.could.speed = s
		} else if w, ok := parseWidth(word); ok {
			l.could.lanes = w.lanes
		}
	}
}
