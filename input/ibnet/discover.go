package ibnet

import (
	"cmp"

	"busbar.dev/internal/lazyre"
)

// The lines of ibnetdiscover and of net files:
//
//	switchguid=0x2c90200423e20(2c90200423e20)	# IS5600 Spine 1 Chip 1
//	Switch	64 "S-0002…"		# "leaf4" enhanced port 0 lid 4 lmc 0
//	[35]	"S-2c5eab0300c26280"[32]		# "spine2" lid 236 4xNDR
//	[1](2c90300300011) 	"S-0002c90300100001"[1]		# lid 7 lmc 0 "leaf1" lid 1 4xHDR
//	[3]	"Switch2"[3] w=4
//
// A bracket behind a port's number is what a chassis calls it. ibsim leaves port 1 of a neighbour out.
var (
	idLine   = lazyre.New(`^(vendid|devid|switchguid|caguid|rtguid)=(?:0x)?([0-9a-fA-F]{1,16})`)
	nodeLine = lazyre.New(`^(Switch|Ca|Hca|Rt)\s+([1-9]\d{0,8})\s+"([^"]+)"[^#]*(?:#[^"]*(?:"(.*)"(?:[^"]*lid (\d+))?)?)?`)
	portLine = lazyre.New(`^` + portEnd + `"(?:([^"]+)"(?:` + portEnd + `)?([^\[#]*)` +
		`(?:$|#\s*(?:lid (\d+)[^"]*)?(?:"(.*)"(?:\s*lid (\d+)\s*(\S*))?)?))?`)
	lanesOption = lazyre.New(`\bw=(1|2|4|8|12)\b`)
)

// portEnd is a port's number and its GUID.
const portEnd = `\[([1-9]\d{0,8})\](?:\[[^\]]*\])?\s*(?:\((?:0x)?([0-9a-fA-F]{1,16})\))?\s*`

// discover reads ibnetdiscover's topology, or a net file of ibsim: identifiers, then a node's header, then its ports.
func (f *fabric) discover(text string, num int) {
	if m := portLine.FindStringSubmatch(text); m != nil && f.cur >= 0 {
		f.addCable(m, num)
	} else if m := nodeLine.FindStringSubmatch(text); m != nil {
		f.addHeading(m, num)
		f.ids = end{vendor: f.ids.vendor}
	} else if m := idLine.FindStringSubmatch(text); m != nil {
		switch v := hex(m[2]); m[1] {
		case "vendid":
			f.ids.vendor = uint32(v)
		case "devid":
			f.ids.device = uint32(v)
		default:
			f.ids.guid = v
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

// addHeading takes a node's line, cut into parts.
func (f *fabric) addHeading(m []string, num int) {
	e := named(m[3])
	e.kind, e.guid, e.ports = kinds[m[1]], cmp.Or(e.guid, f.ids.guid), decimal(m[2])
	f.used++
	if f.cur = f.addNode(e, num, true); f.cur < 0 {
		return
	}
	nd := &f.nodes[f.cur]
	nd.kind, nd.line, nd.desc = e.kind, num, cmp.Or(plain(m[4]), nd.desc)
	nd.vendor, nd.device = f.ids.vendor, f.ids.device
	if e.ports > maxPort {
		nd.ports = 0
	}
	if e.kind == aSwitch {
		nd.lid = decimal(m[5])
	}
}

// addCable takes one cable end of a node, cut into parts.
func (f *fabric) addCable(m []string, num int) {
	if m[3] == "" {
		f.notice(badLine, num, "a port line without the neighbour's whole name and port")
		return
	}
	r := row{
		near: end{at: f.cur + 1, num: decimal(m[1]), portGUID: hex(m[2]), lid: decimal(m[7])}, far: named(m[3]), line: num,
	}
	r.far.num, r.far.portGUID = max(decimal(m[4]), 1), hex(m[5])
	r.far.desc, r.far.lid = m[8], decimal(m[9])
	var ok bool
	if r.is, ok = parseWidth(m[10]); !ok {
		if w := lanesOption.FindStringSubmatch(m[6]); w != nil {
			r.is.lanes = decimal(w[1])
		}
	}
	f.addRow(r)
}
