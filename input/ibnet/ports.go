package ibnet

import (
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lines"
)

// MatchPorts reports whether the port report of ibnetdiscover -p is in the text.
func MatchPorts(data []byte) bool {
	for _, word := range []string{"SW ", "CA "} {
		if lines.Find(data, word, func(line string) bool {
			_, ok := reportLine(strings.TrimLeft(line, " \t"))
			return ok
		}) {
			return true
		}
	}
	return false
}

// ReadPorts reads the port report of ibnetdiscover -p.
func ReadPorts(name string, r io.Reader) (*cluster.Fragment, error) {
	f := newFabric()
	err := f.read(name, r, func(b string, num int) {
		if l, ok := reportLine(strings.TrimLeft(b, " \t")); ok {
			f.report(l, num)
		}
	})
	if err != nil {
		return nil, err
	}
	if len(f.nodes) == 0 {
		return nil, fmt.Errorf("%s: no port lines; expected lines such as SW 12 1 0x0002c903… 4x HDR - CA …; give the "+
			"whole output of ibnetdiscover -p", name)
	}
	frag := f.fragment(name, "ibnetdiscover -p")
	f.warnIncomplete(frag)
	return frag, nil
}

// reportEnd is one side of a line of the report.
type reportEnd struct {
	kind     kind
	lid, num int
	guid     uint64
	desc     string
}

type report struct {
	near, far reportEnd
	cable     bool
	is        width
}

// reportLine reads
//
//	SW  1719 10 0x7cfe9003009ce5b0 4x EDR - CA   134  1 0x7cfe9003003b4bde ( 'leaf1' - 'node1 HCA-1' )
//	SW  2052 37 0x506b4b03005c2740 4x ???                                    'leaf2'
func reportLine(b string) (report, bool) {
	var l report
	rest, ok := l.near.read(b)
	if !ok {
		return l, false
	}
	lanes, rest := field(rest)
	name, rest := field(rest)
	w, ok := parseWidth(lanes)
	if !ok && lanes != "??" || len(name) == 0 {
		return l, false
	}
	w.speed = speedNamed(name)
	rest = strings.TrimSpace(rest)
	if len(rest) == 0 || rest[0] != '-' {
		l.near.desc = strings.Trim(rest, "'")
		return l, true
	}
	if rest, ok = l.far.read(strings.TrimLeft(rest[1:], " \t")); !ok {
		return l, false
	}
	l.is, l.cable = w, true
	rest = strings.TrimSpace(rest)
	rest = strings.TrimSuffix(strings.TrimPrefix(rest, "("), ")")
	near, far, _ := strings.Cut(rest, "' - '")
	l.near.desc = strings.Trim(strings.TrimSpace(near), "'")
	l.far.desc = strings.Trim(strings.TrimSpace(far), "'")
	return l, true
}

func (e *reportEnd) read(b string) (rest string, ok bool) {
	word, rest := field(b)
	if e.kind = kindWord[word]; e.kind == someNode {
		return rest, false
	}
	lid, rest := field(rest)
	num, rest := field(rest)
	guid, rest := field(rest)
	e.lid, _ = number(lid)
	e.num, _ = number(num)
	if !strings.HasPrefix(guid, "0x") {
		return rest, false
	}
	g, left, ok := hex(guid)
	e.guid = g
	return rest, ok && len(left) == 0 && e.lid >= 0 && e.num >= 1 && g != 0
}

// field cuts the first word off.
func field(b string) (word, rest string) {
	b = strings.TrimLeft(b, " \t")
	if i := strings.IndexAny(b, " \t"); i >= 0 {
		return b[:i], b[i:]
	}
	return b, ""
}

// report adds a line.
func (f *fabric) report(l report, line int) {
	near := f.reportPort(l.near, line)
	if near < 0 {
		return
	}
	f.seen.portLines++
	p := &f.ports[near]
	f.nodes[p.node].own, p.own = true, true
	if !l.cable {
		if p.peer < 0 {
			p.state = cluster.Down
		}
		return
	}
	far := f.reportPort(l.far, line)
	if far < 0 {
		return
	}
	f.ports[near].state = cluster.StateUnknown
	f.connect(near, far, line)
	f.ports[near].is = l.is
}

// reportPort finds or adds a port, -1 when it cannot be one.
func (f *fabric) reportPort(e reportEnd, line int) int32 {
	n := f.withGUID(e.guid, e.kind, line)
	if n < 0 {
		return -1
	}
	f.nodes[n].mention(e.desc)
	p := f.port(n, e.num, line)
	if p < 0 {
		return -1
	}
	f.ports[p].lid = int32(e.lid)
	if e.kind == aSwitch {
		f.nodes[n].lid = int32(e.lid)
	} else {
		f.ports[p].guid = e.guid
	}
	return p
}
