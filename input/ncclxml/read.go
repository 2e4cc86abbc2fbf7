package ncclxml

import (
	"bytes"
	"fmt"
	"io"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/warn"
	"busbar.dev/internal/lines"
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
// name, for the format does not say it.
func Read(name string, r io.Reader) (*cluster.Fragment, error) {
	f := &cluster.Fragment{Format: formatNCCL, Source: name}
	data, err := lines.Whole(name, r, maxBytes, "cut out the topology")
	if err != nil {
		return nil, err
	}
	p := parser{f: f}
	if err := p.run(string(data)); err != nil {
		return nil, err
	}
	if len(p.systems) == 0 {
		return nil, fault(name, 1, "no <system> element; expected NCCL topology XML, as NCCL writes to NCCL_TOPO_DUMP_FILE")
	}
	for _, sys := range p.systems {
		if len(sys.all("cpu")) == 0 {
			f.Warnf(sys.Line, "", "<system> without a <cpu>: it describes nothing")
			continue
		}
		b := builder{f: f, sys: sys}
		f.AddNode("", b.build())
	}
	if len(f.Types) == 0 {
		return nil, fault(name, p.systems[0].Line, "<system> holds no <cpu> element; expected the NUMA domains of a "+
			"node: dump the topology again")
	}
	warn.Limit(f)
	return f, nil
}
