package ncclxml

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/tags"
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
	_, graphs, _ := strings.Cut(string(data), "<graphs ")
	return strings.Contains(graphs, "<graph ")
}

// ReadGraph reads what NCCL found when it searched a node for channels: which GPUs it saw, and as notes how many
// channels of what rate it made of them, and over which paths. It does not say how the GPUs are joined; the topology
// does (NCCL_TOPO_DUMP_FILE).
func ReadGraph(name string, r io.Reader) (*cluster.Fragment, error) {
	data, err := lines.Whole(name, r, maxGraph, "expected the graphs of one node")
	if err != nil {
		return nil, err
	}
	g := graphs{f: &cluster.Fragment{Format: formatGraph, Source: name}, gpus: map[gpuOf]bool{}}
	for t := range tags.All(string(data)) {
		if t.Kind == tags.Close && t.Name == "graphs" {
			return g.f, g.finish(name)
		}
		if t.Kind != tags.Open && t.Kind != tags.Empty {
			continue
		}
		if err := g.tag(t); err != nil {
			return nil, fault(name, t.Line, "%v", err)
		}
	}
	return nil, fault(name, 1+strings.Count(string(data), "\n"), "<graphs> does not end; expected the whole file as NCCL "+
		"writes it to NCCL_GRAPH_DUMP_FILE")
}

// graphs collects what the graphs of a file have in common.
type graphs struct {
	f    *cluster.Fragment
	seen int
	gpus map[gpuOf]bool
}

// gpuOf is a GPU of an NVLink domain: its host, and its NVML index there.
type gpuOf struct{ host, dev int }

func (g *graphs) tag(t *tags.Token) error {
	switch t.Name {
	case "graph":
		if g.seen++; g.seen > maxGraphs {
			return fmt.Errorf("more than %d graphs; expected those of one node", maxGraphs)
		}
		g.graph(t)
	case "gpu":
		gpu, ok := graphDevice(t.Get("dev"))
		if !ok {
			return fmt.Errorf("gpu with dev %q; expected a number such as 3 or 0x3", t.Get("dev"))
		}
		if g.gpus[gpu] = true; len(g.gpus) > maxGPUs {
			return fmt.Errorf("more than %d GPUs; expected the graphs of one node", maxGPUs)
		}
	}
	return nil
}

// graph notes what one search found.
func (g *graphs) graph(t *tags.Token) {
	kind := cmp.Or(graphNames[t.Get("id")], "graph "+clean(t.Get("id")))
	n := number(t.Get("nchannels"), 0)
	if n <= 0 {
		return // not possible here, such as NVLS without NVSwitch
	}
	text := fmt.Sprintf("NCCL found %s of %s GB/s inside the node", words.Plural(n, "channel"), clean(t.Get("speedintra")))
	if t := clean(t.Get("typeintra")); t != "" && t != "LOC" {
		text += ", GPUs joined by " + t
	}
	if inter := clean(t.Get("typeinter")); inter != "" && inter != "LOC" {
		text += fmt.Sprintf(", and %s GB/s to the network over %s", clean(t.Get("speedinter")), inter)
	}
	g.f.Warnf(t.Line, kind, "%s", text)
}

// graphDevice reads a device: to 2.20 a decimal, since then hexadecimal with the number of the host in the uppermost
// byte.
func graphDevice(s string) (gpuOf, bool) {
	v, err := strconv.ParseUint(s, 0, 64)
	return gpuOf{int(v >> 56), int(v & 0xffffff)}, err == nil && v&(1<<56-1) < maxGPUs
}

// finish makes the node.
func (g *graphs) finish(name string) error {
	if len(g.gpus) == 0 {
		return fault(name, 1, "no graph with a GPU; expected what NCCL writes to NCCL_GRAPH_DUMP_FILE on a node with GPUs")
	}
	list := slices.SortedFunc(maps.Keys(g.gpus),
		func(a, b gpuOf) int { return cmp.Or(a.host-b.host, a.dev-b.dev) })
	t := &cluster.NodeType{Name: "node"}
	for i, gpu := range list {
		if i > 0 && gpu.host != list[i-1].host {
			t.Trays = max(t.Trays, 1) + 1
		}
		d := cluster.Device{Kind: cluster.GPU, Index: gpu.dev, Parent: -1, Tray: max(t.Trays-1, 0)}
		if gpu.host != list[0].host {
			d.Index = -1 // numbers repeat from host to host
		}
		t.Add(d)
	}
	g.f.AddNode("", t)
	return nil
}
