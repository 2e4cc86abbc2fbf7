package nvbandwidth

import (
	"math"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/pairtable"
)

// parseTitle reads the line above a matrix, as in "memcpy CE GPU(row) ->
// GPU(column) bandwidth (GB/s)". Other titles end in the same unit and name
// fewer parties: "memcpy local GPU(column) bandwidth (GB/s)".
func parseTitle(t string, line int) (Matrix, bool) {
	m := Matrix{Title: t, Line: line, Sum: math.NaN()}
	body := ""
	for _, unit := range []string{"GB/s", "ns"} {
		if s, ok := strings.CutSuffix(t, "("+unit+")"); ok {
			body, m.Unit = strings.TrimSpace(s), unit
		}
	}
	if m.Unit == "" || !strings.Contains(body, "(row") && !strings.Contains(body, "(column") || len(t) > 200 {
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
		m.Row, m.Col, m.Arrow = left, right, f[i]
		if rightRow { // the first release wrote GPU(columns) <- CPU(rows)
			m.Row, m.Col, m.Arrow = right, left, turned(f[i])
		}
		m.Part = strings.Join(f[i+2:], " ")
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
func parseDevice(t string) (Device, bool) {
	num, rest, ok := strings.Cut(t, ": ")
	n, known := pairtable.Number(strings.TrimSpace(num))
	if !ok || !known {
		return Device{}, false
	}
	d := Device{Index: n, Model: strings.TrimSpace(rest)}
	if i := strings.LastIndex(d.Model, " ("); i > 0 && strings.HasSuffix(d.Model, ")") {
		if pci, err := cluster.ParsePCI(d.Model[i+2 : len(d.Model)-1]); err == nil {
			d.PCI, d.Model = pci, strings.TrimSpace(d.Model[:i])
		}
	}
	return d, d.Model != ""
}

// isHost reports whether a line is a host name alone.
func isHost(s string) bool {
	if s == "" || len(s) > 253 || !strings.ContainsAny(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		return false
	}
	for _, c := range s {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_') {
			return false
		}
	}
	return true
}
