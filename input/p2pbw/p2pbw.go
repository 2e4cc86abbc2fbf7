// Package p2pbw reads the output of NVIDIA's p2pBandwidthLatencyTest: the
// devices it lists, which of them may access each other, and its matrices of
// measured bandwidth and latency.
//
// The matrices are found anywhere in a text, one alone in a document too.
// Several runs in one text become several nodes. The diagonal is a copy within
// one GPU's memory and says nothing about a pair; it stays out of the cluster.
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

// format names the tool in facts and messages.
const format = "p2pBandwidthLatencyTest"

// Limits on what one text may hold.
const (
	maxRuns     = 1024
	maxMatrices = 64 // of one run; the tool prints eleven at most
)

// run is the output of one run of the tool.
type run struct {
	devices  map[int]pairtable.Device // by CUDA ordinal
	access   []access
	cliques  [][]int // groups of devices with peer access, in very old output
	matrices []matrix
}

// access is a line "Device=0 CAN Access Peer Device=1".
type access struct {
	from, to int
	can      bool
}

// matrix is a table with what its title says.
type matrix struct {
	pairtable.Matrix
	title
}

// Match reports whether a text holds output of the tool.
func Match(data []byte) bool {
	if bytes.Contains(data, []byte("[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]")) {
		return true
	}
	for _, title := range []string{
		"P2P=Enabled Bandwidth", "P2P=Disabled Bandwidth", "P2P=Enabled Latency", "P2P=Disabled Latency",
		"P2P Connectivity Matrix",
	} {
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
	p, err := read(name, r)
	if err != nil {
		return nil, err
	}
	for _, run := range p.runs {
		if len(run.devices) > 0 || len(run.matrices) > 0 {
			run.addNode(p.Frag)
		}
	}
	return p.Frag, nil
}

// parser walks through the lines.
type parser struct {
	pairtable.Scanner
	runs    []*run
	title   title // of the matrix at hand
	cliques bool
}

// read collects the runs of a text.
func read(name string, r io.Reader) (*parser, error) {
	p := &parser{}
	p.Frag, p.Square = &cluster.Fragment{Format: format, Source: name}, true
	if err := lines.Each(name, r, p.line); err != nil {
		return nil, err
	}
	p.end()
	for _, run := range p.runs {
		if len(run.matrices) > 0 || len(run.devices) > 0 {
			return p, nil
		}
	}
	return nil, fmt.Errorf("%s: no device line and no matrix of %s; expected e.g. \"Unidirectional P2P=Enabled "+
		"Bandwidth (P2P Writes) Matrix (GB/s)\" and a table; save the whole output of the tool", name, format)
}

// run returns the run at hand, the first one when there is none yet.
func (p *parser) run() *run {
	if len(p.runs) == 0 {
		p.runs = append(p.runs, &run{devices: map[int]pairtable.Device{}})
	}
	return p.runs[len(p.runs)-1]
}

// newRun begins another run; nobody puts a thousand of them into one file.
func (p *parser) newRun(line int) error {
	if len(p.runs) >= maxRuns {
		return fmt.Errorf("%s:%d: more than %d runs in one text; split the file", p.Frag.Source, line, maxRuns)
	}
	p.runs = append(p.runs, &run{devices: map[int]pairtable.Device{}})
	return nil
}

func (p *parser) line(num int, text string) error {
	t := strings.TrimSpace(text)
	t = strings.TrimSpace(strings.Trim(t, "`*"))
	if strings.HasPrefix(t, "[P2P (Peer-to-Peer)") {
		p.end()
		if !p.run().empty() {
			return p.newRun(num)
		}
		return nil
	}
	if text, title, ok := parseTitle(t); ok {
		return p.begin(text, title, num)
	}
	if p.Open() != nil && p.matrixLine(num, t) {
		return nil
	}
	if d, ok := parseDevice(t); ok {
		d.Line = num
		return p.device(d)
	}
	if a, ok := parseAccess(t); ok {
		if run := p.run(); len(run.access) < pairtable.MaxDevices*pairtable.MaxDevices {
			run.access = append(run.access, a)
		}
		return nil
	}
	p.clique(t)
	return nil
}

// empty reports whether nothing has been read into the run yet.
func (r *run) empty() bool { return len(r.devices)+len(r.access)+len(r.matrices)+len(r.cliques) == 0 }

func (p *parser) device(d pairtable.Device) error {
	p.end()
	if _, again := p.run().devices[d.Number]; again { // the list starts again
		if err := p.newRun(d.Line); err != nil {
			return err
		}
	}
	p.run().devices[d.Number] = d // parseDevice bounds the numbers
	return nil
}

// begin opens a matrix. A title that the run has already had begins another run.
func (p *parser) begin(text string, t title, line int) error {
	p.end()
	if slices.ContainsFunc(p.run().matrices, func(o matrix) bool { return o.Title == text }) {
		if err := p.newRun(line); err != nil {
			return err
		}
	}
	p.title = t
	p.Begin(text, line)
	return nil
}

// end files the matrix at hand.
func (p *parser) end() {
	p.cliques = false
	m := p.End()
	if m == nil {
		return
	}
	if len(m.Rows) < len(m.Cols) {
		p.Warnf(m.Line, "%q has %d rows for %d devices; the rest is missing", m.Title, len(m.Rows), len(m.Cols))
	}
	if run := p.run(); len(run.matrices) < maxMatrices {
		run.matrices = append(run.matrices, matrix{*m, p.title})
	}
}

// matrixLine reads a header or a row of the matrix at hand and reports whether the
// line was one.
func (p *parser) matrixLine(num int, t string) bool {
	f := strings.Fields(t)
	if len(f) == 0 {
		return true // blank lines stand between sub-tables
	}
	if cols, by, ok := parseHeader(f); ok {
		if m := p.Open(); len(m.Rows) > 0 { // the CPU half of a latency matrix
			p.end()
			p.Begin(m.Title, m.Line)
		}
		p.Header(by, cols)
		return true
	}
	if p.Row(num, f) {
		return true
	}
	p.end()
	return false
}

// clique reads the list of groups that very old samples print instead of a
// connectivity matrix.
func (p *parser) clique(t string) {
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
			if run := p.run(); len(run.cliques) < pairtable.MaxDevices {
				run.cliques = append(run.cliques, ids)
			}
			return
		}
	}
	p.cliques = t == ""
}
