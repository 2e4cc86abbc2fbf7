package ibnet

import (
	"bytes"
	"cmp"
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
				f.notice(badLine, int(l.Line), "a link without two GUIDs and ports")
				continue
			}
			is, _ := parseWidth(strings.ReplaceAll(l.Get("width").Str()+l.Get("speed").Str(), "IB_", ""))
			f.hold(row{near: near, far: far, is: is, line: int(l.Line)})
		}
	}
	return f.finished(name, "UFM links", "an array of links with source_guid, source_port, destination_guid and "+
		"destination_port, as GET /ufmRest/resources/links gives it")
}

// ufmEnd reads one end: its GUID, the port as a number, as GUID_19 or as HCA-1/1, and the node's description, at a
// switch with the port behind it.
func ufmEnd(l *yamldoc.Value, side string) (end, bool) {
	var e end
	e.guid = hex(l.Get(side + "_guid").Str())
	shown := l.Get(side + "_port_dname").Str()
	port := l.Get(side + "_port").Str()
	port = port[strings.LastIndexByte(port, '_')+1:]
	e.num = cmp.Or(decimal(port), decimal(shown))
	e.desc = l.Get(side + "_port_node_description").Str()
	e.kind = anAdapter
	if name, ok := strings.CutSuffix(e.desc, ":"+shown); ok || decimal(shown) > 0 {
		e.kind, e.desc = aSwitch, name
	}
	return e, e.guid != 0 && e.num > 0
}
