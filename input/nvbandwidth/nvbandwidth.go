// Package nvbandwidth reads what NVIDIA's nvbandwidth prints: from the
// device-to-device tests the pairs of GPUs with their measured rates.
//
// The title of a matrix says which way data went, and the tool changed it over
// time: "GPU(row) -> GPU(column)" and "GPU(row) <- GPU(column)" are opposite.
// The title is believed, never the name of the test.
//
// Rates between a GPU and the host are passed over: the tool does not
// say which memory the host side was. So is the JSON of its option -j.
package nvbandwidth

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/gather"
	"busbar.dev/input/internal/pairtable"
	"busbar.dev/input/internal/warn"
	"busbar.dev/internal/lines"
)

// format names the tool in facts and messages.
const format = "nvbandwidth"

// maxTests bounds what one text may hold.
const maxTests = 10000

// Match reports whether a text holds output of the tool.
func Match(data []byte) bool {
	return bytes.Contains(data, []byte("nvbandwidth Version:")) || lines.Find(data, "(row)", func(line string) bool {
		_, ok := parseTitle(strings.TrimSpace(line))
		return ok
	})
}

// Read turns the output into a fragment: one node with GPUs and pairs.
func Read(name string, r io.Reader) (*cluster.Fragment, error) {
	p, err := read(name, r)
	if err != nil {
		return nil, err
	}
	f := &cluster.Fragment{Format: format, Source: name}
	p.addNode(f)
	return f, nil
}

// parser collects what a text holds.
type parser struct {
	prev    string // the line before, where the host name stands
	host    string // "" when the tool did not print it
	devices map[int]cluster.Device
	tests   int    // tests named so far, or found without a name
	test    string // the last of them
	tables  []*table
	open    *table // the matrix at hand
	warns   warn.List
}

// table is a matrix of a test.
type table struct {
	pairtable.Matrix
	title
	test string
}

// read collects what a text holds.
func read(name string, r io.Reader) (*parser, error) {
	p := &parser{devices: map[int]cluster.Device{}}
	err := lines.Each(name, r, func(num int, text string) error {
		p.line(num, strings.TrimSpace(text))
		if p.tests > maxTests || len(p.tables) > maxTests {
			return fmt.Errorf("%s:%d: more than %d tests; split the file", name, num, maxTests)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	p.end()
	if p.tests == 0 && len(p.devices) == 0 {
		return nil, fmt.Errorf("%s: no test of %s; expected lines such as \"Running device_to_device_memcpy_read_ce.\" and "+
			"a table; save the whole output of the tool", name, format)
	}
	return p, nil
}

func (p *parser) line(num int, t string) {
	prev := p.prev
	p.prev = t
	if p.open != nil && p.open.Figures(num, t) {
		return
	}
	p.end()
	test, running := strings.CutPrefix(t, "Running ")
	device, isDevice := strings.CutPrefix(t, "Device ")
	title, isTitle := parseTitle(t)
	switch {
	case running && !strings.Contains(test, " "): // else it is prose
		p.tests++
		p.test = strings.TrimSuffix(test, ".")
	case strings.HasPrefix(t, "ERROR"), strings.HasPrefix(t, "[ERROR]"):
		p.warns.Addf(num, "the tool reported: %.200s", t)
	case isTitle:
		p.open = &table{title: title, test: p.test}
		p.open.Title, p.open.Line = t, num
	case isDevice:
		p.device(num, device, prev)
	}
}

// device takes what follows "Device "; the line right before the first may be the host's name.
func (p *parser) device(num int, t, prev string) {
	d, ok := parseDevice(t)
	if !ok {
		return
	}
	if len(p.devices) == 0 && len(prev) <= 253 && gather.IsHost(prev) {
		p.host = prev
	}
	if _, twice := p.devices[d.Index]; twice {
		p.warns.Addf(num, "device %d comes twice; kept the first", d.Index)
		return
	}
	p.devices[d.Index] = d // parseDevice bounds the numbers
}

// end files the matrix at hand with its test, or with a test of no name when
// a document shows the table alone.
func (p *parser) end() {
	t := p.open
	p.open = nil
	switch {
	case t == nil:
	case t.Count() == 0:
		p.warns.Addf(t.Line, "%q has no rows; the text may be cut", t.Title)
	default:
		p.tests = max(p.tests, 1)
		p.tables = append(p.tables, t)
	}
}
