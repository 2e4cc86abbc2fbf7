package ibnet

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/num"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
)

// Limits that hold before anything is allocated for a line.
const (
	maxNodes = 1 << 17 // a subnet has 49,151 addresses
	maxPorts = 1 << 20 // of all nodes together
	maxPort  = 1023    // number of a port; the standard ends at 254
	maxCAs   = 128     // adapters of one host; more share a name, not a host
)

type kind uint8

const (
	someNode kind = iota // the format does not say
	aSwitch
	anAdapter
	aRouter
)

// kinds are the formats' words for kinds of nodes, and the letters before their ids.
var kinds = map[string]kind{
	"SW": aSwitch, "CA": anAdapter, "RT": aRouter, "Router": aRouter,
	"Switch": aSwitch, "Ca": anAdapter, "Hca": anAdapter, "Rt": aRouter,
	"S": aSwitch, "H": anAdapter, "R": aRouter,
}

// row is what one line of any format says: a port, and where a cable leads from it the port at the other end, else
// far.num is 0.
type row struct {
	near, far end
	is, could width
	state     cluster.State
	trained   bool // it says how the near port trained, or that nobody knows
	line      int
}

// end is a port with what a line says of its node; zero parts were not there.
type end struct {
	at             int // one more than the index of the node, where a heading says which it is
	kind           kind
	id             string // of the node, as ibnetdiscover and net files of ibsim have it
	guid, portGUID uint64 // some formats print only the port's of an adapter
	vendor, device uint32
	ports, num     int
	lid            int
	desc           string
}

// node is a switch, an adapter or a router.
type node struct {
	kind     kind
	own      bool // has lines of its own, not only a neighbour's mention
	guid     uint64
	vendor   uint32
	device   uint32
	ports    int // as stated; 0 unknown
	lid      int // of a switch: of all its ports
	id       string
	desc     string
	line     int
	has      []int // ports that lines name
	sw, host int   // index into Switches and Hosts, -1
	nic      int   // position among the host's NICs
}

// port is one end of a cable, or a port with nothing on it.
type port struct {
	node     int
	peer     int // the port at the other end of the cable, -1 none known
	line     int
	lid      int
	num      int
	own      bool // has a line of its own
	state    cluster.State
	guid     uint64
	is       width // as trained
	could    width // what both ends could do
	counters map[string]uint64
}

// fabric is the table that all formats are read into. Nodes and ports are in the order of
// their first mention.
type fabric struct {
	nodes  []node
	ports  []port
	at     map[uint64]int // node<<16 | port number → port
	byKey  map[string]int // by id, else by GUID
	loose  []looseEnd     // of cables whose other end is to be found
	cur    int            // node that the next lines are of, -1 none
	ids    end            // what stands before a node's header
	orphan []row          // without the node above
	used   int            // lines
	seen   [allNotices]noticed
	full   bool // a limit is reached; the reader stops
	out    *cluster.Fragment
	format string
}

// Format is what one tool prints.
type Format struct {
	name, want string                                // want is how a line of it looks
	mark       *lazyre.Regexp                        // of a line by which it is recognised
	words      []string                              // of which such a line has one
	scan       bool                                  // it lists a fabric, and not only some counters
	take       func(f *fabric, text string, num int) // takes a line
}

// The formats.
var (
	Discover = Format{
		"ibnetdiscover", "Switch 36 \"S-0002c903…\" or Ca 1 \"H-0002c903…\"", nodeLine,
		[]string{"Switch", "Ca", "Hca"},
		true,
		(*fabric).discover,
	}
	Ports = Format{
		"ibnetdiscover -p", "SW 12 1 0x0002c903… 4x HDR - CA …", reportLine,
		[]string{"SW ", "CA "},
		true,
		(*fabric).report,
	}
	LinkInfo = Format{
		"iblinkinfo", "2 1[ ] ==( 4X 53.125 Gbps Active/ LinkUp)==> …", linkLine,
		[]string{")==>"},
		true,
		(*fabric).linkInfo,
	}
	Errors = Format{
		"ibqueryerrors", "Errors for 0x2c90300100003 \"leaf3\"", errorHead,
		[]string{"Errors for ", "ports checked"},
		false,
		(*fabric).errors,
	}
	Perf = Format{"perfquery", "# Port counters: Lid 3 port 2", perfHead, []string{"ounters: "}, false, (*fabric).perf}
)

// Match reports whether the format is somewhere in the text.
func (x *Format) Match(data []byte) bool {
	return slices.ContainsFunc(x.words, func(word string) bool {
		return lines.Find(data, word, func(text string) bool { return x.mark.MatchString(strings.TrimSpace(text)) })
	})
}

// Read reads the fabric of a text, as far as it is in it.
func (x *Format) Read(name string, r io.Reader) (*cluster.Fragment, error) {
	f, err := x.fabric(name, r)
	if err != nil {
		return nil, err
	}
	if x.scan {
		f.incomplete()
	}
	return f.fragment(name, x.name), nil
}

// fabric is the table of a text.
func (x *Format) fabric(name string, r io.Reader) (*fabric, error) {
	f := &fabric{at: map[uint64]int{}, byKey: map[string]int{}, cur: -1}
	tooMany := func(num int) error {
		if !f.full {
			return nil
		}
		return fmt.Errorf("%s:%d: more than %d nodes or %d ports; expected the output of one fabric; split the file", name,
			num, maxNodes, maxPorts)
	}
	last := 0
	err := lines.Each(name, r, func(num int, text string) error {
		last = num
		x.take(f, strings.TrimSpace(text), num)
		return tooMany(num)
	})
	if err == nil {
		f.joinOrphans()
		f.guessKinds()
		f.joinLoose()
		err = tooMany(last)
	}
	if err == nil && f.used == 0 {
		err = fmt.Errorf("%s: no line of %s; expected such as %s; give the whole output", name, x.name, x.want)
	}
	return f, err
}

// addRow adds a row.
func (f *fabric) addRow(r row) {
	near := f.addEnd(r.near, r.line, true)
	if near < 0 {
		return
	}
	f.used++
	p := &f.ports[near]
	if r.far.num > 0 || p.peer < 0 {
		p.state = r.state
	}
	switch {
	case r.trained && r.state != cluster.Down: // the standard lets a down port answer anything else
		f.train(near, r)
	case r.is.lanes > 0 && !r.trained:
		p.is = r.is
	}
	if r.far.num == 0 {
		return
	}
	if r.far.kind == someNode && r.far.id == "" {
		f.loose = append(f.loose, looseEnd{r.far, near, r.line})
	} else if far := f.addEnd(r.far, r.line, false); far >= 0 {
		f.connect(near, far, r.line)
	}
}

// train records how a port trained.
func (f *fabric) train(p int, r row) {
	pt := &f.ports[p]
	pt.is, pt.could = r.is, r.could
	if pt.could.lanes > 4 && pt.is.lanes <= 4 {
		// Chips list 12X among their widths, but a port of today has four lanes, and
		// the simulator says so of every link.
		pt.could.lanes = 4
	}
	if !r.is.known() {
		f.notice(unknownSpeed, r.line, f.where(p))
	}
}

// addEnd finds or adds the port of an end, -1 when it cannot be one.
func (f *fabric) addEnd(e end, line int, own bool) int {
	n := e.at - 1
	if n < 0 {
		if n = f.addNode(e, line, own); n < 0 {
			return -1
		}
	}
	p := f.addPort(n, e, line)
	if p >= 0 {
		f.ports[p].own = f.ports[p].own || own
	}
	return p
}

// addNode finds the node of an end by its id or GUID, or adds it; -1 when there are too many. What earlier lines said
// of it stays. own says that the line is the node's, and no neighbour's.
func (f *fabric) addNode(e end, line int, own bool) int {
	key := e.id
	if key == "" {
		key = guidText(cmp.Or(e.guid, e.portGUID))
	}
	n, ok := f.byKey[key]
	if !ok {
		if f.full = f.full || len(f.nodes) >= maxNodes; f.full {
			return -1
		}
		n = len(f.nodes)
		f.nodes = append(f.nodes, node{id: plain(e.id), line: line, sw: -1, host: -1})
		if key != "" {
			f.byKey[strings.Clone(key)] = n
		}
	}
	nd := &f.nodes[n]
	nd.own = nd.own || own
	nd.kind, nd.guid, nd.ports = cmp.Or(nd.kind, e.kind), cmp.Or(nd.guid, e.guid), cmp.Or(nd.ports, e.ports)
	if nd.desc == "" {
		nd.desc = plain(e.desc)
	}
	if nd.device == 0 {
		nd.vendor, nd.device = e.vendor, e.device
	}
	return n
}

// addPort finds or adds a node's port; -1 when the number cannot be one, or when there are
// too many.
func (f *fabric) addPort(n int, e end, line int) int {
	if e.num < 1 || e.num > maxPort {
		f.notice(badLine, line, "a port number that no switch has")
		return -1
	}
	key := portKey(n, e.num)
	nd := &f.nodes[n]
	p, ok := f.at[key]
	if !ok {
		if f.full = f.full || len(f.ports) >= maxPorts; f.full {
			return -1
		}
		p = len(f.ports)
		f.at[key] = p
		f.ports = append(f.ports, port{node: n, peer: -1, line: line, num: e.num})
		nd.has = append(nd.has, p)
	}
	pt := &f.ports[p]
	if e.lid > 0 {
		pt.lid = e.lid
	}
	if nd.kind != aSwitch {
		pt.guid = cmp.Or(e.portGUID, pt.guid)
	} else if e.lid > 0 {
		nd.lid = pt.lid
	}
	return p
}

// portKey is a port's key in at.
func portKey(n int, num int) uint64 { return uint64(n)<<16 | uint64(num) }

// connect joins two ports by a cable. Both ends usually say so; an end that is
// said to lead to two places keeps the first.
func (f *fabric) connect(a, b int, line int) {
	if a < 0 || b < 0 || a == b {
		f.notice(badLine, line, "a cable from a port to itself")
		return
	}
	pa, pb := &f.ports[a], &f.ports[b]
	switch {
	case pa.peer < 0 && pb.peer < 0:
		pa.peer, pb.peer = b, a
	case pa.peer == b:
	default:
		f.notice(clash, line, f.where(a)+" and "+f.where(b))
	}
}

// title names a node in messages.
func (n *node) title() string { return cmp.Or(n.desc, n.id, guidText(n.guid)) }

// where names a port in messages.
func (f *fabric) where(p int) string {
	return fmt.Sprintf("%s[%d]", f.nodes[f.ports[p].node].title(), f.ports[p].num)
}

var decimal = num.Int

// hex is the number of up to sixteen hexadecimal digits; 0 for others.
func hex(s string) (v uint64) {
	if s != "" { // most ports have none, and an error takes memory
		v, _ = strconv.ParseUint(s, 16, 64)
	}
	return v
}

// nicGUID is the form in which the readers of hosts keep the GUIDs of NICs.
func nicGUID(g uint64) string {
	if g == 0 {
		return ""
	}
	return "0x" + guidText(g)
}

// guidText is the form in which the GUIDs of switches are kept.
func guidText(g uint64) string {
	if g == 0 {
		return ""
	}
	return fmt.Sprintf("%016x", g)
}
