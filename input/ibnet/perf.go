package ibnet

import (
	"fmt"
	"io"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
)

// The lines of perfquery. Port 0 and a route by hops instead of a LID are not read.
//
//	# Port extended counters: Lid 1719 port 2 (CapMask: …)
//	SymbolErrorCounter:..............1234
var (
	perfHead    = lazyre.New(`^# .*ounters: Lid ([1-9]\d{0,4}) port ([1-9]\d{0,2})\b`)
	perfCounter = lazyre.New(`^(\w{1,64}):[. \t]*(\d+)$`)
)

// MatchPerf reports whether perfquery's output is somewhere in the text.
func MatchPerf(data []byte) bool { return matches(data, perfHead, "ounters: ") }

// ReadPerf reads the port counters that perfquery prints, with or without -x,
// of any number of ports. perfquery identifies a port by LID and number; the
// fragment gives it to a switch named lid and the number, and says so where it may be an adapter's.
func ReadPerf(name string, r io.Reader) (*cluster.Fragment, error) {
	f := newFabric()
	cur, blocks := -1, 0
	err := f.read(name, r, func(text string, num int) {
		m := perfHead.FindStringSubmatch(text)
		if m == nil {
			if c := perfCounter.FindStringSubmatch(text); c != nil && cur >= 0 {
				f.ports[cur].count(c[1], c[2])
			}
			return
		}
		blocks++
		if cur = -1; m[2] == "255" {
			f.notice(allPorts, num, "")
			return
		}
		id := "lid" + m[1]
		cur = f.addEnd(end{kind: aSwitch, id: id, desc: id, lid: decimal(m[1]), num: decimal(m[2])}, num, true)
	})
	if err != nil {
		return nil, err
	}
	if blocks == 0 {
		return nil, fmt.Errorf("%s: no counters; expected perfquery's output, such as # Port counters: Lid 3 port 2; give "+
			"the output of perfquery LID PORT", name)
	}
	for i := range f.nodes {
		if nd := &f.nodes[i]; f.ports[nd.has[len(nd.has)-1]].num <= 2 {
			f.notice(someKind, nd.line, nd.title())
		}
	}
	return f.fragment(name, "perfquery"), nil
}
