package ibnet

import (
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
)

// The lines of ibqueryerrors:
//
//	Errors for 0x2c90300100003 "leaf3"
//	Errors for "node10 mlx5_0"
//	   GUID 0x2c90300100003 port 2: [SymbolErrorCounter == 1234]
//	    Link info:   16   1[  ] ==( 1X   53.125 Gbps Active/  LinkUp)==>  0x0002c9…    3    2[  ] "leaf3" ( )
//
// A node with a GUID is a switch. The line for port ALL is the sum of the others.
var (
	errorHead    = lazyre.New(`^Errors for (?:0x([0-9a-fA-F]{1,16})\s+)?"(.*)"$`)
	errorPort    = lazyre.New(`^GUID 0x([0-9a-fA-F]{1,16}) port ([1-9]\d{0,8}):(.*)`)
	errorCounter = lazyre.New(`\[(\w{1,64}) == (\d+)[^\]]*\]`)
	errorSummary = lazyre.New(`^##.*ports checked`)
)

// MatchErrors reports whether ibqueryerrors' output is somewhere in the text. A
// run that found nothing prints only its summary, and counts.
func MatchErrors(data []byte) bool {
	return matches(data, errorHead, "Errors for ") || matches(data, errorSummary, "ports checked")
}

// ReadErrors reads the counters that ibqueryerrors prints, and with -r the cables
// of the ports in question.
func ReadErrors(name string, r io.Reader) (*cluster.Fragment, error) {
	e := errorReport{linkInfo: linkInfo{fabric: newFabric(), cur: -1}, at: -1}
	found := false
	err := e.read(name, r, func(text string, num int) {
		found = found || errorSummary.MatchString(text)
		e.line(text, num)
	})
	if err != nil {
		return nil, err
	}
	if len(e.nodes) == 0 && !found {
		return nil, fmt.Errorf("%s: no counters; expected ibqueryerrors' output, such as Errors for 0x2c90300100003 "+
			"\"leaf3\"; give the whole output of ibqueryerrors", name)
	}
	e.guessKinds()
	e.joinLoose()
	if err := e.tooMany(name); err != nil {
		return nil, err
	}
	return e.fragment(name, "ibqueryerrors"), nil
}

// errorReport reads line by line: a node, its ports, with -r the port's cable.
type errorReport struct {
	linkInfo
	at int32 // port of the last counter line, -1 none
}

// line takes one line.
func (e *errorReport) line(text string, num int) {
	if m := errorHead.FindStringSubmatch(text); m != nil {
		node := end{kind: anAdapter, guid: hex(m[1]), desc: m[2]}
		if node.guid != 0 {
			node.kind = aSwitch
		}
		e.at = -1
		e.head(node, num)
	} else if strings.HasPrefix(text, "Data Counters for ") {
		e.cur, e.at = -1, -1
	} else if m := errorPort.FindStringSubmatch(text); m != nil && e.cur >= 0 {
		e.counters(m, num)
	} else if text, ok := strings.CutPrefix(text, "Link info:"); ok && e.at >= 0 {
		if r, named, ok := parseLink(strings.TrimSpace(text)); ok {
			r.line = num
			e.link(r, named)
		}
	}
}

// counters takes a line of a port, cut into parts.
func (e *errorReport) counters(m []string, line int) {
	e.at = e.addPort(e.cur, end{portGUID: hex(m[1]), num: decimal(m[2])}, line)
	if e.at < 0 {
		return
	}
	pt := &e.ports[e.at]
	pt.own = true
	for _, c := range errorCounter.FindAllStringSubmatch(m[3], -1) {
		pt.count(c[1], c[2])
	}
	if strings.LastIndexByte(m[3], '[') > strings.LastIndexByte(m[3], ']') {
		e.notice(badLine, line, "a counter without its end")
	}
}
