package ibnet

import (
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lines"
)

// MatchNetDump reports whether ibdiagnet2.net_dump, ibdiagnet's tables of every switch's ports, is in the text.
func MatchNetDump(data []byte) bool {
	return lines.Find(data, "Neighbor Guid", func(line string) bool {
		c := dumpColumns(line)
		return c != nil && c["ib#"] > 0 && c["n#"] > 0 && c["lwa"] > 0
	})
}

// ReadNetDump reads ibdiagnet2.net_dump: for every switch a line
//
//	"MF0;leaf1:MQM9700/U1", Mellanox, 0xfc6a1c0300000001, LID 9
//
// the names of columns, and a row a port:
//
//	#  : IB# : Sta : PhysSta : MTU : LWA : LSA : FEC mode : Retran : Neighbor Guid : N# : NLID : Neighbor Description
//	1/1 : 1  : ACT : LINK UP : 5   : 4x  : 100 : …        : NO-RTR : 0xb83f…       : 1  : 2566 : "dgx01 mlx5_0"
//
// Columns are found by name, since releases have more or fewer. The two ports of a splitter have two rows and two
// numbers (IB#).
func ReadNetDump(name string, r io.Reader) (*cluster.Fragment, error) {
	d := netDump{fabric: newFabric(), switches: map[uint64]*cableEnd{}}
	if err := d.read(name, r, d.line); err != nil {
		return nil, err
	}
	for i := range d.rows {
		l := &d.rows[i]
		near := *d.switches[l.near]
		near.num = l.num
		far := l.far
		if s := d.switches[far.guid]; s != nil {
			far.kind, far.desc, far.ports, far.lid = aSwitch, s.desc, s.ports, s.lid
		} else {
			far.kind = anAdapter
		}
		d.cable(near, far, l.is, l.line)
		if d.full {
			return nil, d.errTooMany(name)
		}
	}
	return d.finished(name, "ibdiagnet2.net_dump", "a line such as \"leaf1\", Mellanox, 0xfc6a…, LID 9 and rows of "+
		"its ports; give the whole file")
}

// netDump holds rows until all switches are known: what is no switch is an adapter.
type netDump struct {
	*fabric
	switches map[uint64]*cableEnd
	now      *cableEnd
	columns  map[string]int
	rows     []dumpRow
}

type dumpRow struct {
	near uint64
	num  int
	far  cableEnd
	is   width
	line int
}

func (d *netDump) line(text string, num int) {
	text = strings.TrimSpace(text)
	if e, ok := dumpHeading(text); ok {
		if len(d.switches) >= maxNodes {
			d.full = true
			return
		}
		if d.now = d.switches[e.guid]; d.now == nil {
			d.now = &e
			d.switches[e.guid] = d.now
		}
		return
	}
	if c := dumpColumns(text); c != nil {
		d.columns = c
		return
	}
	if d.now == nil || d.columns == nil || !strings.Contains(text, " : ") {
		return
	}
	d.port(text, num)
}

// port takes a row; one without a neighbour only says that the port is there.
func (d *netDump) port(text string, num int) {
	cells := dumpCells(text)
	cell := func(name string) string {
		if i, ok := d.columns[name]; ok && i < len(cells) {
			return cells[i]
		}
		return ""
	}
	here, left := number(cell("ib#"))
	if here < 1 || here > maxPort || left != "" {
		d.seen.bad.addNotice(num, "a port without a number (IB#)")
		return
	}
	d.now.ports = max(d.now.ports, here)
	guid, left, ok := hex(cell("neighbor guid"))
	there, rest := number(cell("n#"))
	if !ok || left != "" || guid == 0 {
		return
	}
	if i := strings.LastIndexByte(cell("n#"), '/'); rest != "" && i >= 0 {
		there, rest = number(cell("n#")[i+1:])
	}
	if there < 1 || rest != "" {
		there = 1 // some releases name the cage, not the number; an adapter here has one port
	}
	if len(d.rows) >= maxPorts {
		d.full = true
		return
	}
	lid, _ := number(cell("nlid"))
	far := cableEnd{
		guid: guid, num: there, lid: max(lid, 0) & 0xffff, desc: plain(strings.Trim(cell("neighbor description"), `"`)),
	}
	d.rows = append(d.rows, dumpRow{d.now.guid, here, far, width{lanesOf(cell("lwa")), lstSpeed[cell("lsa")]}, num})
}

// dumpHeading reads "leaf1", Mellanox, 0x1, LID 10. A name may hold commas and quotes: what follows it is read from the
// end.
func dumpHeading(text string) (cableEnd, bool) {
	e := cableEnd{kind: aSwitch}
	if !strings.HasPrefix(text, `"`) {
		return e, false
	}
	before, lid, ok := cutLast(text, ", LID ")
	if !ok {
		return e, false
	}
	before, guid, _ := cutLast(before, ", ")
	before, _, _ = cutLast(before, ", ") // the vendor
	v, left, ok := hex(guid)
	n, _ := number(lid)
	e.guid, e.lid, e.desc = v, max(n, 0)&0xffff, plain(strings.Trim(before, `"`))
	return e, ok && left == "" && v != 0
}

// dumpColumns is where each column stands, nil for a line that does not name them.
func dumpColumns(line string) map[string]int {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "#") || !strings.Contains(line, "Neighbor Guid") || len(line) > 1024 {
		return nil
	}
	columns := map[string]int{}
	for i, name := range strings.Split(line, ":") {
		columns[strings.ToLower(strings.TrimSpace(name))] = i
	}
	return columns
}

// dumpCells splits a row. The last cell is quoted and may hold the separator.
func dumpCells(text string) []string {
	head, quoted, found := strings.Cut(text, `"`)
	cells := strings.Split(head, " :")
	for i := range cells {
		cells[i] = strings.TrimSpace(strings.TrimPrefix(cells[i], ":"))
	}
	if found {
		cells[len(cells)-1] = quoted
	}
	return cells
}
