package ibnet

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
)

var (
	dbNodes = lazyre.New(`START_NODES\r?\n`)
	dbLinks = lazyre.New(`START_LINKS\r?\n`)
)

// MatchDB reports whether the nodes or links of ibdiagnet2.db_csv, ibdiagnet's database, are in the text.
func MatchDB(data []byte) bool { return dbNodes.Match(data) && dbLinks.Match(data) }

// ReadDB reads ibdiagnet2.db_csv: sections of comma-separated rows below the names of their columns. Sections other
// than those of nodes, ports and links are left out.
func ReadDB(name string, r io.Reader) (*cluster.Fragment, error) {
	d := database{fabric: newFabric(), widths: map[[2]uint64]width{}}
	if err := d.read(name, r, d.line); err != nil {
		return nil, err
	}
	for i := range d.rows {
		near := &d.rows[i].near
		d.rows[i].is = d.widths[[2]uint64{near.guid, uint64(near.num)}]
	}
	return d.finished(name, "ibdiagnet2.db_csv", "rows between START_LINKS and END_LINKS, and the nodes that they name; "+
		"give the whole file")
}

// database holds links until all nodes are known: sections may come in any order.
type database struct {
	*fabric
	section string
	columns columns // of the section at hand; nil before its names
	cells   []string
	widths  map[[2]uint64]width // by node and port
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

func (d *database) line(text string, num int) {
	switch {
	case strings.HasPrefix(text, "START_"):
		d.section, d.columns = strings.TrimPrefix(text, "START_"), nil
		return
	case strings.HasPrefix(text, "END_"):
		d.section = ""
		return
	case d.section != "NODES" && d.section != "PORTS" && d.section != "LINKS" || text == "":
		return
	}
	c := csv.NewReader(strings.NewReader(text))
	c.LazyQuotes = true
	var err error
	if d.cells, err = c.Read(); err != nil {
		d.notice(badLine, num, "a row that is not comma-separated")
		return
	}
	switch {
	case d.columns == nil:
		d.columns = columnsOf(d.cells)
	case d.section == "NODES":
		d.node()
	case d.section == "PORTS":
		d.portRow()
	default:
		l := row{near: d.end("1"), far: d.end("2"), line: num}
		if l.near.num < 1 || l.far.num < 1 || l.near.guid == 0 || l.far.guid == 0 {
			d.notice(badLine, num, "a link without two nodes and ports")
			return
		}
		d.hold(l)
	}
}

// end is one of the two ends of a link.
func (d *database) end(which string) end {
	return end{guid: d.number("nodeguid" + which), num: int(min(d.number("portnum"+which), maxPort+1))}
}

func (d *database) node() {
	e := end{
		guid: d.number("nodeguid"), desc: plain(d.text("nodedesc")), ports: int(min(d.number("numports"), maxPort+1)),
		device: uint32(d.number("deviceid")), vendor: uint32(d.number("vendorid")),
	}
	switch d.text("nodetype") {
	case "1":
		e.kind, e.portGUID = anAdapter, d.number("portguid")
	case "2":
		e.kind = aSwitch
	case "3":
		e.kind = aRouter
	}
	if len(d.known) < maxNodes {
		d.known[e.guid] = &e
	}
}

// portRow keeps the trained width. Source: InfiniBand Architecture Specification volume 1, PortInfo LinkWidthActive.
func (d *database) portRow() {
	code := d.number("linkspeedactv")
	coded := func(l lane) bool { return uint64(l.Code) == code }
	w := width{
		lanes: map[uint64]uint8{1: 1, 2: 4, 4: 8, 8: 12, 16: 2}[d.number("linkwidthactv")],
		speed: speed(max(slices.IndexFunc(lanes(), coded), 0)),
	}
	if w.known() && len(d.widths) < maxPorts {
		d.widths[[2]uint64{d.number("nodeguid"), d.number("portnum")}] = w
	}
}

// text is a cell of the row at hand.
func (d *database) text(column string) string { return d.columns.cell(d.cells, column) }

// number is a cell's decimal or 0x number, 0 where there is none.
func (d *database) number(column string) uint64 {
	v, err := strconv.ParseUint(d.text(column), 0, 64)
	if err != nil {
		return 0
	}
	return v
}
