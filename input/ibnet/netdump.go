package ibnet

import (
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
)

var (
	// dumpHead is "leaf1", Mellanox, 0x1, LID 10. A name may hold commas and quotes.
	dumpHead    = lazyre.New(`^"(.*)", [^,]*, 0x([0-9a-fA-F]{1,16}), LID (\d{1,5})$`)
	dumpColumns = lazyre.New(`^#.*\bIB# .*\bLWA .*\bNeighbor Guid .*\bN#`)
)

// MatchNetDump reports whether ibdiagnet2.net_dump, ibdiagnet's tables of every switch's ports, is in the text.
func MatchNetDump(data []byte) bool { return matches(data, dumpColumns, "Neighbor Guid") }

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
	d := netDump{fabric: newFabric()}
	if err := d.read(name, r, d.line); err != nil {
		return nil, err
	}
	return d.finished(name, "ibdiagnet2.net_dump", "a line such as \"leaf1\", Mellanox, 0xfc6a…, LID 9 and rows of "+
		"its ports; give the whole file")
}

// netDump reads line by line. What has no heading of its own is an adapter.
type netDump struct {
	*fabric
	now     *end
	columns columns
}

func (d *netDump) line(text string, num int) {
	if m := dumpHead.FindStringSubmatch(text); m != nil {
		guid := hex(m[2])
		if d.now = d.known[guid]; d.now == nil {
			d.now = &end{kind: aSwitch, guid: guid, lid: decimal(m[3]), desc: plain(m[1])}
			d.known[guid] = d.now
			d.full = len(d.known) > maxNodes
		}
	} else if dumpColumns.MatchString(text) {
		d.columns = columnsOf(strings.Split(text, ":"))
	} else if d.now != nil && d.columns != nil && strings.Contains(text, " : ") {
		d.port(text, num)
	}
}

// columns are where the columns of a table stand, by their names in lower case.
type columns map[string]int

func columnsOf(names []string) columns {
	c := columns{}
	for i, name := range names {
		c[strings.ToLower(strings.TrimSpace(name))] = i
	}
	return c
}

// cell is that of a row in a column, "" where there is none.
func (c columns) cell(row []string, name string) string {
	if i, ok := c[name]; ok && i < len(row) {
		return strings.TrimSpace(row[i])
	}
	return ""
}

// port takes a row; one without a neighbour only says that the port is there.
func (d *netDump) port(text string, num int) {
	cells := dumpCells(text)
	cell := func(name string) string { return d.columns.cell(cells, name) }
	here := decimal(cell("ib#"))
	if here < 1 || here > maxPort {
		d.notice(badLine, num, "a port without a number (IB#)")
		return
	}
	d.now.ports = max(d.now.ports, here)
	far := end{kind: anAdapter, guid: hex(cell("neighbor guid")), lid: decimal(cell("nlid"))}
	if far.guid == 0 {
		return
	}
	// Some releases name the cage, not the number; an adapter here has one port.
	there := cell("n#")
	far.num = max(decimal(there[strings.LastIndexByte(there, '/')+1:]), 1)
	far.desc = plain(strings.Trim(cell("neighbor description"), `"`))
	l := row{near: end{guid: d.now.guid, num: here}, far: far, line: num}
	l.is, _ = parseWidth(cell("lwa") + cell("lsa"))
	d.hold(l)
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
