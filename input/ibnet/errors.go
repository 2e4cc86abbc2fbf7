package ibnet

import (
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lines"
)

// MatchErrors reports whether ibqueryerrors' output is somewhere in the text. A
// run that found nothing prints only its summary, and counts.
func MatchErrors(data []byte) bool {
	return lines.Find(data, "Errors for ", func(line string) bool {
		_, _, ok := errorsHeader(line)
		return ok
	}) || lines.Find(data, "ports checked", isSummary)
}

// ReadErrors reads the counters that ibqueryerrors prints, and with -r the cables
// of the ports in question.
func ReadErrors(name string, r io.Reader) (*cluster.Fragment, error) {
	e := errorReport{linkInfo: linkInfo{fabric: newFabric(), cur: -1}, at: -1}
	found := false
	err := e.read(name, r, func(b string, num int) {
		found = found || isSummary(b)
		e.line(b, num)
	})
	if err != nil {
		return nil, err
	}
	if len(e.nodes) == 0 && !found {
		return nil, fmt.Errorf("%s: no counters; expected ibqueryerrors' output, such as Errors for 0x2c90300100003 "+
			"\"leaf3\"; give the whole output of ibqueryerrors", name)
	}
	if e.resolve(); e.full {
		return nil, e.errTooMany(name)
	}
	return e.fragment(name, "ibqueryerrors"), nil
}

// errorReport reads line by line: a node, its ports, with -r the port's cable.
type errorReport struct {
	linkInfo
	at int32 // port of the last counter line, -1 none
}

func isSummary(b string) bool {
	b = strings.TrimSpace(b)
	return strings.HasPrefix(b, "##") && strings.Contains(b, "ports checked")
}

// errorsHeader reads `Errors for 0x2c90300100003 "leaf3"`, a switch, and
// `Errors for "node10 mlx5_0"`, an adapter, whose GUID is 0 here.
func errorsHeader(b string) (guid uint64, desc string, ok bool) {
	b, ok = strings.CutPrefix(strings.TrimSpace(b), "Errors for ")
	if !ok {
		return 0, "", false
	}
	if strings.HasPrefix(b, "0x") {
		if guid, b, ok = hex(b); !ok || guid == 0 {
			return 0, "", false
		}
	}
	b = strings.TrimSpace(b)
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return 0, "", false
	}
	return guid, b[1 : len(b)-1], true
}

// line takes one line.
func (e *errorReport) line(b string, num int) {
	if guid, desc, ok := errorsHeader(b); ok {
		if e.at = -1; guid != 0 {
			e.cur = e.withGUID(guid, aSwitch, num)
		} else {
			e.cur = e.addNode(anAdapter, num)
		}
		if e.cur >= 0 {
			e.nodes[e.cur].own = true
			e.nodes[e.cur].mention(desc)
		}
		return
	}
	b = strings.TrimSpace(b)
	switch {
	case strings.HasPrefix(b, "Data Counters for "):
		e.cur, e.at = -1, -1
	case e.cur >= 0 && strings.HasPrefix(b, "GUID 0x"):
		e.counters(b, num)
	case e.at >= 0 && strings.HasPrefix(b, "Link info:"):
		if link, ok := parseLink(b[len("Link info:"):]); ok {
			link.guid = e.ports[e.at].guid
			e.link(link, num)
		}
	}
}

// counters reads "GUID 0x2c90300100003 port 2: [SymbolErrorCounter == 1234]". The
// line for port ALL is the sum of the others.
func (e *errorReport) counters(b string, line int) {
	e.at = -1
	guid, rest, ok := hex(b[len("GUID "):])
	rest, isPort := strings.CutPrefix(rest, " port ")
	num, rest := number(rest)
	if !ok || !isPort || num < 1 || len(rest) == 0 || rest[0] != ':' {
		return
	}
	p := e.port(e.cur, num, line)
	if p < 0 {
		return
	}
	e.at = p
	pt := &e.ports[p]
	pt.own = true
	if e.nodes[e.cur].kind != aSwitch {
		pt.guid = guid
	}
	for {
		var item string
		if _, rest, ok = strings.Cut(rest, "["); !ok {
			return
		}
		if item, rest, ok = strings.Cut(rest, "]"); !ok {
			e.seen.bad.addNotice(line, "a counter without its end")
			return
		}
		name, value, _ := strings.Cut(item, " == ")
		if v, _, ok := counter(value); ok {
			pt.count(name, v)
		}
	}
}
