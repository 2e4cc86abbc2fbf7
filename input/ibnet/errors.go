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
//
// A node with a GUID is a switch. The line for port ALL is the sum of the others. The cables that -r adds are
// iblinkinfo's to tell.
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

// ReadErrors reads the counters that ibqueryerrors prints.
func ReadErrors(name string, r io.Reader) (*cluster.Fragment, error) {
	f := newFabric()
	cur, found := -1, false // the node whose ports follow
	err := f.read(name, r, func(text string, num int) {
		found = found || errorSummary.MatchString(text)
		if m := errorHead.FindStringSubmatch(text); m != nil {
			node := end{kind: anAdapter, guid: hex(m[1]), desc: m[2]}
			if node.guid != 0 {
				node.kind = aSwitch
			}
			cur = f.addNode(node, num, true)
		} else if strings.HasPrefix(text, "Data Counters for ") {
			cur = -1
		} else if m := errorPort.FindStringSubmatch(text); m != nil && cur >= 0 {
			f.addErrors(cur, m, num)
		}
	})
	if err != nil {
		return nil, err
	}
	if len(f.nodes) == 0 && !found {
		return nil, fmt.Errorf("%s: no counters; expected ibqueryerrors' output, such as Errors for 0x2c90300100003 "+
			"\"leaf3\"; give the whole output of ibqueryerrors", name)
	}
	return f.fragment(name, "ibqueryerrors"), nil
}

// addErrors takes a line of a port, cut into parts.
func (f *fabric) addErrors(n int, m []string, line int) {
	at := f.addPort(n, end{portGUID: hex(m[1]), num: decimal(m[2])}, line)
	if at < 0 {
		return
	}
	pt := &f.ports[at]
	pt.own = true
	for _, c := range errorCounter.FindAllStringSubmatch(m[3], -1) {
		pt.count(c[1], c[2])
	}
	if strings.LastIndexByte(m[3], '[') > strings.LastIndexByte(m[3], ']') {
		f.notice(badLine, line, "a counter without its end")
	}
}
