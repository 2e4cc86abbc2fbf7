package ncclxml

import (
	"bytes"
	"cmp"
	"fmt"
	"io"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/tags"
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
	return at >= 0 && lines.Has(data[at:], "<cpu")
}

// Read reads every topology in the text. Each becomes a node without a host
// name, for the format does not say it.
func Read(name string, r io.Reader) (*cluster.Fragment, error) {
	f := &cluster.Fragment{Format: formatNCCL, Source: name}
	data, err := lines.Whole(name, r, maxBytes, "cut out the topology")
	if err != nil {
		return nil, err
	}
	first := 0
	err = tags.Trees(f, string(data), "system", maxElements, func(sys *element) {
		first = cmp.Or(first, sys.Line)
		if len(sys.All("cpu")) == 0 {
			f.Warnf(sys.Line, "", "<system> without a <cpu>: it describes nothing")
			return
		}
		b := builder{f: f, sys: sys, odd: map[string]bool{}}
		b.prune(sys)
		f.AddNode("", b.build())
	})
	switch {
	case err != nil:
		return nil, err
	case first == 0:
		return nil, fault(name, 1, "no <system> element; expected NCCL topology XML, as NCCL writes to NCCL_TOPO_DUMP_FILE")
	case len(f.Types) == 0:
		return nil, fault(name, first, "<system> holds no <cpu> element; expected the NUMA domains of a node: dump the "+
			"topology again")
	}
	warn.Limit(f)
	return f, nil
}
