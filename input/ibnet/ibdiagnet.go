package ibnet

import (
	"io"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
)

// lstEnd is one of the two ends on a line of the list. Numbers are hexadecimal; a description may hold braces.
const lstEnd = `\{\s*(SW|CA|RT)\s+([^{]*)(?:\{(.*?)\}\s+)?(LID:[^}]*)\}\s*`

// lstLine is, on one line,
//
//	{ SW Ports:41 SystemGUID:… NodeGUID:b859… PortGUID:… VenID:000002c9 DevID:d2f2 Rev:000000a0 {leaf1} LID:0002 PN:14 }
//	{ CA Ports:01 … {dgx01 mlx5_0} LID:0005 PN:01 } PHY=4x LOG=ACT SPD=100
//
// SPD is Gb/s a lane.
var (
	lstLine = lazyre.New(`^` + lstEnd + lstEnd + `(.*)$`)
	lstPair = lazyre.New(`(\w+)[:=](\S+)`)
)

// MatchLST reports whether ibdiagnet2.lst, ibdiagnet's list of links, is in the text.
func MatchLST(data []byte) bool { return matches(data, lstLine, "NodeGUID:") }

// ReadLST reads ibdiagnet2.lst.
func ReadLST(name string, r io.Reader) (*cluster.Fragment, error) {
	f := newFabric()
	err := f.read(name, r, func(text string, num int) {
		m := lstLine.FindStringSubmatch(text)
		if m == nil {
			return
		}
		l := row{near: listed(m[1:5]), far: listed(m[5:9]), line: num}
		tail := pairsIn(m[9])
		l.is, _ = parseWidth(tail["PHY"] + tail["SPD"])
		if l.near.guid != 0 && l.far.guid != 0 && l.near.num > 0 && l.far.num > 0 {
			f.hold(l)
		}
	})
	if err != nil {
		return nil, err
	}
	return f.finished(name, "ibdiagnet2.lst", "lines such as { SW Ports:41 … PN:01 } { CA … } PHY=4x LOG=ACT "+
		"SPD=50; give the whole file")
}

// pairsIn are the keys and values of Ports:41 or PHY=4x.
func pairsIn(text string) map[string]string {
	pairs := map[string]string{}
	for _, m := range lstPair.FindAllStringSubmatch(text, -1) {
		pairs[m[1]] = m[2]
	}
	return pairs
}

// listed is an end of which the kind, what stands before and behind the description, and the description are given.
func listed(m []string) end {
	is := pairsIn(m[1] + m[3])
	return end{
		kind: kinds[m[0]], desc: plain(m[2]), guid: hex(is["NodeGUID"]), portGUID: hex(is["PortGUID"]),
		vendor: uint32(hex(is["VenID"])), device: uint32(hex(is["DevID"])), lid: int(hex(is["LID"]) & 0xffff),
		ports: int(min(hex(is["Ports"]), maxPort+1)), num: int(min(hex(is["PN"]), maxPort+1)),
	}
}
