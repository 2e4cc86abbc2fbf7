// Package p2pbw reads the output of NVIDIA's p2pBandwidthLatencyTest: the
// devices it lists, which of them may access each other, and its matrices of
// measured bandwidth and latency.
//
// The matrices are found anywhere in a text, one alone in a document too.
// Several runs in one text become several nodes. The diagonal is a copy within
// one GPU's memory and says nothing about a pair; it stays out of the cluster.
// Of latencies those that the GPU's clock measured are read.
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

// begins is the first line of the tool.
const begins = "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]"

// quoted is what Markdown puts around a line.
const quoted = " \t`*"

// Limits on what one text may hold.
const (
	maxRuns     = 1024
	maxMatrices = 64 // of one run; the tool prints eleven at most
)

// run is the output of one run of the tool.
type run struct {
	devices  map[int]cluster.Device // by CUDA ordinal
	access   []access
	matrices []*matrix
}

// matrix is a table with what its title says.
type matrix struct {
	pairtable.Matrix
	title
}

// Match reports whether a text holds output of the tool.
func Match(data []byte) bool {
	return bytes.Contains(data, []byte(begins)) || lines.Find(data, "abled ", func(line string) bool {
		_, _, ok := parseTitle(strings.Trim(line, quoted))
		return ok
	})
}

// Read turns the output into a fragment: one node a run, with GPUs and pairs.
func Read(name string, r io.Reader) (*cluster.Fragment, error) {
	p, err := read(name, r)
	if err != nil {
		return nil, err
	}
	f := &cluster.Fragment{Format: format, Source: name}
	for _, run := range p.runs {
		run.addNode(f)
	}
	return f, nil
}

// parser walks through the lines.
type parser struct {
	name string
	runs []*run
	open *matrix // the matrix at hand
}

// read collects the runs of a text.
func read(name string, r io.Reader) (*parser, error) {
	p := &parser{name: name, runs: []*run{{devices: map[int]cluster.Device{}}}}
	if err := lines.Each(name, r, p.line); err != nil {
		return nil, err
	}
	p.end()
	p.runs = slices.DeleteFunc(p.runs, (*run).empty)
	if len(p.runs) == 0 {
		return nil, fmt.Errorf("%s: no device line and no matrix of %s; expected e.g. \"Unidirectional P2P=Enabled "+
			"Bandwidth (P2P Writes) Matrix (GB/s)\" and a table; save the whole output of the tool", name, format)
	}
	return p, nil
}

// run is the run at hand.
func (p *parser) run() *run { return p.runs[len(p.runs)-1] }

// newRun begins another run, unless nothing has been read into the last.
func (p *parser) newRun() {
	if !p.run().empty() {
		p.runs = append(p.runs, &run{devices: map[int]cluster.Device{}})
	}
}

func (r *run) empty() bool { return len(r.devices)+len(r.matrices) == 0 }

func (p *parser) line(num int, text string) error {
	t := strings.Trim(text, quoted)
	device, isDevice := parseDevice(t)
	title, what, isTitle := parseTitle(t)
	access, isAccess := parseAccess(t)
	switch {
	case strings.HasPrefix(t, begins):
		p.end()
		p.newRun()
	case isTitle:
		p.begin(title, what, num)
	case p.open != nil && p.open.Figures(num, t):
	case isDevice:
		p.end()
		if _, again := p.run().devices[device.Index]; again { // the list starts again
			p.newRun()
		}
		p.run().devices[device.Index] = device
	case isAccess:
		if run := p.run(); len(run.access) < pairtable.MaxDevices*pairtable.MaxDevices {
			run.access = append(run.access, access)
		}
	default:
		p.end()
	}
	if len(p.runs) > maxRuns {
		return fmt.Errorf("%s:%d: more than %d runs in one text; split the file", p.name, num, maxRuns)
	}
	return nil
}

// begin opens a matrix. A title that the run has already had begins another run.
func (p *parser) begin(text string, t title, line int) {
	p.end()
	if slices.ContainsFunc(p.run().matrices, func(o *matrix) bool { return o.Title == text }) {
		p.newRun()
	}
	p.open = &matrix{title: t}
	p.open.Title, p.open.Line = text, line
}

// end files the matrix at hand.
func (p *parser) end() {
	if m := p.open; m != nil && m.Count() > 0 && len(p.run().matrices) < maxMatrices {
		if missing := m.Missing(); missing != "" {
			m.Warns.Addf(m.Line, "%s", missing)
		}
		p.run().matrices = append(p.run().matrices, m)
	}
	p.open = nil
}
