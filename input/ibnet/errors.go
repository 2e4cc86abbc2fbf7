package ibnet

import (
	"strings"

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
	errorHead    = lazyre.New(`^Errors for (?:0x([0-9a-fA-F]{1,16})\s+)?"(.*)"$|^##.*ports checked`)
	errorPort    = lazyre.New(`^GUID 0x([0-9a-fA-F]{1,16}) port ([1-9]\d{0,8}):(.*)`)
	errorCounter = lazyre.New(`\[(\w{1,64}) == (\d+)[^\]]*\]`)
)

// errors reads the counters that ibqueryerrors prints. A run that found nothing prints only its summary.
func (f *fabric) errors(text string, num int) {
	if m := errorHead.FindStringSubmatch(text); m != nil {
		f.used++
		node := end{kind: anAdapter, guid: hex(m[1]), desc: m[2]}
		if node.guid != 0 {
			node.kind = aSwitch
		}
		if text[0] == 'E' {
			f.cur = f.addNode(node, num, true)
		}
	} else if strings.HasPrefix(text, "Data Counters for ") {
		f.cur = -1
	} else if m := errorPort.FindStringSubmatch(text); m != nil && f.cur >= 0 {
		f.addErrors(f.cur, m, num)
	}
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
