package ibnet

import (
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
)

// linkLine is a line of iblinkinfo, without and with -l; the "Link info" lines of ibqueryerrors are none:
//
//	2    1[  ] ==( 4X          10.0 Gbps Active/  LinkUp)==>       3    1[  ] "node1 HCA-1" ( )
//	2    8[  ] ==(                Down/ Polling)==>             [  ] "" ( )
//	0x0002c90300300101     22    1[  ] ==( 4X … )==>       4    4[  ] "leaf4" (Could be 12X )
//	0x0002c90300300101 "   node16 mlx5_0"     22    1[  ] ==( … )==>  0x0002c90300100004      4    4[  ] "leaf4" ( )
//
// A bracket holds a chassis' label of the port. A width, a speed or a state that is absent or in other words
// ("undefined (8)") is unknown, and its link is there. A port with nothing on it has an empty bracket, and no number,
// behind the arrow.
var (
	linkLine = lazyre.New(`^(?:0x([0-9a-fA-F]{1,16})\s+)?(".*")?\s*(\d{1,9})\s+([1-9]\d{0,8})\[.*?==\(\s*` +
		`(?:(\d+[xX])\s+)?(?:(\S+) Gbps\s+(?:\((FDR10)\))?)?[^/]*?([^\s/]+)\s*/.*?\)==>\s*` +
		`(?:(?:0x([0-9a-fA-F]{1,16})\s+)?(\d{1,9})\s+([1-9]\d{0,8})\b[^"]*"(.*)"([^"]*))?`)
	linkHead = lazyre.New(`^(?:(Switch): 0x([0-9a-fA-F]{1,16})|(CA|Router):)\s*(.*):$`)
)

// linkInfo reads iblinkinfo's output. Without -l a line names its neighbour by LID and description only, so that
// cables are resolved when all nodes are known. With -l every line names its port, and nothing says of what kind it is.
func (f *fabric) linkInfo(text string, num int) {
	r, named, ok := parseLink(text)
	r.line = num
	switch {
	case !ok:
		if m := linkHead.FindStringSubmatch(text); m != nil {
			f.cur = f.addNode(end{kind: kinds[m[1]+m[3]], guid: hex(m[2]), desc: m[4]}, num, true)
		}
		return
	case !named && f.cur >= 0:
		r.near.at = f.cur + 1
	case r.near.portGUID == 0 && r.near.lid > 0:
		if f.full = len(f.orphan) >= maxPorts; !f.full {
			f.orphan = append(f.orphan, r)
		}
		return
	case r.near.portGUID == 0:
		f.notice(badLine, num, "a link without the node above")
		return
	}
	f.addRow(r)
}

// joinOrphans adds the links without the node above, as grep leaves them: of the node that has their LID.
func (f *fabric) joinOrphans() {
	byLID := f.byLID()
	for _, r := range f.orphan {
		if n, ok := byLID[r.near.lid]; ok {
			r.near.at, f.nodes[n].own = n+1, true
		} else {
			r.near.id = "lid" + strconv.Itoa(r.near.lid)
		}
		f.addRow(r)
	}
}

var linkStates = map[string]cluster.State{
	"Active": cluster.Up, "Down": cluster.Down, "Initialize": cluster.Init, "Init": cluster.Init, "Armed": cluster.Init,
}

// parseLink reads a line of a port. named says that it has the description of its own node, if an empty one.
func parseLink(text string) (r row, named, ok bool) {
	m := linkLine.FindStringSubmatch(text)
	if m == nil {
		return r, false, false
	}
	r.near = end{portGUID: hex(m[1]), desc: strings.Trim(m[2], `"`), lid: decimal(m[3]), num: decimal(m[4])}
	r.is, _ = parseWidth(m[5])
	r.is.speed = speeds()[m[6]]
	if m[7] != "" {
		r.is.speed = speeds()[m[7]]
	}
	r.state, r.trained = linkStates[m[8]], true
	if m[11] != "" {
		r.far = end{portGUID: hex(m[9]), lid: decimal(m[10]), num: decimal(m[11]), desc: plain(m[12])}
		r.could = couldBe(r.is, m[13])
	}
	return r, m[2] != "", true
}

// couldBe reads the remarks behind the neighbour's name: iblinkinfo adds one for
// the width and one for the speed when both ends support more than is in use, so
// that no remark means that the link runs as fast as it can.
func couldBe(is width, text string) width {
	for _, remark := range strings.Split(text, "Could be ")[1:] {
		word, _, _ := strings.Cut(remark, " ")
		word = strings.TrimRight(word, ")")
		if s := speeds()[word]; s != nil {
			is.speed = s
		} else if w, ok := parseWidth(word); ok {
			is.lanes = w.lanes
		}
	}
	return is
}
