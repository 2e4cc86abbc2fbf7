// Package p2pbw reads what two tools of NVIDIA measure between GPUs: p2pBandwidthLatencyTest, with the devices that it
// lists, which of them may access each other, and its matrices of bandwidth and latency; and nvbandwidth, of which the
// tests from device to device count.
//
// The matrices are found anywhere in a text, one alone in a document too. Several runs in one text become several
// nodes. The diagonal is a copy within one GPU's memory and says nothing about a pair; it stays out of the cluster. Of
// p2pBandwidthLatencyTest's latencies those that the GPU's clock measured are read. Rates of nvbandwidth between a GPU
// and the host are passed over: it does not say which memory the host side was.
//
// The title of a matrix says which way data went. nvbandwidth has an arrow, which is believed, never the name of the
// test. In p2pBandwidthLatencyTest the row's device writes to the column's, and in a "(P2P Reads)" matrix it reads from
// it; before titles named a method, the copy went from the column's device to the row's.
package p2pbw

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/gather"
	"busbar.dev/input/internal/pairtable"
	"busbar.dev/input/internal/warn"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// quoted is what Markdown puts around a line.
const quoted = " \t`*"

// Limits on what one text may hold.
const (
	maxRuns     = 1024
	maxMatrices = 10_000 // of one run
)

// Tool is a tool that prints such matrices.
type Tool struct {
	format  string         // names it in facts and messages
	begins  string         // its first line
	holds   string         // what every title of a matrix holds
	example string         // of a title
	title   *lazyre.Regexp // its text, without what follows, is a group
	device  *lazyre.Regexp
	// kind says what the figures of a matrix are, by the groups of its title.
	kind func(m *matrix, g map[string]string)
}

// P2P is p2pBandwidthLatencyTest. Numbers of addresses are hexadecimal; early samples end after the name or the
// device number.
var P2P = &Tool{
	format: "p2pBandwidthLatencyTest", begins: "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]", holds: "abled ",
	example: "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)",
	title: lazyre.
		New(`^#*\s*(?P<text>(?P<access>P2P Connectivity Matrix)|(?:Uni|(?P<both>Bi))?(?:directional )?P2P=(?:(?P<p2p>En)|Dis)abled ` +
			`(?:Bandwidth|Latency) (?:\(P2P (?P<method>Writes|Reads)\) )?Matrix \((?P<unit>GB/s|us)\))`),
	device: lazyre.New(`^Device: +(?P<number>\d+), (?P<model>.*?)(?:, pciBusID: *(?P<bus>[[:xdigit:]]+)` +
		`(?:, pciDeviceID: *(?P<slot>[[:xdigit:]]+))?(?:, pciDomainID: *(?P<domain>[[:xdigit:]]+))?.*)?$`),
	// The first figure of a pair is kept: with peer access before without, writes before reads.
	kind: func(m *matrix, g map[string]string) {
		m.source = "p2pBandwidthLatencyTest: " + m.Title
		m.both, m.turned = g["both"] != "", g["method"] == "Reads"
		switch {
		case g["p2p"] == "":
			m.rank = 2
		case m.turned:
			m.rank = 1
		}
		m.access, m.noMethod = g["access"] != "", g["method"] == ""
	},
}

// NVBandwidth is nvbandwidth. Addresses of devices are absent before v0.6.
var NVBandwidth = &Tool{
	format: "nvbandwidth", begins: "nvbandwidth Version:", holds: "(row)",
	example: "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",
	title: lazyre.New(`^(?P<text>.{0,100}GPU\(row\) (?P<arrow>->|<-|<->) GPU\(column\)(?P<part>.{0,60}?)(?: bandwidth)? ` +
		`\((?P<unit>GB/s|ns)\))$`),
	// Where MPI runs it, a matrix is of processes.
	device: lazyre.New(`^(?:Device|Process (?P<process>\d+) \((?P<host>[^()]+)\): device) ` +
		`(?P<number>\d+): (?P<model>.+?)(?: \((?P<pci>[[:xdigit:]]+:[[:xdigit:]:.]+)\))?$`),
	kind: func(m *matrix, g map[string]string) {
		m.source = strings.TrimSpace("nvbandwidth " + m.test)
		// What the path can carry is the highest of several tests.
		m.highest, m.both, m.turned = true, g["arrow"] == "<->", g["arrow"] == "<-"
		// Only "Total" counts both directions; older tables under its arrow time one of them and do not say which. Under
		// traffic the other way a rate is not the pair's own.
		m.useless = m.per == 0 && (m.both && strings.TrimSpace(g["part"]) != "Total" ||
			!m.both && strings.Contains(m.test, "bidirectional"))
	},
}

// matrix is a table with what its title says.
type matrix struct {
	pairtable.Matrix
	test     string // of nvbandwidth
	source   string // of its figures
	per      float64
	both     bool // the sum of both directions
	turned   bool // from the column's device to the row's
	noMethod bool // the title does not name one
	access   bool // 1 where the devices may access each other
	highest  bool // of several figures of a pair the highest counts, else the first
	useless  bool
	rank     int // which tables come first
	beaten   int // pairs for which it has more than the first
}

// run is the output of one run of a tool.
type run struct {
	host     string                 // "" where the tool did not print it
	hosts    map[string][]int       // of processes, where the tool ran on several
	devices  map[int]cluster.Device // by CUDA ordinal, or process
	access   []access
	matrices []*matrix
}

// access is a line "Device=0 CAN Access Peer Device=1".
type access struct {
	from, to int
	can      bool
}

var accessLine = lazyre.New(`^Device=(\d+) +(CAN|CANNOT) +Access +Peer +Device=(\d+)$`)

// Match reports whether a text holds output of the tool.
func (k *Tool) Match(data []byte) bool {
	return lines.Has(data, k.begins) || lines.Find(data, k.holds, func(line string) bool {
		return k.title.MatchString(strings.Trim(line, quoted))
	})
}

// Read turns the output into a fragment: one node a run, with GPUs and pairs.
func (k *Tool) Read(name string, r io.Reader) (*cluster.Fragment, error) {
	runs, err := k.runs(name, r)
	if err != nil {
		return nil, err
	}
	f := &cluster.Fragment{Format: k.format, Source: name}
	for _, run := range runs {
		run.addNode(f)
	}
	return f, nil
}

// parser walks through the lines.
type parser struct {
	*Tool
	name string
	runs []*run
	open *matrix // the matrix at hand
	prev string  // the line before
	test string  // that nvbandwidth runs
}

// runs collects the runs of a text.
func (k *Tool) runs(name string, r io.Reader) ([]*run, error) {
	p := &parser{Tool: k, name: name}
	p.newRun()
	if err := lines.Each(name, r, p.line); err != nil {
		return nil, err
	}
	p.end()
	p.runs = slices.DeleteFunc(p.runs, (*run).empty)
	if len(p.runs) == 0 {
		return nil, fmt.Errorf("%s: no device line and no matrix of %s; expected e.g. %q and a table; save the whole output "+
			"of the tool", name, k.format, k.example)
	}
	return p.runs, nil
}

// run is the run at hand.
func (p *parser) run() *run { return p.runs[len(p.runs)-1] }

// newRun begins another run, unless nothing has been read into the last.
func (p *parser) newRun() {
	if len(p.runs) == 0 || !p.run().empty() {
		p.runs = append(p.runs, &run{hosts: map[string][]int{}, devices: map[int]cluster.Device{}})
	}
}

func (r *run) empty() bool { return len(r.devices)+len(r.matrices) == 0 }

func (p *parser) line(num int, text string) error {
	t, prev := strings.Trim(text, quoted), p.prev
	p.prev = t
	if p.open != nil && p.open.Figures(num, t) {
		return nil
	}
	p.end()
	test, running := strings.CutPrefix(t, "Running ")
	if running && !strings.Contains(test, " ") { // else it is prose
		p.test = strings.Clone(strings.TrimSuffix(test, "."))
	} else if strings.HasPrefix(t, p.begins) {
		p.newRun()
	} else if g := p.title.Groups(t); g != nil {
		p.begin(num, g)
	} else if g := p.device.Groups(t); g != nil {
		p.addDevice(g, prev)
	} else if f := accessLine.FindStringSubmatch(t); f != nil {
		from, ok1 := pairtable.Number(f[1])
		to, ok2 := pairtable.Number(f[3])
		if run := p.run(); ok1 && ok2 && len(run.access) < pairtable.MaxDevices*pairtable.MaxDevices {
			run.access = append(run.access, access{from, to, f[2] == "CAN"})
		}
	}
	if len(p.runs) > maxRuns {
		return fmt.Errorf("%s:%d: more than %d runs in one text; split the file", p.name, num, maxRuns)
	}
	return nil
}

// addDevice takes a device. Where it stands there, the list begins again. The line before the first may be the host's
// name.
func (p *parser) addDevice(g map[string]string, prev string) {
	index, ok := pairtable.Number(g["number"])
	number, process := pairtable.Number(g["process"])
	if !process {
		number = index
	}
	if !ok {
		return
	}
	if _, again := p.run().devices[number]; again {
		p.newRun()
	}
	run := p.run()
	if len(run.devices) == 0 && len(prev) <= 253 && gather.IsHost(prev) {
		run.host = strings.Clone(prev)
	}
	if process {
		run.hosts[strings.Clone(g["host"])] = append(run.hosts[g["host"]], number)
	}
	d := board.GPU("nvidia", index)
	d.Model = board.Fact(strings.TrimSpace(g["model"]), p.format)
	address := g["pci"]
	if g["bus"] != "" {
		address = cmp.Or(g["domain"], "0") + ":" + g["bus"] + ":" + cmp.Or(g["slot"], "0") + ".0"
	}
	d.PCI, _ = cluster.ParsePCI(address)
	run.devices[number] = d
}

// begin opens a matrix. One that the run has already had begins another run.
func (p *parser) begin(line int, g map[string]string) {
	m := &matrix{test: p.test, per: map[string]float64{"us": 1, "ns": 1e3}[g["unit"]]}
	m.Title, m.Line = strings.Clone(g["text"]), line
	p.kind(m, g)
	if slices.ContainsFunc(p.run().matrices, func(o *matrix) bool { return o.Title == m.Title && o.test == m.test }) {
		p.newRun()
	}
	p.open = m
}

// end files the matrix at hand.
func (p *parser) end() {
	if m := p.open; m != nil && m.access {
		p.run().connect(m)
	} else if m != nil && m.Count() > 0 && len(p.run().matrices) < maxMatrices {
		if missing := m.Missing(); missing != "" {
			m.Warns.Addf(m.Line, "%s", missing)
		}
		p.run().matrices = append(p.run().matrices, m)
	}
	p.open = nil
}

// connect takes the table of who may access whom, unless a list of peers has said it.
func (r *run) connect(m *matrix) {
	if len(r.access) > 0 {
		return
	}
	for i, row := range m.Rows {
		for k := range m.Cols {
			from, _ := pairtable.Number(m.Cols[i])
			to, _ := pairtable.Number(m.Cols[k])
			if row != nil && (row.Cells[k] == "0" || row.Cells[k] == "1") {
				r.access = append(r.access, access{from, to, row.Cells[k] == "1"})
			}
		}
	}
}

// addNode adds the node of a run, with the devices that are listed and those that only a matrix names.
func (r *run) addNode(f *cluster.Fragment) {
	old := false // a sample from before titles named a method
	for _, m := range r.matrices {
		old = old || m.noMethod && m.rank == 0 && !m.both && m.per == 0
		m.Warns.AddTo(f, "")
		for _, c := range m.Cols {
			number, _ := pairtable.Number(c)
			if _, listed := r.devices[number]; !listed {
				r.devices[number] = board.GPU("nvidia", number)
			}
		}
	}
	for _, h := range slices.Sorted(maps.Keys(r.hosts)) {
		of := map[int]cluster.Device{}
		for _, number := range r.hosts[h] {
			of[number] = r.devices[number]
			delete(r.devices, number)
		}
		r.addDevices(f, h, of, old)
	}
	if n := len(r.hosts); n > 1 && len(r.matrices) > 0 {
		f.Warnf(r.matrices[0].Line, "",
			"%d hosts, joined by NVLink where a copy between them was measured; only rates within one are kept", n)
	}
	if len(r.devices) > 0 {
		r.addDevices(f, r.host, r.devices, old)
	}
}

// addDevices adds a node of some of the devices, with what was measured among them.
func (r *run) addDevices(f *cluster.Fragment, host string, devices map[int]cluster.Device, old bool) {
	node := pairtable.NewNode(f, devices)
	for _, a := range r.access {
		if node.Two(a.from, a.to) {
			node.Pair(a.from, a.to).P2P = cluster.Bool(a.can)
		}
	}
	slices.SortStableFunc(r.matrices, func(x, y *matrix) int { return x.rank - y.rank })
	for _, m := range r.matrices {
		node.AddFigures(&m.Matrix, m.turned || m.noMethod && old, m.figure)
	}
	node.Close(host)
	for _, m := range r.matrices {
		if m.beaten > 0 {
			warn.Found(f, m.Line, host, "p2p-slow", "warn",
				"clear ACS on the PCIe bridges and set iommu=pt, which send it through "+
					"the root complex; NCCL_P2P_DISABLE=1 until then",
				"%s: with peer access less than two thirds of what copies through host memory reach",
				words.Plural(m.beaten, "direction"))
		}
	}
}

// figure adds a figure to a pair.
func (m *matrix) figure(p *cluster.Pair, v float64) {
	to, rate := &p.Rate, unit.Rate(v)*unit.GBps
	switch {
	case m.useless:
		return
	case m.per > 0:
		if !p.Latency.Known() {
			p.Latency = cluster.FromMeasured(unit.Micros(v/m.per), m.source)
		}
		return
	case m.both:
		to = &p.Both
	}
	if m.rank == 2 && !m.both && to.Known() && 3*to.Value < 2*rate {
		m.beaten++
	}
	if !to.Known() || m.highest && rate > to.Value {
		*to = cluster.FromMeasured(rate, m.source)
	}
}
