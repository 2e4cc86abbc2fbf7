package ibnet

import (
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
)

const reportEnd = `(SW|CA|RT)\s+(\d{1,9})\s+([1-9]\d{0,8})\s+0x([0-9a-fA-F]{1,16})\s*`

// reportLine is a line of the report:
//
//	SW  1719 10 0x7cfe9003009ce5b0 4x EDR - CA   134  1 0x7cfe9003003b4bde ( 'leaf1' - 'node1 HCA-1' )
//	SW  2052 37 0x506b4b03005c2740 4x ???                                    'leaf2'
var reportLine = lazyre.New(`^` + reportEnd + `(\d+x|\?\?)\s+(\S+)\s*(?:-\s*` + reportEnd +
	`(?:\(\s*'(.*?)' - '(.*)'\s*\)?)?|([^-].*)?)$`)

// report reads the port report of ibnetdiscover -p.
func (f *fabric) report(text string, num int) {
	m := reportLine.FindStringSubmatch(text)
	if m == nil {
		return
	}
	l := row{near: reported(m[1:5]), state: cluster.Down, line: num}
	l.near.desc = strings.Trim(m[13], "'")
	if m[7] != "" {
		l.far, l.near.desc = reported(m[7:11]), m[11]
		l.far.desc, l.state = m[12], cluster.StateUnknown
		l.is, _ = parseWidth(m[5] + m[6])
	}
	f.addRow(l)
}

// reported is one side of a line of the report: kind, LID, number and GUID, which is a switch's own and an adapter's
// port's.
func reported(m []string) end {
	e := end{kind: kinds[m[0]], lid: decimal(m[1]), num: decimal(m[2]), portGUID: hex(m[3])}
	if e.kind == aSwitch {
		e.guid = e.portGUID
	}
	return e
}
