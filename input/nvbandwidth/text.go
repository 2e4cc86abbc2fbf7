package nvbandwidth

import (
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/pairtable"
)

// title is what the line above a matrix says. row and col are what rows and columns stand for, "CPU" or "GPU"; arrow is
// "->" for row to column, "<-" for column to row, "<->" for both. All are empty in a title that does not say.
type title struct {
	row, col, arrow string
	part            string // "Read1", "Total": which share of a test in several tables
	latency         bool   // nanoseconds, else GB/s
}

// parseTitle reads the line above a matrix, as in "memcpy CE GPU(row) ->
// GPU(column) bandwidth (GB/s)". Other titles end in the same unit and name
// fewer parties: "memcpy local GPU(column) bandwidth (GB/s)".
func parseTitle(t string) (m title, ok bool) {
	body, ok := strings.CutSuffix(t, "(GB/s)")
	if !ok {
		body, ok = strings.CutSuffix(t, "(ns)")
		m.latency = ok
	}
	body = strings.TrimSpace(body)
	if !ok || !strings.Contains(body, "(row") && !strings.Contains(body, "(column") || len(t) > 200 {
		return m, false
	}
	f := strings.Fields(strings.TrimSuffix(body, " bandwidth"))
	for i := 1; i+1 < len(f); i++ {
		if f[i] != "->" && f[i] != "<-" && f[i] != "<->" {
			continue
		}
		left, leftRow := party(f[i-1])
		right, rightRow := party(f[i+1])
		if left == "" || right == "" || leftRow == rightRow {
			continue
		}
		m.row, m.col, m.arrow = left, right, f[i]
		if rightRow { // the first release wrote GPU(columns) <- CPU(rows)
			m.row, m.col, m.arrow = right, left, turned(f[i])
		}
		m.part = strings.Join(f[i+2:], " ")
	}
	return m, true
}

// party splits "GPU(row)" into its kind and whether it is the rows.
func party(s string) (kind string, row bool) {
	kind, what, ok := strings.Cut(s, "(")
	if !ok {
		return "", false
	}
	switch strings.TrimSuffix(strings.TrimSuffix(what, ")"), "s") {
	case "row":
		return kind, true
	case "column":
		return kind, false
	}
	return "", false
}

func turned(arrow string) string {
	switch arrow {
	case "->":
		return "<-"
	case "<-":
		return "->"
	}
	return arrow
}

// parseDevice reads what follows "Device ": "0: NVIDIA H100 80GB HBM3
// (00000000:18:00)", the address absent before v0.6.
func parseDevice(t string) (pairtable.Device, bool) {
	num, rest, ok := strings.Cut(t, ": ")
	n, known := pairtable.Number(strings.TrimSpace(num))
	if !ok || !known {
		return pairtable.Device{}, false
	}
	d := pairtable.Device{Number: n, Model: strings.TrimSpace(rest)}
	if i := strings.LastIndex(d.Model, " ("); i > 0 && strings.HasSuffix(d.Model, ")") {
		if pci, err := cluster.ParsePCI(d.Model[i+2 : len(d.Model)-1]); err == nil {
			d.PCI, d.Model = pci, strings.TrimSpace(d.Model[:i])
		}
	}
	return d, d.Model != ""
}
