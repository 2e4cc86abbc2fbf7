package nvbandwidth

import (
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/pairtable"
	"busbar.dev/internal/lazyre"
)

// title is what the line above a matrix between GPUs says. arrow is "->" for row to column, "<-" for column to row,
// "<->" for both.
type title struct {
	arrow   string
	part    string // "Read1", "Total": which share of a test in several tables
	latency bool   // nanoseconds, else GB/s
}

var titleLine = lazyre.New(`^.{0,100}GPU\(row\) (->|<-|<->) GPU\(column\)(.{0,60}?)(?: bandwidth)? \((GB/s|ns)\)$`)

// parseTitle reads the line above a matrix, as in "memcpy CE GPU(row) ->
// GPU(column) bandwidth (GB/s)".
func parseTitle(t string) (title, bool) {
	m := titleLine.FindStringSubmatch(t)
	if m == nil {
		return title{}, false
	}
	return title{m[1], strings.TrimSpace(m[2]), m[3] == "ns"}, true
}

// parseDevice reads what follows "Device ": "0: NVIDIA H100 80GB HBM3
// (00000000:18:00)", the address absent before v0.6.
func parseDevice(t string) (cluster.Device, bool) {
	num, model, ok := strings.Cut(t, ": ")
	n, known := pairtable.Number(num)
	d := board.GPU("nvidia", n)
	model = strings.TrimSpace(model)
	if i := strings.LastIndex(model, " ("); i > 0 && strings.HasSuffix(model, ")") {
		if pci, err := cluster.ParsePCI(model[i+2 : len(model)-1]); err == nil {
			d.PCI, model = pci, strings.TrimSpace(model[:i])
		}
	}
	d.Model = board.Fact(model, format)
	return d, ok && known && model != ""
}
