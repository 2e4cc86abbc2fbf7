package nvsmi

import (
	"io"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/gather"
)

const queryFormat = "nvidia-smi --query-gpu"

// queryFields are the fields that are used, under their several names.
var queryFields = map[string]string{
	"index": "index", "name": "name", "gpu_name": "name", "uuid": "uuid", "gpu_uuid": "uuid",
	"pci.bus_id": "pci", "gpu_bus_id": "pci", "memory.total": "memory", "compute_cap": "sm",
	"pcie.link.gen.current": "gen", "pcie.link.gen.gpucurrent": "gen",
	"pcie.link.gen.max": "genmax", "pcie.link.gen.gpumax": "gpumax",
	"pcie.link.width.current": "width", "pcie.link.width.max": "widthmax",
	"c2c.mode": "c2c", "hostname": "host",
}

// MatchQuery reports whether data holds the CSV of nvidia-smi --query-gpu with
// its header.
func MatchQuery(data []byte) bool {
	for _, word := range []string{"index", "uuid", "name", "bus_id", "memory.total"} {
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
		if out[i] = queryFields[n]; out[i] != "" {
			known++
		}
	}
	if known < 2 || !anyOf(out, "index", "uuid", "pci", "name") {
		return nil
	}
	return out
}

func anyOf(all []string, want ...string) bool {
	for _, a := range all {
		for _, w := range want {
			if a == w {
				return true
			}
		}
	}
	return false
}

// ReadQuery reads the CSV of nvidia-smi --query-gpu, with or without units. The
// header must be there, for without it no column can be told from another.
func ReadQuery(name string, r io.Reader) (*cluster.Fragment, error) {
	q := queryReader{v: &inventory{format: queryFormat}, cols: map[string][]string{}, rows: map[string]int{}}
	if err := q.heads.Each(name, r, q.takeLine); err != nil {
		return nil, err
	}
	return q.v.fragment(name, "no CSV of GPUs found; expected a header such as index, name, uuid, pci.bus_id and a row "+
		"for each GPU; save the output of nvidia-smi --query-gpu=… --format=csv")
}

type queryReader struct {
	v     *inventory
	heads gather.Headings
	cols  map[string][]string // the header at hand, by the host before the line
	rows  map[string]int      // rows since then
}

func (q *queryReader) takeLine(prefix, text string, num int) bool {
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
	fields := strings.Split(text, ",")
	if len(fields) != len(cols) {
		// Not a row. One with a field too few shows a cut text; prose rarely has commas
		// in that number.
		if len(fields) > 1 && len(fields) < len(cols) && looksLikeRow(cols, fields) {
			q.v.warns.Addf(num, "%d fields; the header has %d; the row is left out", len(fields), len(cols))
		}
		if !anyOf(cols, "index", "uuid", "pci") {
			delete(q.cols, prefix) // any prose fits a table of names; it ends at the first other line
		}
		return false
	}
	host := q.heads.Host(prefix)
	g, ok := queryRow(cols, fields, &host)
	if !ok {
		return false
	}
	g.line = num
	if g.index < 0 && g.uuid == "" && g.pci == "" {
		g.index = q.rows[prefix] // nvidia-smi lists the GPUs in the order of their index
	}
	q.rows[prefix]++
	q.v.noteGPU(host, g)
	return true
}

func looksLikeRow(cols, fields []string) bool {
	_, ok := queryRow(cols[:len(fields)], fields, new(string))
	return ok
}

// queryRow reads a row. It must hold a value that fits one of the columns that
// name a GPU.
func queryRow(cols, fields []string, host *string) (gpu, bool) {
	g := gpu{index: -1}
	ok := false
	for i, f := range fields {
		f = strings.TrimSpace(f)
		n, err := strconv.Atoi(strings.TrimSuffix(f, "x"))
		number := err == nil && n >= 0
		switch cols[i] {
		case "index":
			if !number || n >= maxGPUs {
				return gpu{}, false
			}
			g.index, ok = n, true
		case "name":
			if f != "" && len(f) <= 128 && f[0] != '[' {
				g.name = strings.Clone(f)
				ok = ok || len(g.name) > 0
			}
		case "uuid":
			if validUUID(f) {
				g.uuid, ok = strings.Clone(f), true
			}
		case "pci":
			if p, err := cluster.ParsePCI(f); err == nil && strings.Count(f, ":") == 2 {
				g.pci, ok = p, true
			}
		case "memory":
			g.memory = mebibytes(f)
		case "sm":
			if v, err := strconv.ParseFloat(f, 64); err == nil && v >= 1 && v < 100 {
				g.sm = int(v*10 + 0.5)
			}
		case "gen":
			g.gen.now = small(n, number, 7)
		case "genmax":
			g.gen.most = small(n, number, 7)
		case "gpumax":
			if g.gen.most == 0 { // what the slot allows comes first
				g.gen.most = small(n, number, 7)
			}
		case "width":
			g.width.now = small(n, number, 32)
		case "widthmax":
			g.width.most = small(n, number, 32)
		case "c2c":
			g.c2c = f == "Enabled"
		case "host":
			if gather.IsHost(f) {
				*host = strings.Clone(f)
			}
		}
	}
	return g, ok
}

// small keeps a number between 1 and most, else 0.
func small(n int, ok bool, most int) int {
	if !ok || n < 1 || n > most {
		return 0
	}
	return n
}
