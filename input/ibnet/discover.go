package ibnet

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
)

// The lines of ibnetdiscover and of net files:
//
//	switchguid=0x2c90200423e20(2c90200423e20)	# IS5600 Spine 1 Chip 1
//	Switch	64 "S-0002…"		# "leaf4" enhanced port 0 lid 4 lmc 0
//	[35]	"S-2c5eab0300c26280"[32]		# "spine2" lid 236 4xNDR
//	[1](2c90300300011) 	"S-0002c90300100001"[1]		# lid 7 lmc 0 "leaf1" lid 1 4xHDR
//	[3]	"Switch2"[3] w=4
var (
	idLine      = lazyre.New(`^(vendid|devid|switchguid|caguid|rtguid)=(?:0x)?([0-9a-fA-F]{1,16})`)
	nodeLine    = lazyre.New(`^(Switch|Ca|Hca|Rt)\s+([1-9]\d{0,8})\s+"([^"]+)"[^#]*#?(.*)`)
	lanesOption = lazyre.New(`\bw=(1|2|4|8|12)\b`)
)

// MatchDiscover reports whether ibnetdiscover's topology, or a net file of ibsim,
// is somewhere in the text.
func MatchDiscover(data []byte) bool { return matches(data, nodeLine, "Switch", "Ca", "Hca") }

// ReadDiscover reads ibnetdiscover's topology, or a net file of ibsim. name is
// the source's name in messages.
func ReadDiscover(name string, r io.Reader) (*cluster.Fragment, error) {
	d := discovery{fabric: newFabric(), cur: -1}
	if err := d.read(name, r, d.line); err != nil {
		return nil, err
	}
	if len(d.nodes) == 0 {
		return nil, fmt.Errorf("%s: no node lines; expected ibnetdiscover's topology, such as Switch 36 \"S-0002c903…\" "+
			"or Ca 1 \"H-0002c903…\"; give the whole output of ibnetdiscover", name)
	}
	if d.scan {
		return d.scanned(name, "ibnetdiscover"), nil
	}
	return d.scanned(name, "ibsim net"), nil
}

// discovery reads line by line: identifiers, then a node's header, then its ports.
type discovery struct {
	*fabric
	cur  int  // node whose port lines follow, -1 none
	scan bool // the header says that a tool scanned a fabric
	ids  end  // what stands before a header
}

// line takes one line.
func (d *discovery) line(text string, num int) {
	if strings.HasPrefix(text, "[") {
		if d.cur >= 0 {
			d.port(text, num)
		}
		return
	}
	d.scan = d.scan || strings.HasPrefix(text, "# Topology file:") || strings.HasPrefix(text, "# Initiated from")
	if m := nodeLine.FindStringSubmatch(text); m != nil {
		d.node(m, num)
	} else if m := idLine.FindStringSubmatch(text); m != nil {
		switch v := hex(m[2]); m[1] {
		case "vendid":
			d.ids.vendor = uint32(v)
		case "devid":
			d.ids.device = uint32(v)
		default:
			d.ids.guid = v
		}
	}
}

// named is the node of an id such as S-0002c90300100004, whose
// letter is the kind and whose digits are the GUID. Net files of ibsim use any
// text instead.
func named(id string) end {
	e := end{id: id}
	if len(id) == 18 && id[1] == '-' {
		if e.guid = hex(id[2:]); e.guid != 0 {
			e.kind = kinds[id[:1]]
		}
	}
	return e
}

// node takes a header, cut into parts.
func (d *discovery) node(m []string, num int) {
	e := named(m[3])
	e.kind, e.guid, e.ports = kinds[m[1]], cmp.Or(e.guid, d.ids.guid), decimal(m[2])
	_, desc, after := comment(m[4])
	n := d.addNode(e, num, true)
	if n < 0 {
		return
	}
	d.cur = n
	nd := &d.nodes[n]
	nd.kind, nd.line, nd.desc = e.kind, num, cmp.Or(plain(desc), nd.desc)
	nd.vendor, nd.device = d.ids.vendor, d.ids.device
	d.ids.guid, d.ids.device = 0, 0
	if e.ports > maxPort {
		nd.ports = 0
	}
	if lid, _ := lidIn(after); e.kind == aSwitch {
		nd.lid = lid
	}
}

// comment splits what follows # into the text before, inside and after the quotes.
func comment(b string) (before, desc, after string) {
	if first, last := strings.IndexByte(b, '"'), strings.LastIndexByte(b, '"'); first < last {
		return b[:first], b[first+1 : last], b[last+1:]
	}
	return b, "", ""
}

// lidIn finds "lid 7", and the word behind it.
func lidIn(text string) (lid int, word string) {
	if _, text, _ = strings.Cut(text, "lid "); text == "" {
		return 0, ""
	}
	number, rest, _ := strings.Cut(text, " ")
	word, _, _ = strings.Cut(strings.TrimSpace(rest), " ")
	return decimal(number), word
}

// port takes one cable end of the current node.
func (d *discovery) port(text string, num int) {
	text, note, _ := strings.Cut(text, "#")
	head, text, _ := strings.Cut(text, `"`)
	head = strings.TrimSpace(head)
	near, ok := bracketed(head)
	if !ok || !strings.HasSuffix(head, "]") && !strings.HasSuffix(head, ")") {
		return // a line of something else in the log
	}
	id, tail, whole := strings.Cut(text, `"`)
	there, ok := bracketed(tail)
	if !whole || id == "" || !ok && strings.HasPrefix(tail, "[") {
		d.notice(badLine, num, "a port line without the neighbour's whole name and port")
		return
	}
	before, desc, after := comment(note)
	near.lid, _ = lidIn(before)
	far := named(id)
	far.num, far.portGUID, far.desc = max(there.num, 1), there.portGUID, desc // ibsim leaves port 1 out
	var word string
	far.lid, word = lidIn(after)
	near.at = d.cur + 1
	r := row{near: near, far: far, line: num}
	if r.is, ok = parseWidth(word); !ok {
		if w := lanesOption.FindStringSubmatch(tail); w != nil {
			r.is.lanes = uint8(decimal(w[1]))
		}
	}
	d.addRow(r)
}

// bracketed reads a port's number, its GUID and what a chassis calls it: [35], [1](2c90300300011), [1][ext 5].
func bracketed(text string) (e end, ok bool) {
	number, rest, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(text), "["), "]")
	_, guid, _ := strings.Cut(rest, "(")
	guid, _, _ = strings.Cut(guid, ")")
	e = end{num: decimal(number), portGUID: hex(guid)}
	return e, ok && e.num > 0
}
