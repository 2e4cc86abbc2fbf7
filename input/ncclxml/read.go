package ncclxml

import (
	"bytes"
	"fmt"
	"io"
	"sort"
	"strings"

	"busbar.dev/cluster"
)

// The two dialects, as formats and as the source of figures.
const (
	formatNCCL = "NCCL topology XML"
	formatRCCL = "RCCL topology XML"
)

// fault is an error with a place.
func fault(source string, line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", source, line, fmt.Sprintf(format, args...))
}

// Match reports whether the text holds a topology: a system element with a cpu
// element behind it.
func Match(data []byte) bool {
	at := bytes.Index(data, []byte("<system "))
	return at >= 0 && bytes.Contains(data[at:], []byte("<cpu"))
}

// Read reads every topology in the text. Each becomes a node without a host
// name, for the format does not say it; two dumps with the same host hashes are
// the same node, of which the later is kept.
func Read(name string, r io.Reader) (*cluster.Fragment, error) {
	f := &cluster.Fragment{Format: formatNCCL, Source: name}
	p := parser{f: f}
	if err := p.run(r); err != nil {
		return nil, err
	}
	if len(p.doc.systems) == 0 {
		return nil, fault(name, 1, "no <system> element; expected NCCL topology XML, as NCCL writes to NCCL_TOPO_DUMP_FILE")
	}
	for _, sys := range latest(f, p.doc.systems) {
		if len(sys.all("cpu")) == 0 {
			f.Warnf(sys.line, "", "<system> without a <cpu>: it describes nothing")
			continue
		}
		b := builder{f: f, sys: sys, note: p.doc.notes[sys]}
		f.AddNode("", b.build())
	}
	if len(f.Types) == 0 {
		return nil, fault(name, p.doc.systems[0].line, "<system> holds no <cpu> element; expected the NUMA domains of a "+
			"node: dump the topology again")
	}
	return f, nil
}

// latest drops dumps that a later one of the same hosts replaces.
func latest(f *cluster.Fragment, systems []*element) []*element {
	last := map[string]int{}
	for i, s := range systems {
		if k := hosts(s); k != "" {
			last[k] = i
		}
	}
	var kept []*element
	for i, s := range systems {
		if k := hosts(s); k != "" && last[k] != i {
			f.Warnf(s.line, "", "the same host is dumped again at line %d; kept that one", systems[last[k]].line)
			continue
		}
		kept = append(kept, s)
	}
	return kept
}

// hosts is a key of a system's host hashes, empty when a cpu has none.
func hosts(sys *element) string {
	seen := map[string]bool{}
	for _, c := range sys.all("cpu") {
		h := c.get("host_hash")
		if h == "" || h == "0x0" {
			return ""
		}
		seen[h] = true
	}
	list := make([]string, 0, len(seen))
	for h := range seen {
		list = append(list, h)
	}
	sort.Strings(list)
	return strings.Join(list, " ")
}
