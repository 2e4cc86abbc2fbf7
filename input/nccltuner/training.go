package nccltuner

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"busbar.dev/internal/lines"
	"busbar.dev/unit"
)

// Sample is one measurement of a training file.
type Sample struct {
	Line       int
	Collective string
	Size       unit.Bytes
	Algorithm  string
	Protocol   string
	Channels   int
	Nodes      int
	Ranks      int
	PipeOps    int
	RegBuff    int
	Cost       float64 // the figure to make small
	// Bandwidth is the column bandwidth_gbps as it stands: nothing says whether
	// it means bits or bytes.
	Bandwidth float64
	Latency   unit.Time
}

// needed are the columns that a training file cannot do without.
var needed = []string{"collective", "size_bytes", "algorithm", "protocol"}

// MatchTraining reports whether a text holds a training file's header.
func MatchTraining(data []byte) bool {
	for line := range bytes.Lines(data) {
		if _, ok := header(string(line)); ok {
			return true
		}
	}
	return false
}

// header maps column names to positions.
func header(s string) (map[string]int, bool) {
	s = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), "#"))
	if !strings.HasPrefix(s, needed[0]) || strings.Count(s, ",") > 64 {
		return nil, false
	}
	cols := map[string]int{}
	for i, name := range strings.Split(s, ",") {
		cols[strings.TrimSpace(name)] = i
	}
	for _, name := range needed {
		if _, ok := cols[name]; !ok {
			return nil, false
		}
	}
	return cols, true
}

// ReadTraining reads the measurements that follow a header. Columns may stand in
// any order; a number that is missing is Any, a figure that is missing is zero.
func ReadTraining(name string, r io.Reader) ([]Sample, error) {
	var cols map[string]int
	var out []Sample
	in := lines.New(r)
	for in.Next() {
		text := strings.TrimSpace(in.Text())
		if h, ok := header(text); ok {
			cols = h
			continue
		}
		if cols == nil || text == "" || text[0] == '#' {
			continue
		}
		f := strings.Split(text, ",")
		if len(f) < len(needed) {
			if len(out) > 0 {
				cols = nil // a document goes on with prose
			}
			continue
		}
		s, err := sample(cols, f)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, in.Num(), err)
		}
		if len(out) >= maxRules {
			return nil, fmt.Errorf("%s:%d: more than %d measurements; split the file", name, in.Num(), maxRules)
		}
		s.Line = in.Num()
		out = append(out, s)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, in.Num(), err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no measurement; expected a header \"collective,size_bytes,algorithm,protocol,…\" and lines below it", name)
	}
	return out, nil
}

// sample reads one line.
func sample(cols map[string]int, f []string) (Sample, error) {
	get := func(col string) string {
		if i, ok := cols[col]; ok && i < len(f) {
			return strings.TrimSpace(f[i])
		}
		return ""
	}
	s := Sample{Collective: get("collective"), Algorithm: get("algorithm"), Protocol: get("protocol")}
	size, err := strconv.ParseInt(get("size_bytes"), 10, 64)
	if err != nil || size < 0 || s.Collective == "" {
		return s, fmt.Errorf("collective %q with size %q; expected a name and a number of bytes", s.Collective, get("size_bytes"))
	}
	s.Size = unit.Bytes(size)
	for _, n := range []struct {
		col string
		dst *int
	}{{"channels", &s.Channels}, {"nodes", &s.Nodes}, {"ranks", &s.Ranks}, {"pipeOps", &s.PipeOps}, {"regBuff", &s.RegBuff}} {
		*n.dst = Any
		if t := get(n.col); t != "" {
			v, err := strconv.ParseInt(t, 10, 32)
			if err != nil || v < Any {
				return s, fmt.Errorf("column %s is %q; expected a number, -1 for any", n.col, t)
			}
			*n.dst = int(v)
		}
	}
	latency := 0.0
	for _, n := range []struct {
		col string
		dst *float64
	}{{"cost_metric", &s.Cost}, {"bandwidth_gbps", &s.Bandwidth}, {"latency_us", &latency}} {
		if t := get(n.col); t != "" {
			v, err := strconv.ParseFloat(t, 64)
			if err != nil || !(v >= 0 && v < 1e15) {
				return s, fmt.Errorf("column %s is %q; expected a figure of zero or more", n.col, t)
			}
			*n.dst = v
		}
	}
	s.Latency = unit.Micros(min(latency, 1e11))
	return s, nil
}
