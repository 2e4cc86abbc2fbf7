package ibnet

import "busbar.dev/internal/lazyre"

// The lines of perfquery. Port 0 and a route by hops instead of a LID are not read.
//
//	# Port extended counters: Lid 1719 port 2 (CapMask: …)
//	SymbolErrorCounter:..............1234
var (
	perfHead    = lazyre.New(`^# .*ounters: Lid ([1-9]\d{0,4}) port ([1-9]\d{0,2})\b`)
	perfCounter = lazyre.New(`^(\w{1,64}):[. \t]*(\d+)$`)
)

// perf reads the port counters that perfquery prints, with or without -x, of any number of ports. perfquery identifies
// a port by LID and number; the fragment gives it to a switch named lid and the number, and says so where it may be an
// adapter's.
func (f *fabric) perf(text string, num int) {
	m := perfHead.FindStringSubmatch(text)
	if m == nil {
		if c := perfCounter.FindStringSubmatch(text); c != nil && f.cur >= 0 {
			f.ports[f.cur].count(c[1], c[2])
		}
		return
	}
	f.used++
	if f.cur = -1; m[2] == "255" {
		f.notice(allPorts, num, "")
		return
	}
	id := "lid" + m[1]
	f.cur = f.addEnd(end{kind: aSwitch, id: id, desc: id, lid: decimal(m[1]), num: decimal(m[2])}, num, true)
}
