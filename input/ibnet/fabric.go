package ibnet

import (
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
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

// node is a switch, an adapter or a router.
type node struct {
	kind    kind
	own     bool // has lines of its own, not only a neighbour's mention
	guid    uint64
	vendor  uint32
	device  uint32
	ports   int   // as stated; 0 unknown
	lid     int32 // of a switch: of all its ports
	id      string
	desc    string
	first   int32 // first of its ports, -1 none
	last    int32
	line    int32
	counted int32 // ports it has here
}

// port is one end of a cable, or a port with nothing on it.
type port struct {
	node, next int32 // next port of the node, -1 at the end
	peer       int32 // the port at the other end of the cable, -1 none known
	line       int32
	lid        int32
	num        int16
	own        bool // has a line of its own
	state      cluster.State
	guid       uint64
	is         width // as trained
	could      width // what both ends could do
	counters   map[string]uint64
}

// fabric is what all formats are read into. Nodes and ports are in the order of
// their first mention.
type fabric struct {
	nodes  []node
	ports  []port
	at     map[uint64]int32 // node<<16 | port number → port
	byID   map[string]int32
	byGUID map[uint64]int32
	seen   counts
	full   bool // a limit is reached; the reader stops
	last   int  // number of the line at hand
}

// counts is what the reader noticed on the way; each becomes one warning.
type counts struct {
	portLines int
	notes     int // "Could be" remarks
	bad       noticed
	clash     noticed
	differ    noticed
	beyond    noticed
	wide      noticed
	unknown   noticed
}

// noticed counts occurrences and keeps the first.
type noticed struct {
	n, line int
	what    string
}

func (n *noticed) addNotice(line int, what string) {
	if n.n == 0 {
		n.line, n.what = line, what
	}
	n.n++
}

func newFabric() *fabric {
	return &fabric{at: map[uint64]int32{}, byID: map[string]int32{}, byGUID: map[uint64]int32{}}
}

// read hands the lines of a text to line, until a limit is reached.
func (f *fabric) read(name string, r io.Reader, line func(text string, num int)) error {
	return lines.Each(name, r, func(num int, text string) error {
		f.last = num
		if line(text, num); f.full {
			return f.errTooMany(name)
		}
		return nil
	})
}

// errTooMany stops a reader whose input cannot be a fabric.
func (f *fabric) errTooMany(name string) error {
	return fmt.Errorf("%s:%d: more than %d nodes or %d ports; expected the output of one fabric; split the file", name,
		f.last, maxNodes, maxPorts)
}

// addNode appends a node; -1 when there are too many.
func (f *fabric) addNode(k kind, line int) int32 {
	if len(f.nodes) >= maxNodes {
		f.full = true
		return -1
	}
	f.nodes = append(f.nodes, node{kind: k, first: -1, last: -1, line: int32(line)})
	return int32(len(f.nodes) - 1)
}

// named finds or adds the node of a quoted id such as S-0002c90300100004, whose
// letter is the kind and whose digits are the GUID. Net files of ibsim use any
// text instead.
func (f *fabric) named(id string, k kind, line int) int32 {
	if n, ok := f.byID[id]; ok {
		if f.nodes[n].kind == someNode {
			f.nodes[n].kind = k
		}
		return n
	}
	n := f.addNode(k, line)
	if n < 0 {
		return n
	}
	nd := &f.nodes[n]
	nd.id = plain(id)
	f.byID[strings.Clone(id)] = n
	if len(id) == 18 && id[1] == '-' {
		if g, rest, ok := hex(id[2:]); ok && len(rest) == 0 {
			nd.guid = g
			if k == someNode {
				nd.kind = kindOf(id[0])
			}
		}
	}
	return n
}

// kindWord are the words of ibdiagnet and ibnetdiscover -p for kinds of nodes.
var kindWord = map[string]kind{"SW": aSwitch, "CA": anAdapter, "RT": aRouter}

// kindOf reads the letter of a node's id.
func kindOf(c byte) kind {
	switch c {
	case 'S':
		return aSwitch
	case 'H':
		return anAdapter
	case 'R':
		return aRouter
	}
	return someNode
}

// withGUID finds or adds the node of a GUID.
func (f *fabric) withGUID(g uint64, k kind, line int) int32 {
	if n, ok := f.byGUID[g]; ok {
		if f.nodes[n].kind == someNode {
			f.nodes[n].kind = k
		}
		return n
	}
	n := f.addNode(k, line)
	if n >= 0 {
		f.byGUID[g] = n
		if k == aSwitch {
			f.nodes[n].guid = g
		}
	}
	return n
}

// port finds or adds a port; -1 when the number cannot be one, or when there are
// too many.
func (f *fabric) port(n int32, num, line int) int32 {
	if num < 1 || num > maxPort {
		f.seen.bad.addNotice(line, "a port number that no switch has")
		return -1
	}
	key := uint64(n)<<16 | uint64(num)
	if p, ok := f.at[key]; ok {
		return p
	}
	if len(f.ports) >= maxPorts {
		f.full = true
		return -1
	}
	p := int32(len(f.ports))
	f.at[key] = p
	f.ports = append(f.ports, port{node: n, next: -1, peer: -1, line: int32(line), num: int16(num)})
	nd := &f.nodes[n]
	if nd.first < 0 {
		nd.first = p
	} else {
		f.ports[nd.last].next = p
	}
	nd.last = p
	nd.counted++
	if nd.ports > 0 && num > nd.ports {
		f.seen.beyond.addNotice(line, fmt.Sprintf("port %d of %s, which states %d ports", num, nd.title(), nd.ports))
	}
	return p
}

// connect joins two ports by a cable. Both ends usually say so; an end that is
// said to lead to two places keeps the first.
func (f *fabric) connect(a, b int32, line int) {
	if a < 0 || b < 0 || a == b {
		f.seen.bad.addNotice(line, "a cable from a port to itself")
		return
	}
	pa, pb := &f.ports[a], &f.ports[b]
	switch {
	case pa.peer < 0 && pb.peer < 0:
		pa.peer, pb.peer = b, a
	case pa.peer == b:
	default:
		f.seen.clash.addNotice(line, f.where(a)+" and "+f.where(b))
	}
}

// mention records what a neighbour's line says about a node, where its own lines
// have not said it.
func (n *node) mention(desc string) {
	if n.desc == "" && len(desc) > 0 {
		n.desc = plain(desc)
	}
}

// title names a node in messages.
func (n *node) title() string {
	switch {
	case n.desc != "":
		return n.desc
	case n.id != "":
		return n.id
	}
	return guidText(n.guid)
}

// where names a port in messages.
func (f *fabric) where(p int32) string {
	return fmt.Sprintf("%s[%d]", f.nodes[f.ports[p].node].title(), f.ports[p].num)
}
