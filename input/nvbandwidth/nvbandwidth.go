// Package nvbandwidth reads the output of NVIDIA's nvbandwidth, text or JSON:
// from the device-to-device tests the pairs of GPUs with their measured rates.
//
// The title of a matrix says which way data went, and the tool changed it over
// time: "GPU(row) -> GPU(column)" and "GPU(row) <- GPU(column)" are opposite.
// The title is believed, never the name of the test.
//
// Rates between a GPU and the host do not enter the cluster: the tool does not
// say which memory the host side was.
package nvbandwidth

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/gather"
	"busbar.dev/input/internal/pairtable"
	"busbar.dev/internal/lines"
)

// format names the tool in facts and messages.
const format = "nvbandwidth"

// Limits on what one text may hold.
const (
	maxTests = 10000
	maxJSON  = 16 << 20
)

// Match reports whether a text holds output of the tool.
func Match(data []byte) bool {
	if bytes.Contains(data, []byte("nvbandwidth Version:")) {
		return true
	}
	if bytes.Contains(data, []byte(`"nvbandwidth"`)) && bytes.Contains(data, []byte(`"testcases"`)) {
		return true
	}
	for _, s := range []string{"(row) -> GPU(column)", "(row) <- GPU(column)", "(row) <-> GPU(column)"} {
		if bytes.Contains(data, []byte(s)) {
			return true
		}
	}
	return false
}

// Read turns the output into a fragment: one node with GPUs and pairs.
func Read(name string, r io.Reader) (*cluster.Fragment, error) {
	p, err := read(name, r)
	if err != nil {
		return nil, err
	}
	p.addNode()
	return p.Frag, nil
}

// parser collects what a text holds.
type parser struct {
	pairtable.Scanner
	prev    string // the line before, where the host name stands
	host    string // "" when the tool did not print it
	devices map[int]pairtable.Device
	tests   int    // tests named so far, or found without a name
	test    string // the last of them
	title   title  // of the matrix at hand
	tables  []table
}

// table is a matrix of a test.
type table struct {
	pairtable.Matrix
	title
	test string
}

// read collects what a text holds.
func read(name string, r io.Reader) (*parser, error) {
	p := &parser{devices: map[int]pairtable.Device{}}
	p.Frag = &cluster.Fragment{Format: format, Source: name}
	br := bufio.NewReaderSize(r, 8<<10)
	if head, _ := br.Peek(8 << 10); isJSON(head) {
		return p, p.readJSON(name, br)
	}
	if err := lines.Each(name, br, p.line); err != nil {
		return nil, err
	}
	p.end()
	if p.tests == 0 && len(p.devices) == 0 {
		return nil, fmt.Errorf("%s: no test of %s; expected lines such as \"Running device_to_device_memcpy_read_ce.\" and "+
			"a table; save the whole output of the tool", name, format)
	}
	return p, nil
}

func (p *parser) line(num int, t string) error {
	t = strings.TrimSpace(t)
	prev := p.prev
	p.prev = t
	if p.Open() != nil && p.matrixLine(num, t) {
		return nil
	}
	switch {
	case strings.HasPrefix(t, "Running "):
		return p.newTest(num, strings.TrimSuffix(strings.TrimSpace(t[len("Running "):]), "."))
	case strings.HasPrefix(t, "ERROR"), strings.HasPrefix(t, "[ERROR]"):
		p.Warnf(num, "the tool reported: %.200s", t)
	case strings.HasPrefix(t, "Device ") && !strings.HasSuffix(t, "(ns)"):
		p.device(num, t[len("Device "):], prev)
	}
	if title, ok := parseTitle(t); ok {
		p.end()
		p.title = title
		p.Begin(t, num)
	}
	return nil
}

func (p *parser) newTest(num int, name string) error {
	p.end()
	if name == "" || strings.ContainsAny(name, " \t") {
		return nil // prose
	}
	if p.tests++; p.tests > maxTests {
		return fmt.Errorf("%s:%d: more than %d tests; split the file", p.Frag.Source, num, maxTests)
	}
	p.test = name
	return nil
}

// device takes what follows "Device "; the line right before the first may be the host's name.
func (p *parser) device(num int, t, prev string) {
	d, ok := parseDevice(t)
	if !ok {
		return
	}
	if len(p.devices) == 0 && isHost(prev) {
		p.host = prev
	}
	if _, twice := p.devices[d.Number]; twice {
		p.Warnf(num, "device %d comes twice; kept the first", d.Number)
		return
	}
	d.Line = num
	p.devices[d.Number] = d // parseDevice bounds the numbers
}

// isHost reports whether a line is a host name alone.
func isHost(s string) bool { return len(s) <= 253 && gather.IsHost(s) }

// matrixLine reads the header or a row of the matrix at hand and reports whether
// the line was one.
func (p *parser) matrixLine(num int, t string) bool {
	f := strings.Fields(t)
	if len(f) == 0 {
		if len(p.Open().Rows) > 0 {
			p.end()
		}
		return true
	}
	if p.Open().Cols == nil {
		cols, ok := pairtable.Numbers(f)
		if ok {
			p.Header("", cols)
			return true
		}
	} else if p.Row(num, f) {
		return true
	}
	p.end()
	return false
}

// end files the matrix at hand with its test, or with a test of no name when
// a document shows the table alone.
func (p *parser) end() {
	if m := p.End(); m != nil {
		p.tests = max(p.tests, 1)
		p.tables = append(p.tables, table{*m, p.title, p.test})
	}
}
