package nvsmi

import (
	"io"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/gather"
)

const queryFormat = "nvidia-smi --query-gpu"

// MatchQuery reports whether data holds the CSV of nvidia-smi --query-gpu with
// its header.
func MatchQuery(data []byte) bool {
	for _, word := range strings.Fields("index uuid name bus_id memory.total") {
		if gather.Find(data, word, func(text string) bool { return queryHeader(text) != nil }) {
			return true
		}
	}
	return false
}

// queryHeader reads a line of field names: what each column means, "" for one
// that is not used. nil when the line is no header.
func queryHeader(text string) []string {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > 4096 || !strings.Contains(text, ",") {
		return nil
	}
	names := strings.Split(text, ",")
	out := make([]string, len(names))
	known := 0
	for i, n := range names {
		n, _, _ = strings.Cut(strings.TrimSpace(n), " [")
		if n == "" || strings.Trim(n, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._") != "" {
			return nil
		}
		if out[i] = fields()[n]; out[i] != "" {
			known++
		}
	}
	if known < 2 || !anyOf(out, "index", "uuid", "pci", "name") {
		return nil
	}
	return out
}

func anyOf(all []string, want ...string) bool {
	return slices.ContainsFunc(want, func(w string) bool { return slices.Contains(all, w) })
}

// ReadQuery reads the CSV of nvidia-smi --query-gpu, with or without units. The
// header must be there, for without it no column can be told from another.
func ReadQuery(name string, r io.Reader) (*cluster.Fragment, error) {
	q := queryReader{newReader(queryFormat), map[string][]string{}, map[string]int{}}
	return q.read(name, r, q.takeLine,
		"no CSV of GPUs found; expected a header such as index, name, uuid, pci.bus_id and "+
			"a row for each GPU; save the output of nvidia-smi --query-gpu=… --format=csv")
}

type queryReader struct {
	*reader
	cols map[string][]string // the header at hand, by the host before the line
	rows map[string]int      // rows since then
}

func (q queryReader) takeLine(prefix, text string, num int) bool {
	if cols := queryHeader(text); cols != nil {
		if len(q.cols) < gather.MaxHosts || q.cols[prefix] != nil {
			q.cols[prefix], q.rows[prefix] = cols, 0
		}
		return true
	}
	cols := q.cols[prefix]
	if cols == nil {
		return false
	}
	values := strings.Split(text, ",")
	host := q.heads.Host(prefix)
	g := queryRow(cols, values, &host, num)
	ids := anyOf(cols, "index", "uuid", "pci")
	switch {
	case len(values) == len(cols) && g != nil:
	case len(values) > 1 && len(values) < len(cols) && g != nil && (g.named() || !ids):
		q.warns.Addf(num, "%d fields; the header has %d; the row is left out", len(values), len(cols))
		return false
	default:
		if !ids {
			delete(q.cols, prefix) // any prose fits a table of names; it ends at the first other line
		}
		return false
	}
	if !g.named() {
		g.Index = q.rows[prefix] // nvidia-smi lists the GPUs in the order of their index
	}
	q.rows[prefix]++
	q.noteGPU(host, g)
	return true
}

// queryRow reads a row, which must hold a value that fits one of the columns that name a GPU; nil: it does not.
func queryRow(cols, values []string, host *string, line int) *gpu {
	g := newGPU(line)
	for i, v := range values[:min(len(values), len(cols))] {
		v = strings.TrimSpace(v)
		if fields()[v] != "" || !g.set(cols[i], v) && cols[i] == "index" { // a command line names fields too
			return nil
		}
		if cols[i] == "host" && gather.IsHost(v) {
			*host = strings.Clone(v)
		}
	}
	if !g.named() && !g.Model.Known() {
		return nil
	}
	return g
}
