package ncclxml

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lines"
	"busbar.dev/internal/words"
)

const (
	formatGraph = "NCCL graph XML"
	maxGraph    = 16 << 20 // bytes; a dump of 72 GPUs has some 200 KB
	maxGraphs   = 64
	maxGPUs     = 4096
)

// graphNames is what NCCL numbers its graphs by. Source: NCCL, src/include/graph.h (NCCL_ALGO_*) and src/init.cc,
// release 2.28.
var graphNames = map[string]string{"0": "ring", "1": "tree", "2": "CollNet chain", "3": "NVLS", "4": "CollNet direct"}

// MatchGraph reports whether the text holds graphs as NCCL_GRAPH_DUMP_FILE gives them.
func MatchGraph(data []byte) bool {
	at := bytes.Index(data, []byte("<graphs "))
	return at >= 0 && bytes.Contains(data[at:], []byte("<graph "))
}

// ReadGraph reads what NCCL found when it searched a node for channels: which GPUs it saw, and as notes how many
// channels of what rate it made of them, and over which paths. It does not say how the GPUs are joined; the topology
// does (NCCL_TOPO_DUMP_FILE).
func ReadGraph(name string, r io.Reader) (*cluster.Fragment, error) {
	data, err := lines.Whole(name, r, maxGraph, "expected the graphs of one node")
	if err != nil {
		return nil, err
	}
	g := graphs{f: &cluster.Fragment{Format: formatGraph, Source: name}, gpus: map[[2]int]bool{}}
	if err := g.read(name, data); err != nil {
		return nil, err
	}
	return g.f, nil
}

// graphs collects what the graphs of a file have in common.
type graphs struct {
	f     *cluster.Fragment
	seen  int
	gpus  map[[2]int]bool // host of an NVLink domain, NVML index
	found bool            // a graph with channels
}

func (g *graphs) read(name string, data []byte) error {
	start := max(bytes.Index(data, []byte("<graphs ")), 0) // a log may stand before it
	d := xml.NewDecoder(bytes.NewReader(data[start:]))
	line := func() int {
		at, _ := d.InputPos()
		return bytes.Count(data[:start], []byte("\n")) + at
	}
	for depth := 0; ; {
		tok, err := d.Token()
		if err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return fault(name, line(), "%v; expected the whole file as NCCL writes it to NCCL_GRAPH_DUMP_FILE", err)
		}
		switch e := tok.(type) {
		case xml.StartElement:
			depth++
			if err := g.element(e, line()); err != nil {
				return fault(name, line(), "%v", err)
			}
		case xml.EndElement:
			if depth--; depth == 0 {
				return g.finish(name)
			}
		}
	}
}

func (g *graphs) element(e xml.StartElement, line int) error {
	get := func(key string) string {
		for _, a := range e.Attr {
			if a.Name.Local == key {
				return a.Value
			}
		}
		return ""
	}
	switch e.Name.Local {
	case "graph":
		if g.seen++; g.seen > maxGraphs {
			return fmt.Errorf("more than %d graphs; expected those of one node", maxGraphs)
		}
		g.graph(get, line)
	case "gpu":
		host, dev, ok := graphDevice(get("dev"))
		if !ok {
			return fmt.Errorf("gpu with dev %q; expected a number such as 3 or 0x3", get("dev"))
		}
		if g.gpus[[2]int{host, dev}] = true; len(g.gpus) > maxGPUs {
			return fmt.Errorf("more than %d GPUs; expected the graphs of one node", maxGPUs)
		}
	}
	return nil
}

// graph notes what one search found.
func (g *graphs) graph(get func(string) string, line int) {
	kind := graphNames[get("id")]
	if kind == "" {
		kind = "graph " + clean(get("id"))
	}
	n, err := strconv.Atoi(get("nchannels"))
	if err != nil || n <= 0 {
		return // not possible here, such as NVLS without NVSwitch
	}
	g.found = true
	text := fmt.Sprintf("NCCL found %s of %s GB/s inside the node", words.Plural(n, "channel"), clean(get("speedintra")))
	if t := clean(get("typeintra")); t != "" && t != "LOC" {
		text += ", GPUs joined by " + t
	}
	if t := clean(get("typeinter")); t != "" && t != "LOC" {
		text += fmt.Sprintf(", and %s GB/s to the network over %s", clean(get("speedinter")), t)
	}
	g.f.Warnf(line, kind, "%s", text)
}

// graphDevice reads a device: to 2.20 a decimal, since then hexadecimal with the number of the host in the uppermost
// byte.
func graphDevice(s string) (host, dev int, ok bool) {
	base := 10
	if rest, found := strings.CutPrefix(s, "0x"); found {
		s, base = rest, 16
	}
	v, err := strconv.ParseUint(s, base, 64)
	return int(v >> 56), int(v & 0xffffff), err == nil && v&(1<<56-1) < maxGPUs
}

// finish makes the node.
func (g *graphs) finish(name string) error {
	if g.seen == 0 || len(g.gpus) == 0 {
		return fault(name, 1, "no graph with a GPU; expected what NCCL writes to NCCL_GRAPH_DUMP_FILE on a node with GPUs")
	}
	list := make([][2]int, 0, len(g.gpus))
	for k := range g.gpus {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	t := &cluster.NodeType{Name: "node"}
	hosts := map[int]int{}
	for _, k := range list {
		if _, ok := hosts[k[0]]; !ok {
			hosts[k[0]] = len(hosts)
		}
		index := k[1]
		if k[0] != list[0][0] {
			index = -1 // numbers repeat from host to host
		}
		t.Add(cluster.Device{Kind: cluster.GPU, Index: index, Parent: -1, Tray: hosts[k[0]]})
	}
	if len(hosts) > 1 {
		t.Trays = len(hosts)
	}
	g.f.AddNode("", t)
	return nil
}
