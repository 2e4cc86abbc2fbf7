package ncclxml

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/num"
	"busbar.dev/input/internal/tags"
	"busbar.dev/input/internal/warn"
	"busbar.dev/internal/lines"
	"busbar.dev/internal/words"
)

const (
	formatGraph = "NCCL graph XML"
	maxGraph    = 16 << 20 // bytes; a dump of 72 GPUs has some 200 KB
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
	f := &cluster.Fragment{Format: formatGraph, Source: name}
	gpus := map[uint64]bool{}
	for t := range tags.All(string(data)) {
		switch {
		case t.Kind == tags.Close && t.Name == "graphs":
			if len(gpus) == 0 {
				return nil, fault(name, 1, "no graph with a GPU; expected what NCCL writes to NCCL_GRAPH_DUMP_FILE on a node with "+
					"GPUs")
			}
			f.AddNode("", nodeOfGPUs(slices.Sorted(maps.Keys(gpus))))
			warn.Limit(f)
			return f, nil
		case t.Kind != tags.Open && t.Kind != tags.Empty:
		case t.Name == "graph":
			noteGraph(f, t)
		case t.Name == "gpu":
			// to 2.20 a decimal, since then hexadecimal with the number of the host in the uppermost byte
			dev, err := strconv.ParseUint(t.Get("dev"), 0, 64)
			if err != nil || dev&(1<<56-1) >= maxGPUs || len(gpus) >= maxGPUs {
				return nil, fault(name, t.Line, "gpu with dev %q; expected a number such as 3 or 0x3, and at most %d GPUs",
					t.Get("dev"), maxGPUs)
			}
			gpus[dev] = true
		}
	}
	return nil, fault(name, 1+strings.Count(string(data), "\n"), "<graphs> does not end; expected the whole file as NCCL "+
		"writes it to NCCL_GRAPH_DUMP_FILE")
}

// noteGraph notes what one search found.
func noteGraph(f *cluster.Fragment, t *tags.Token) {
	kind := cmp.Or(graphNames[t.Get("id")], "graph "+clean(t.Get("id")))
	n := num.Or(t.Get("nchannels"), 1, math.MaxInt, 0)
	if n == 0 {
		return // not possible here, such as NVLS without NVSwitch
	}
	text := fmt.Sprintf("NCCL found %s of %s GB/s inside the node", words.Plural(n, "channel"), clean(t.Get("speedintra")))
	if t := clean(t.Get("typeintra")); t != "" && t != "LOC" {
		text += ", GPUs joined by " + t
	}
	if inter := clean(t.Get("typeinter")); inter != "" && inter != "LOC" {
		text += fmt.Sprintf(", and %s GB/s to the network over %s", clean(t.Get("speedinter")), inter)
	}
	f.Warnf(t.Line, kind, "%s", text)
}

// nodeOfGPUs makes the node of GPUs, which are numbered from each host of an NVLink domain on.
func nodeOfGPUs(list []uint64) *cluster.NodeType {
	t := &cluster.NodeType{Name: "node"}
	for i, dev := range list {
		host := dev >> 56
		if i > 0 && host != list[i-1]>>56 {
			t.Trays = max(t.Trays, 1) + 1
		}
		d := cluster.Device{Kind: cluster.GPU, Index: int(dev & 0xffffff), Parent: -1, Tray: max(t.Trays-1, 0)}
		if host != list[0]>>56 {
			d.Index = -1 // numbers repeat from host to host
		}
		t.Add(d)
	}
	return t
}
