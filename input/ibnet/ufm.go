package ibnet

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lines"
	"busbar.dev/internal/yamldoc"
)

// maxUFM bounds an export: some 300 bytes a link.
const maxUFM = 128 << 20

// MatchUFM reports whether the links of UFM's REST API (GET /ufmRest/resources/links) are in the text.
func MatchUFM(data []byte) bool {
	head := bytes.TrimLeft(data[:min(len(data), 1<<20)], " \t\r\n")
	return (bytes.HasPrefix(head, []byte("[")) || bytes.HasPrefix(head, []byte("{"))) &&
		bytes.Contains(head, []byte(`"source_guid"`)) && bytes.Contains(head, []byte(`"destination_guid"`))
}

// ReadUFM reads UFM's links. Of a node it says the GUID, the description, and whether a port is an adapter's (HCA-1/1)
// or a switch's (19); how many ports a switch has it does not say.
func ReadUFM(name string, r io.Reader) (*cluster.Fragment, error) {
	data, err := lines.Whole(name, r, maxUFM, "expected the links of one fabric")
	if err != nil {
		return nil, err
	}
	docs, err := yamldoc.Parse(string(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f := newFabric()
	for i := range docs {
		links := docs[i].List()
		if links == nil {
			links = docs[i].Get("links").List()
		}
		for k := range links {
			l := &links[k]
			near, ok1 := ufmEnd(l, "source")
			far, ok2 := ufmEnd(l, "destination")
			if !ok1 || !ok2 {
				f.seen.bad.addNotice(int(l.Line), "a link without two GUIDs and ports")
				continue
			}
			if f.last = int(l.Line); f.full {
				return nil, f.errTooMany(name)
			}
			f.cable(near, far, width{lanesOf(l.Get("width").Str()), lstSpeed[strings.TrimPrefix(l.Get("speed").Str(), "IB_")]},
				int(l.Line))
		}
	}
	return f.finished(name, "UFM links", "an array of links with source_guid, source_port, destination_guid and "+
		"destination_port, as GET /ufmRest/resources/links gives it")
}

// ufmEnd reads one end: its GUID, the port as a number, as GUID_19 or as HCA-1/1, and the node's description, at a
// switch with the port behind it.
func ufmEnd(l *yamldoc.Value, side string) (cableEnd, bool) {
	var e cableEnd
	guid, left, ok := hex(l.Get(side + "_guid").Str())
	if !ok || left != "" || guid == 0 {
		return e, false
	}
	e.guid = guid
	shown := l.Get(side + "_port_dname").Str()
	port := l.Get(side + "_port").Str()
	if i := strings.LastIndexByte(port, '_'); i >= 0 {
		port = port[i+1:]
	}
	num, left := number(port)
	if left != "" || num < 1 {
		if num, left = number(shown); left != "" {
			num = -1
		}
	}
	e.num = num
	e.desc = l.Get(side + "_port_node_description").Str()
	e.kind = anAdapter
	if before, after, ok := cutLast(e.desc, ":"); ok && after == shown ||
		len(shown) > 0 && strings.Trim(shown, "0123456789") == "" {
		e.kind = aSwitch
		if ok && after == shown {
			e.desc = before
		}
	}
	return e, num > 0
}

// cutLast cuts around the last separator.
func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
