// Package perftest reads what the programs of linux-rdma/perftest print (ib_write_bw, ib_read_lat and their siblings):
// every table with its test, device and rows.
//
// A rate in MB/sec is in units of 2^20 bytes, one in Gb/sec of 10^9 bits, as the programs reckon them. Of tests in both
// directions they print the sum of both.
package perftest

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"

	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
	"busbar.dev/unit"
)

// Format names the tool in facts and messages.
const Format = "perftest"

// Limits on what one text may hold.
const (
	maxTables = 1 << 14
	maxRows   = 1 << 17
)

// Table is the output of one run.
type Table struct {
	Line    int
	Test    string // RDMA_Write BW, Send Latency
	Device  string
	Both    bool // both directions at once
	Latency bool // rows have times rather than rates
	Rows    []Row
}

// Row is one size.
type Row struct {
	Line    int
	Text    string
	Size    unit.Bytes
	Rate    unit.Rate // one direction's, the average; 0 where it was not measured
	Typical unit.Time // the median, one way; 0 where it was not printed
}

// Best is the row with the greatest rate; nil where there is none.
func (t *Table) Best() *Row {
	var best *Row
	for i := range t.Rows {
		if r := &t.Rows[i]; r.Rate > 0 && (best == nil || r.Rate > best.Rate) {
			best = r
		}
	}
	return best
}

// Match reports a table's head.
func Match(data []byte) bool {
	return lines.Find(data, "#bytes", func(line string) bool { return columns(line) != nil })
}

// heads are the columns as the programs name them.
var heads = lazyre.
	New(`#bytes|#sl|#iterations|BW (?:peak|average)|MsgRate|t_(?:min|max|typical|avg|stdev)|99(?:\.9)?% ` +
		`percentile|tps average`)

// deviceLine is among the settings above a table, of which two may share a line.
var deviceLine = lazyre.New(`\bDevice\s*: (\S{1,64})`)

// header is which field of a row is what.
type header struct {
	at    map[string]int
	scale float64 // bytes a second and direction of the printed unit
}

// columns reads the head of a table; nil where it is none.
func columns(line string) *header {
	h := &header{at: map[string]int{}, scale: 1 << 20}
	if strings.Contains(line, "[Gb/sec]") {
		h.scale = 1e9 / 8
	}
	for i, name := range heads.FindAllString(line, -1) {
		h.at[name] = i
	}
	if !h.has("#iterations") || !h.has("BW average") && !h.has("t_avg") && !h.has("t_typical") {
		return nil
	}
	return h
}

func (h *header) has(name string) bool {
	_, ok := h.at[name]
	return ok
}

// Read reads all tables of a text. What stands between rows, such as warnings about the processor's clock, is passed
// over.
func Read(data []byte) []Table {
	var list []Table
	about := Table{}
	var h *header
	n, rows := 0, 0
	for raw := range bytes.Lines(data) {
		n++
		if len(raw) > 1<<12 {
			continue
		}
		line := strings.TrimSpace(string(raw))
		switch test, is := strings.CutSuffix(line, " Test"); {
		case is && (strings.HasSuffix(test, " BW") || strings.HasSuffix(test, " Latency")):
			about, h = Table{
				Test: strings.ToValidUTF8(test[:min(len(test), 64)], "?"), Both: strings.Contains(test, "Bidirectional"),
			}, nil
			continue
		}
		if i := strings.Index(line, "#bytes"); i >= 0 {
			if h = columns(line[i:]); h == nil || len(list) >= maxTables {
				h = nil
				continue
			}
			if about.Both {
				h.scale /= 2
			}
			about.Line, about.Rows = n, nil
			about.Latency = !h.has("BW average")
			list = append(list, about)
			continue
		}
		if h == nil {
			if m := deviceLine.FindStringSubmatch(line); m != nil {
				about.Device = m[1]
			}
			continue
		}
		if r, ok := h.row(line); ok && rows < maxRows {
			rows++
			r.Line, r.Text = n, line
			t := &list[len(list)-1]
			t.Rows = append(t.Rows, r)
		}
	}
	return list
}

// row reads one line of figures.
func (h *header) row(line string) (Row, bool) {
	f := strings.Fields(line)
	if len(f) < 3 || len(f) > 16 {
		return Row{}, false
	}
	figure := func(name string) float64 { // below 0: none
		i, ok := h.at[name]
		if !ok || i >= len(f) {
			return -1
		}
		v, err := strconv.ParseFloat(strings.Trim(f[i], "*"), 64) // bold in threads
		if err != nil || !(v <= 1e12) {
			return -1
		}
		return v // one below 0 is a known fault of long runs
	}
	size, iters := figure("#bytes"), figure("#iterations")
	r := Row{
		Size:    unit.Bytes(size),
		Rate:    unit.Rate(max(figure("BW average"), 0) * h.scale),
		Typical: unit.Micros(max(cmp.Or(max(figure("t_typical"), 0), figure("t_avg")), 0)),
	}
	return r, size >= 0 && iters >= 0 && (r.Rate > 0 || r.Typical > 0)
}
