// Package p2pbw reads the output of NVIDIA's p2pBandwidthLatencyTest: the
// devices it lists, which of them may access each other, and its matrices of
// measured bandwidth and latency.
//
// The matrices are found anywhere in a text, one alone in a document too.
// Several runs in one text become several nodes. The diagonal is a copy within
// one GPU's memory and says nothing about a pair; it stays in the matrix and
// out of the cluster.
//
// Which way the data went depends on the sample's age. Today the row's device
// writes to the column's, and in a "(P2P Reads)" matrix it reads from it. Before
// titles named a method, the copy went from the column's device to the row's.
//
// The package does not guess host names, and it does not read the tables of
// other bandwidth tools.
package p2pbw

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/pairtable"
	"busbar.dev/internal/lines"
)

// Format names the tool in facts and messages.
const Format = "p2pBandwidthLatencyTest"

// Limits on what one text may hold.
const (
	maxRuns     = 1024
	maxMatrices = 64 // of one run; the tool prints eleven at most
	maxWarnings = 100
)

// What says what a matrix holds.
type What uint8

// Contents of a matrix.
const (
	Connectivity What = iota // 1 where peer access is possible
	Bandwidth                // GB/s
	Latency                  // µs
)

// Device is a line "Device: 0, Tesla V100, pciBusID: 6, …".
type Device struct {
	Index int // CUDA ordinal
	Model string
	PCI   cluster.PCI
	Line  int
}

// Access is a line "Device=0 CAN Access Peer Device=1".
type Access struct {
	From, To int
	Can      bool
}

// Matrix is one titled table.
type Matrix struct {
	Title  string
	Line   int // of the title
	What   What
	P2P    bool   // P2P=Enabled
	Both   bool   // bidirectional: the sum of both directions
	Method string // "Writes" or "Reads" where the title says so
	By     string // "GPU" or "CPU", the clock of a latency table; "" in old ones
	Cols   []int  // device numbers
	Rows   []Row
}

// Row is one line of a matrix.
type Row struct {
	Device int
	Line   int
	Values []float64 // one for each column, fewer in a text that was cut
}

// Run is the output of one run of the tool.
type Run struct {
	Line     int // where it begins
	Devices  []Device
	Access   []Access
	Cliques  [][]int // groups of devices with peer access, in very old output
	Matrices []Matrix
}

// Result is everything the text holds.
type Result struct {
	Runs     []Run
	Warnings []cluster.Warning
}

// Match reports whether a text holds output of the tool.
func Match(data []byte) bool {
	if bytes.Contains(data, []byte("[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]")) {
		return true
	}
	for _, title := range []string{"P2P=Enabled Bandwidth", "P2P=Disabled Bandwidth", "P2P=Enabled Latency", "P2P=Disabled Latency", "P2P Connectivity Matrix"} {
		i := bytes.Index(data, []byte(title))
		if i < 0 {
			continue
		}
		after := data[i:min(len(data), i+400)]
		if bytes.Contains(after, []byte(`D\D`)) || bytes.Contains(after, []byte("   GPU  ")) {
			return true
		}
	}
	return false
}

// Read turns the output into a fragment: one node a run, with GPUs and pairs.
func Read(name string, r io.Reader) (*cluster.Fragment, error) {
	res, err := ReadResult(name, r)
	if err != nil {
		return nil, err
	}
	return res.Fragment(name), nil
}

// ReadResult reads the output as it is.
func ReadResult(name string, r io.Reader) (*Result, error) {
	p := parser{name: name, res: &Result{}}
	if err := lines.Each(name, r, p.line); err != nil {
		return nil, err
	}
	p.endMatrix()
	for i := range p.res.Runs {
		if run := &p.res.Runs[i]; len(run.Matrices) > 0 || len(run.Devices) > 0 {
			return p.res, nil
		}
	}
	return nil, fmt.Errorf("%s: no device line and no matrix of %s; expected e.g. \"Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\" and a table; save the whole output of the tool", name, Format)
}

// parser walks through the lines.
type parser struct {
	name string
	res  *Result
	// open is the matrix that rows go to; its Cols are nil until its header came.
	open *Matrix
	// cols and rows are the devices that the open matrix has as such.
	cols, rows map[int]bool
	have       map[int]bool // devices the run at hand has listed
	cliques    bool
}

func (p *parser) warnf(line int, format string, args ...any) {
	if len(p.res.Warnings) < maxWarnings {
		p.res.Warnings = append(p.res.Warnings, cluster.Warning{
			Source: fmt.Sprintf("%s:%d", p.name, line), Text: fmt.Sprintf(format, args...),
		})
	}
}

// run returns the run at hand, the first one when there is none yet.
func (p *parser) run(line int) *Run {
	if len(p.res.Runs) == 0 {
		p.res.Runs = append(p.res.Runs, Run{Line: line})
	}
	return &p.res.Runs[len(p.res.Runs)-1]
}

// newRun begins another run; nobody puts a thousand of them into one file.
func (p *parser) newRun(line int) error {
	if len(p.res.Runs) >= maxRuns {
		return fmt.Errorf("%s:%d: more than %d runs in one text; split the file", p.name, line, maxRuns)
	}
	p.res.Runs = append(p.res.Runs, Run{Line: line})
	p.have = nil
	return nil
}

func (p *parser) line(num int, text string) error {
	t := strings.TrimSpace(text)
	t = strings.TrimSpace(strings.Trim(t, "`*"))
	if strings.HasPrefix(t, "[P2P (Peer-to-Peer)") {
		p.endMatrix()
		if !p.run(num).empty() {
			return p.newRun(num)
		}
		return nil
	}
	if m, ok := parseTitle(t, num); ok {
		return p.title(m)
	}
	if p.open != nil && p.matrixLine(num, t) {
		return nil
	}
	if d, ok := parseDevice(t, num); ok {
		return p.device(d)
	}
	if a, ok := parseAccess(t); ok {
		run := p.run(num)
		if len(run.Access) < pairtable.MaxDevices*pairtable.MaxDevices {
			run.Access = append(run.Access, a)
		}
		return nil
	}
	p.clique(num, t)
	return nil
}

// empty reports whether nothing has been read into the run yet.
func (r *Run) empty() bool { return len(r.Devices)+len(r.Access)+len(r.Matrices)+len(r.Cliques) == 0 }

func (p *parser) device(d Device) error {
	p.endMatrix()
	run := p.run(d.Line)
	if p.have[d.Index] { // the list starts again
		if err := p.newRun(d.Line); err != nil {
			return err
		}
		run = p.run(d.Line)
	}
	if p.have == nil {
		p.have = map[int]bool{}
	}
	p.have[d.Index] = true // parseDevice bounds the numbers
	run.Devices = append(run.Devices, d)
	return nil
}

// title opens a matrix. A title that the run has already had begins another run.
func (p *parser) title(m Matrix) error {
	p.endMatrix()
	run := p.run(m.Line)
	if slices.ContainsFunc(run.Matrices, func(o Matrix) bool { return o.Title == m.Title }) {
		if err := p.newRun(m.Line); err != nil {
			return err
		}
	}
	p.open = &m
	return nil
}

// endMatrix files the open matrix.
func (p *parser) endMatrix() {
	m := p.open
	p.open, p.cliques = nil, false
	if m == nil {
		return
	}
	if len(m.Rows) == 0 {
		if m.By == "" { // a second sub-table may have been announced in vain
			p.warnf(m.Line, "%q has no rows; the text may be cut", m.Title)
		}
		return
	}
	if len(m.Rows) < len(m.Cols) {
		p.warnf(m.Line, "%q has %d rows for %d devices; the rest is missing", m.Title, len(m.Rows), len(m.Cols))
	}
	run := p.run(m.Line)
	if len(run.Matrices) < maxMatrices {
		run.Matrices = append(run.Matrices, *m)
	}
}

// matrixLine reads a header or a row of the open matrix and reports whether the
// line was one.
func (p *parser) matrixLine(num int, t string) bool {
	f := strings.Fields(t)
	if len(f) == 0 {
		return true // blank lines stand between sub-tables
	}
	if cols, by, ok := parseHeader(f); ok {
		m := p.open
		if len(m.Rows) > 0 { // the CPU half of a latency matrix
			next := Matrix{Title: m.Title, Line: m.Line, What: m.What, P2P: m.P2P, Both: m.Both, Method: m.Method}
			p.endMatrix()
			m = &next
			p.open = m
		}
		m.Cols, m.By = cols, by
		p.rows, p.cols = map[int]bool{}, make(map[int]bool, len(cols))
		for _, c := range cols {
			p.cols[c] = true
		}
		return true
	}
	device, values, ok := pairtable.Row(f, len(p.open.Cols))
	if !ok {
		p.endMatrix()
		return false
	}
	p.addRow(Row{Device: device, Line: num, Values: values})
	return true
}

func (p *parser) addRow(row Row) {
	m := p.open
	if p.rows[row.Device] {
		p.warnf(row.Line, "row %d of %q comes twice; kept the first", row.Device, m.Title)
		return
	}
	if !p.cols[row.Device] {
		p.warnf(row.Line, "row %d of %q has no column of its own; left out", row.Device, m.Title)
		return
	}
	if len(row.Values) != len(m.Cols) {
		p.warnf(row.Line, "row %d of %q has %d values for %d columns; used what is there", row.Device, m.Title, len(row.Values), len(m.Cols))
	}
	p.rows[row.Device] = true
	m.Rows = append(m.Rows, row)
}

// clique reads the list of groups that very old samples print instead of a
// connectivity matrix.
func (p *parser) clique(num int, t string) {
	if strings.HasPrefix(t, "P2P Cliques") {
		p.cliques = true
		return
	}
	if !p.cliques {
		return
	}
	inner, ok := strings.CutPrefix(t, "[")
	if inner, ok2 := strings.CutSuffix(inner, "]"); ok && ok2 {
		if ids, ok := pairtable.Numbers(strings.Fields(inner)); ok {
			if run := p.run(num); len(run.Cliques) < pairtable.MaxDevices {
				run.Cliques = append(run.Cliques, ids)
			}
			return
		}
	}
	p.cliques = t == ""
}
