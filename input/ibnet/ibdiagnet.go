package ibnet

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lines"
)

// MatchLST reports whether ibdiagnet2.lst, ibdiagnet's list of links, is in the text.
func MatchLST(data []byte) bool {
	return lines.Find(data, "NodeGUID:", func(line string) bool {
		_, _, _, ok := lstLine(line)
		return ok
	})
}

// ReadLST reads ibdiagnet2.lst.
func ReadLST(name string, r io.Reader) (*cluster.Fragment, error) {
	f := newFabric()
	err := f.read(name, r, func(b string, num int) {
		if near, far, tail, ok := lstLine(b); ok {
			f.cable(near, far, lstWidth(tail), num)
		}
	})
	if err != nil {
		return nil, err
	}
	return f.finished(name, "ibdiagnet2.lst", "lines such as { SW Ports:41 … PN:01 } { CA … } PHY=4x LOG=ACT "+
		"SPD=50; give the whole file")
}

// finished is the fragment of a fabric whose every cable names both ends.
func (f *fabric) finished(name, format, want string) (*cluster.Fragment, error) {
	if f.seen.portLines == 0 {
		return nil, fmt.Errorf("%s: no cables; expected %s", name, want)
	}
	frag := f.fragment(name, format)
	f.warnIncomplete(frag)
	return frag, nil
}

// cableEnd is one end of a cable, with what the file says of its node.
type cableEnd struct {
	kind           kind
	guid, portGUID uint64
	vendor, device uint32
	ports, num     int
	lid            int
	desc           string
}

// cable adds a cable both ends of which are told in full.
func (f *fabric) cable(near, far cableEnd, is width, line int) {
	a, b := f.end(near, line), f.end(far, line)
	if a < 0 || b < 0 {
		return
	}
	f.seen.portLines++
	f.connect(a, b, line)
	if is.known() {
		f.ports[a].is, f.ports[b].is = is, is
	}
}

// end finds or adds the port of an end, -1 when it cannot be one.
func (f *fabric) end(e cableEnd, line int) int32 {
	n := f.withGUID(e.guid, e.kind, line)
	if n < 0 {
		return -1
	}
	nd := &f.nodes[n]
	nd.own, nd.guid = true, e.guid
	nd.mention(e.desc)
	nd.ports = cmp.Or(nd.ports, e.ports)
	if nd.device == 0 {
		nd.vendor, nd.device = e.vendor, e.device
	}
	p := f.port(n, e.num, line)
	if p < 0 {
		return -1
	}
	f.ports[p].own, f.ports[p].lid = true, int32(e.lid)
	switch {
	case e.kind == aSwitch:
		f.nodes[n].lid = int32(e.lid)
	case e.portGUID != 0:
		f.ports[p].guid = e.portGUID
	default:
		f.ports[p].guid = e.guid
	}
	return p
}

// lstLine reads, on one line,
//
//	{ SW Ports:41 SystemGUID:… NodeGUID:b859… PortGUID:… VenID:000002c9 DevID:d2f2 Rev:000000a0 {leaf1} LID:0002 PN:14 }
//	{ CA Ports:01 … {dgx01 mlx5_0} LID:0005 PN:01 } PHY=4x LOG=ACT SPD=100
//
// Numbers are hexadecimal, except SPD, which is Gb/s a lane.
func lstLine(b string) (near, far cableEnd, tail string, ok bool) {
	near, b, ok = lstEnd(b)
	if !ok {
		return near, far, b, false
	}
	far, b, ok = lstEnd(b)
	return near, far, b, ok
}

func lstEnd(b string) (e cableEnd, rest string, ok bool) {
	b = strings.TrimLeft(b, " \t")
	if !strings.HasPrefix(b, "{") {
		return e, b, false
	}
	word, b := field(b[1:])
	if e.kind = kindWord[word]; e.kind == someNode {
		return e, b, false
	}
	for {
		b = strings.TrimLeft(b, " \t")
		if strings.HasPrefix(b, "}") {
			return e, b[1:], e.guid != 0 && e.num > 0
		}
		if strings.HasPrefix(b, "{") { // a description may hold braces of its own; LID follows it
			end := strings.LastIndex(b[:cutBefore(b, " LID:")], "}")
			if end < 0 {
				return e, b, false
			}
			e.desc, b = b[1:end], b[end+1:]
			continue
		}
		if word, b = field(b); word == "" {
			return e, b, false
		}
		e.set(word)
	}
}

// cutBefore is where the first mark begins, or the text ends.
func cutBefore(b, mark string) int {
	if i := strings.Index(b, mark); i >= 0 {
		return i
	}
	return len(b)
}

func (e *cableEnd) set(word string) {
	key, value, _ := strings.Cut(word, ":")
	v, left, ok := hex(value)
	if !ok || left != "" {
		return
	}
	switch key {
	case "Ports":
		e.ports = int(min(v, maxPort+1))
	case "NodeGUID":
		e.guid = v
	case "PortGUID":
		e.portGUID = v
	case "VenID":
		e.vendor = uint32(v)
	case "DevID":
		e.device = uint32(v)
	case "LID":
		e.lid = int(v & 0xffff)
	case "PN":
		e.num = int(min(v, maxPort+1))
	}
}

// lstWidth reads PHY=4x LOG=ACT SPD=50.
func lstWidth(tail string) width {
	var w width
	for _, word := range strings.Fields(tail) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "PHY":
			w.lanes = max(w.lanes, lanesOf(value))
		case "SPD":
			w.speed = lstSpeed[value]
		}
	}
	return w
}

func lanesOf(s string) uint8 {
	w, ok := parseWidth(strings.TrimPrefix(s, "IB_"))
	if !ok {
		return 0
	}
	return w.lanes
}

// lstSpeed is what ibdiagnet calls a lane's rate. Source: ibutils, ibdm/datamodel/Fabric.h, IBLinkSpeed.
var lstSpeed = map[string]speed{
	"2.5": sdr, "5": ddr, "10": qdr, "FDR10": fdr10, "14": fdr, "25": edr, "50": hdr, "100": ndr, "200": xdr,
	"SDR": sdr, "DDR": ddr, "QDR": qdr, "FDR": fdr, "EDR": edr, "HDR": hdr, "NDR": ndr, "XDR": xdr,
}
