// Package nvbandwidth reads the output of NVIDIA's nvbandwidth, text or JSON:
// every test with its matrices, and from the device-to-device tests the pairs
// of GPUs with their measured rates.
//
// The title of a matrix says which way data went, and the tool changed it over
// time: "GPU(row) -> GPU(column)" and "GPU(row) <- GPU(column)" are opposite.
// The title is believed, never the name of the test.
//
// Rates between a GPU and the host are kept in the result and do not enter the
// cluster: the tool does not say which memory the host side was.
package nvbandwidth

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/pairtable"
	"busbar.dev/internal/lines"
)

// Format names the tool in facts and messages.
const Format = "nvbandwidth"

// Limits on what one text may hold.
const (
	maxTests    = 10000
	maxWarnings = 100
	maxJSON     = 16 << 20
)

// Device is a line "Device 0: NVIDIA H100 80GB HBM3 (00000000:18:00)".
type Device struct {
	Index int
	Model string
	PCI   cluster.PCI // "" before v0.6
	Line  int
}

// Matrix is one table of a test.
type Matrix struct {
	Title string
	Line  int
	// Row and Col are what rows and columns stand for, "CPU" or "GPU"; Arrow is
	// "->" for row to column, "<-" for column to row, "<->" for both. All are
	// empty in a title that does not say.
	Row, Col, Arrow string
	Part            string // "Read1", "Total": which share of a test in several tables
	Unit            string // "GB/s" or "ns"
	Cols            []int
	Rows            []Row
	Sum             float64 // as printed; NaN when it was not
}

// Row is one line of a matrix. NaN stands for N/A.
type Row struct {
	Index  int
	Line   int
	Values []float64
}

// Test is one test of the tool.
type Test struct {
	Name     string
	Line     int
	Status   string // "Waived" and the like, where the tool says so
	Matrices []Matrix
}

// Result is everything the text holds.
type Result struct {
	Version string // "v0.6"
	Git     string
	Runtime string // CUDA runtime version as printed, 12040
	CUDA    string // CUDA driver version
	Driver  string // 550.54.15
	Host    string // "" when the tool did not print it
	Devices []Device
	Tests   []Test
	Waived  int // tests that were skipped without their name
	// Warnings tell of tables that were cut or contradict each other.
	Warnings []cluster.Warning
}

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
	res, err := ReadResult(name, r)
	if err != nil {
		return nil, err
	}
	return res.Fragment(name), nil
}

// ReadResult reads the output as it is.
func ReadResult(name string, r io.Reader) (*Result, error) {
	br := bufio.NewReaderSize(r, 8<<10)
	if head, _ := br.Peek(8 << 10); isJSON(head) {
		return readJSON(name, br)
	}
	p := parser{name: name, res: &Result{}}
	if err := lines.Each(name, br, p.line); err != nil {
		return nil, err
	}
	p.endMatrix()
	if len(p.res.Tests) == 0 && len(p.res.Devices) == 0 {
		return nil, fmt.Errorf("%s: no test of %s; expected lines such as \"Running device_to_device_memcpy_read_ce.\" and a table; save the whole output of the tool", name, Format)
	}
	return p.res, nil
}

// parser walks through the lines of the text form.
type parser struct {
	name string
	res  *Result
	prev string // the line before, where the host name stands
	open *Matrix
	seen map[int]bool // rows of the open matrix
	have map[int]bool // devices listed
}

func (p *parser) warnf(line int, format string, args ...any) {
	if len(p.res.Warnings) < maxWarnings {
		p.res.Warnings = append(p.res.Warnings, cluster.Warning{
			Source: fmt.Sprintf("%s:%d", p.name, line), Text: fmt.Sprintf(format, args...),
		})
	}
}

func (p *parser) line(num int, t string) error {
	t = strings.TrimSpace(t)
	prev := p.prev
	p.prev = t
	if p.open != nil && p.matrixLine(num, t) {
		return nil
	}
	switch {
	case t == "":
	case strings.HasPrefix(t, "Running "):
		return p.test(num, strings.TrimSuffix(strings.TrimSpace(t[len("Running "):]), "."))
	case strings.HasPrefix(t, "Waived"), strings.HasPrefix(t, "WAIVED"):
		p.res.Waived++
	case strings.HasPrefix(t, "ERROR"), strings.HasPrefix(t, "[ERROR]"):
		p.warnf(num, "the tool reported: %.200s", t)
	case strings.HasPrefix(t, "SUM "):
		p.sum(t)
	case strings.HasPrefix(t, "Device ") && !strings.HasSuffix(t, "(ns)"):
		p.device(num, t, prev)
	case strings.Contains(t, ": "):
		p.header(t)
	}
	if m, ok := parseTitle(t, num); ok {
		p.endMatrix()
		p.open = &m
		p.seen = map[int]bool{}
	}
	return nil
}

// header keeps the versions.
func (p *parser) header(t string) {
	for _, h := range []struct {
		key string
		dst *string
	}{
		{"nvbandwidth Version: ", &p.res.Version},
		{"Built from Git version: ", &p.res.Git},
		{"CUDA Runtime Version: ", &p.res.Runtime},
		{"CUDA Driver Version: ", &p.res.CUDA},
		{"Driver Version: ", &p.res.Driver},
	} {
		if v, ok := strings.CutPrefix(t, h.key); ok && *h.dst == "" {
			*h.dst = strings.TrimSpace(v)
			return
		}
	}
}

func (p *parser) test(num int, name string) error {
	p.endMatrix()
	if name == "" || strings.ContainsAny(name, " \t") {
		return nil // prose
	}
	if len(p.res.Tests) >= maxTests {
		return fmt.Errorf("%s:%d: more than %d tests; split the file", p.name, num, maxTests)
	}
	p.res.Tests = append(p.res.Tests, Test{Name: name, Line: num})
	return nil
}

// device reads a device line; the line right before the first may be the host's
// name.
func (p *parser) device(num int, t, prev string) {
	d, ok := parseDevice(t[len("Device "):])
	if !ok {
		return
	}
	d.Line = num
	if len(p.res.Devices) == 0 && isHost(prev) {
		p.res.Host = prev
	}
	if p.have[d.Index] {
		p.warnf(num, "device %d comes twice; kept the first", d.Index)
		return
	}
	if p.have == nil {
		p.have = map[int]bool{}
	}
	p.have[d.Index] = true // parseDevice bounds the numbers
	p.res.Devices = append(p.res.Devices, d)
}

// sum puts the printed sum with the last matrix of the test.
func (p *parser) sum(t string) {
	f := strings.Fields(t)
	if len(f) != 3 || len(p.res.Tests) == 0 {
		return
	}
	ms := p.res.Tests[len(p.res.Tests)-1].Matrices
	if v, err := strconv.ParseFloat(f[2], 64); err == nil && len(ms) > 0 {
		ms[len(ms)-1].Sum = v
	}
}

// matrixLine reads the header or a row of the open matrix and reports whether
// the line was one.
func (p *parser) matrixLine(num int, t string) bool {
	f := strings.Fields(t)
	if len(f) == 0 {
		done := len(p.open.Rows) > 0
		if done {
			p.endMatrix()
		}
		return true
	}
	m := p.open
	if m.Cols == nil {
		cols, ok := pairtable.Numbers(f)
		if !ok {
			p.endMatrix()
			return false
		}
		m.Cols = cols
		return true
	}
	n, values, ok := pairtable.Row(f, len(m.Cols))
	if !ok {
		p.endMatrix()
		return false
	}
	row := Row{Index: n, Line: num, Values: values}
	switch {
	case p.seen[row.Index]:
		p.warnf(num, "row %d of %q comes twice; kept the first", row.Index, m.Title)
	case len(row.Values) != len(m.Cols):
		p.warnf(num, "row %d of %q has %d values for %d columns; used what is there", row.Index, m.Title, len(row.Values), len(m.Cols))
		fallthrough
	default:
		p.seen[row.Index] = true
		m.Rows = append(m.Rows, row)
	}
	return true
}

// endMatrix files the open matrix with its test, or with a test of no name when
// a document shows the table alone.
func (p *parser) endMatrix() {
	m := p.open
	p.open = nil
	if m == nil {
		return
	}
	if len(m.Rows) == 0 {
		p.warnf(m.Line, "%q has no rows; the text may be cut", m.Title)
		return
	}
	if len(p.res.Tests) == 0 {
		p.res.Tests = append(p.res.Tests, Test{Line: m.Line})
	}
	test := &p.res.Tests[len(p.res.Tests)-1]
	test.Matrices = append(test.Matrices, *m)
}
