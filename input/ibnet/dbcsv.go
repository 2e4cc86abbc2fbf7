package ibnet

import (
	"bytes"
	"encoding/csv"
	"io"
	"strings"

	"busbar.dev/cluster"
)

// MatchDB reports whether the nodes or links of ibdiagnet2.db_csv, ibdiagnet's database, are in the text.
func MatchDB(data []byte) bool {
	return bytes.Contains(data, []byte("START_NODES\n")) && bytes.Contains(data, []byte("START_LINKS\n")) ||
		bytes.Contains(data, []byte("START_NODES\r\n")) && bytes.Contains(data, []byte("START_LINKS\r\n"))
}

// ReadDB reads ibdiagnet2.db_csv: sections of comma-separated rows below the names of their columns. Sections other
// than those of nodes, ports and links are left out.
func ReadDB(name string, r io.Reader) (*cluster.Fragment, error) {
	d := database{fabric: newFabric(), nodesOf: map[uint64]cableEnd{}, widths: map[[2]uint64]width{}}
	if err := d.read(name, r, d.line); err != nil {
		return nil, err
	}
	for _, l := range d.links {
		a, b := l.ends[0], l.ends[1]
		d.cable(d.with(a), d.with(b), d.widths[[2]uint64{a.guid, uint64(a.num)}], l.line)
		if d.full {
			return nil, d.errTooMany(name)
		}
	}
	return d.finished(name, "ibdiagnet2.db_csv", "rows between START_LINKS and END_LINKS, and the nodes that they name; "+
		"give the whole file")
}

// database holds links until all nodes are known: sections may come in any order.
type database struct {
	*fabric
	section string
	columns map[string]int // of the section at hand; nil before its names
	nodesOf map[uint64]cableEnd
	widths  map[[2]uint64]width // by node and port
	links   []dbLink
}

type dbLink struct {
	ends [2]cableEnd
	line int
}

// with is an end with what the section of nodes says of it.
func (d *database) with(e cableEnd) cableEnd {
	full := d.nodesOf[e.guid]
	full.guid, full.num = e.guid, e.num
	return full
}

func (d *database) line(text string, num int) {
	text = strings.TrimSpace(text)
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
	row, err := c.Read()
	if err != nil {
		d.seen.bad.addNotice(num, "a row that is not comma-separated")
		return
	}
	if d.columns == nil {
		d.columns = map[string]int{}
		for i, name := range row {
			d.columns[strings.ToLower(strings.TrimSpace(name))] = i
		}
		return
	}
	switch d.section {
	case "NODES":
		d.node(row)
	case "PORTS":
		d.portRow(row)
	case "LINKS":
		l := dbLink{line: num}
		for i, suffix := range []string{"1", "2"} {
			l.ends[i] = cableEnd{guid: d.guid(row, "nodeguid"+suffix), num: d.number(row, "portnum"+suffix)}
			if l.ends[i].guid == 0 || l.ends[i].num < 1 {
				d.seen.bad.addNotice(num, "a link without two nodes and ports")
				return
			}
		}
		if len(d.links) >= maxPorts {
			d.full = true
			return
		}
		d.links = append(d.links, l)
	}
}

func (d *database) node(row []string) {
	guid := d.guid(row, "nodeguid")
	if guid == 0 || len(d.nodesOf) >= maxNodes {
		return
	}
	e := cableEnd{
		guid: guid, desc: plain(d.text(row, "nodedesc")), ports: min(max(d.number(row, "numports"), 0), maxPort+1),
		device: uint32(max(d.number(row, "deviceid"), 0)), vendor: uint32(max(d.number(row, "vendorid"), 0)),
	}
	switch d.number(row, "nodetype") {
	case 1:
		e.kind, e.portGUID = anAdapter, d.guid(row, "portguid")
	case 2:
		e.kind = aSwitch
	case 3:
		e.kind = aRouter
	}
	d.nodesOf[guid] = e
}

// portRow keeps the trained width. Sources: InfiniBand Architecture Specification volume 1, PortInfo LinkWidthActive;
// ibutils, IBLinkSpeed, whose extended speeds begin at bit 8.
func (d *database) portRow(row []string) {
	guid, num := d.guid(row, "nodeguid"), d.number(row, "portnum")
	w := width{
		lanes: map[int]uint8{1: 1, 2: 4, 4: 8, 8: 12, 16: 2}[d.number(row, "linkwidthactv")],
		speed: map[int]speed{
			1: sdr, 2: ddr, 4: qdr, 1 << 8: fdr, 1 << 9: edr, 1 << 10: hdr, 1 << 11: ndr, 1 << 12: xdr, 1 << 16: fdr10,
		}[d.number(row, "linkspeedactv")],
	}
	if w.known() && guid != 0 && num > 0 && len(d.widths) < maxPorts {
		d.widths[[2]uint64{guid, uint64(num)}] = w
	}
}

func (d *database) text(row []string, column string) string {
	if i, ok := d.columns[column]; ok && i < len(row) {
		return strings.TrimSpace(row[i])
	}
	return ""
}

func (d *database) guid(row []string, column string) uint64 {
	v, left, ok := hex(d.text(row, column))
	if !ok || left != "" {
		return 0
	}
	return v
}

// number is a cell's decimal or 0x number, -1 where there is none.
func (d *database) number(row []string, column string) int {
	s := d.text(row, column)
	if strings.HasPrefix(s, "0x") {
		if v, left, ok := hex(s); ok && left == "" && v < 1<<31 {
			return int(v)
		}
		return -1
	}
	n, left := number(s)
	if left != "" {
		return -1
	}
	return n
}
