package ncclgraph

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/tags"
)

// Limits of one text. NCCL has at most 64 channels; a rack has 72 GPUs.
const (
	maxGraphs   = 4096
	maxChannels = 1024
	maxElements = 1 << 18
)

// Match reports whether the text holds a graphs element.
func Match(data []byte) bool { return bytes.Contains(data, []byte("<graphs ")) }

// reader is where Read has come to.
type reader struct {
	set     Set
	open    []string
	found   bool
	decimal bool // dev is decimal where nothing is hexadecimal: up to NCCL 2.20
	count   int
	devs    []dev
	lines   []int // per graph
}

// dev remembers where a device number stands, for all are read in one base.
type dev struct {
	graph, channel, element int
	text                    string
	line                    int
}

// Read reads all graphs of the text.
func Read(name string, r io.Reader) (*Set, error) {
	x := reader{set: Set{Source: name}, decimal: true}
	s := tags.NewScanner(r)
	for {
		t, err := s.Next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = x.take(&t)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, s.Line(), err)
		}
	}
	if !x.found {
		return nil, fmt.Errorf("%s:1: no <graphs> element; expected NCCL graph XML, as NCCL writes to NCCL_GRAPH_DUMP_FILE", name)
	}
	if len(x.open) > 0 {
		x.warn(s.Line(), "the graphs end inside <%s>: cut off; read as far as they go", x.open[len(x.open)-1])
	}
	x.numbers()
	x.check()
	return &x.set, nil
}

func (x *reader) warn(line int, format string, args ...any) {
	if len(x.set.Warnings) < 100 {
		x.set.Warnings = append(x.set.Warnings, cluster.Warning{Source: fmt.Sprintf("%s:%d", x.set.Source, line), Text: fmt.Sprintf(format, args...)})
	}
}

func (x *reader) take(t *tags.Token) error {
	switch t.Kind {
	case tags.Decl:
		if strings.EqualFold(t.Name, "ENTITY") {
			return fmt.Errorf("the text declares XML entities; NCCL graph files have none: remove the DOCTYPE")
		}
	case tags.Broken:
		if len(x.open) > 0 && slices.Contains([]string{"graph", "channel", "gpu", "net"}, t.Name) {
			x.warn(t.Line, "<%s is not a whole tag; left out", t.Name)
		}
	case tags.Close:
		if i := slices.Index(x.open, t.Name); i >= 0 {
			x.open = x.open[:i]
		}
	case tags.Open, tags.Empty:
		return x.element(t)
	}
	return nil
}

// parent is where each element stands.
var parent = map[string]string{"graphs": "", "graph": "graphs", "channel": "graph", "gpu": "channel", "net": "channel"}

func (x *reader) element(t *tags.Token) error {
	in, known := parent[t.Name]
	if t.Name == "graphs" {
		x.found, x.open = true, x.open[:0]
		if v, _ := t.Get("version"); v != "1" {
			x.warn(t.Line, "graphs version %q; NCCL takes 1", v)
		}
	} else if !known || len(x.open) == 0 || x.open[len(x.open)-1] != in {
		return nil // NCCL ignores it too
	}
	if err := x.add(t); err != nil {
		return err
	}
	if t.Kind == tags.Open {
		x.open = append(x.open, t.Name)
	}
	return nil
}

func (x *reader) add(t *tags.Token) error {
	switch t.Name {
	case "graph":
		if len(x.set.Graphs) == maxGraphs {
			return fmt.Errorf("more than %d graphs; split the text", maxGraphs)
		}
		x.set.Graphs = append(x.set.Graphs, x.graph(t))
		x.lines = append(x.lines, t.Line)
	case "channel":
		g := &x.set.Graphs[len(x.set.Graphs)-1]
		if len(g.Channels) == maxChannels {
			return fmt.Errorf("graph %d has more than %d channels; NCCL has at most 64", g.ID, maxChannels)
		}
		g.Channels = append(g.Channels, nil)
	case "gpu", "net":
		if x.count++; x.count > maxElements {
			return fmt.Errorf("more than %d channel members; split the text", maxElements)
		}
		g := &x.set.Graphs[len(x.set.Graphs)-1]
		c := &g.Channels[len(g.Channels)-1]
		e := Element{Net: t.Name == "net", Rank: -1}
		if v, ok := t.Get("rank"); ok {
			e.Rank = x.int(t, "rank", v, -1)
		}
		v, _ := t.Get("dev")
		x.decimal = x.decimal && !strings.HasPrefix(v, "0x")
		x.devs = append(x.devs, dev{len(x.set.Graphs) - 1, len(g.Channels) - 1, len(*c), v, t.Line})
		*c = append(*c, e)
	}
	return nil
}

func (x *reader) graph(t *tags.Token) Graph {
	get := func(key string) int {
		v, _ := t.Get(key)
		return x.int(t, key, v, -1)
	}
	figure := func(key string) float64 {
		v, ok := t.Get(key)
		f, err := strconv.ParseFloat(v, 64)
		if !ok && key == "latencyinter" { // since 2.12
			return 0
		}
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f < 0 {
			x.warn(t.Line, "graph %s %q; expected a number: taken as 0", key, short(v))
			return 0
		}
		return f
	}
	g := Graph{
		ID: get("id"), Pattern: get("pattern"), CrossNic: get("crossnic"), NChannels: get("nchannels"),
		SpeedIntra: figure("speedintra"), SpeedInter: figure("speedinter"), LatencyInter: figure("latencyinter"),
	}
	g.TypeIntra, _ = t.Get("typeintra")
	g.TypeInter, _ = t.Get("typeinter")
	same, _ := t.Get("samechannels")
	g.SameChannels = same == "1"
	return g
}

func (x *reader) int(t *tags.Token, key, v string, other int) int {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > 1<<24 {
		x.warn(t.Line, "%s %s %q; expected a number", t.Name, key, short(v))
		return other
	}
	return n
}

// numbers reads the device numbers. Since 2.21 they are hexadecimal with the
// host's index in the high byte; before, decimal. A dump has one form or, where
// all numbers are below ten, the two read alike.
func (x *reader) numbers() {
	for _, d := range x.devs {
		e := &x.set.Graphs[d.graph].Channels[d.channel][d.element]
		base := 16
		if x.decimal {
			base = 10
		}
		v, err := strconv.ParseUint(strings.TrimPrefix(d.text, "0x"), base, 64)
		if err != nil || v&(1<<56-1) > 1<<24 {
			x.warn(d.line, "dev %q; expected a device number: taken as unknown", short(d.text))
			e.Dev = -1
			continue
		}
		e.Host, e.Dev = int(v>>56), int(v&(1<<56-1))
	}
}

// check names what a file says differently in two places.
func (x *reader) check() {
	for i, g := range x.set.Graphs {
		if g.NChannels >= 0 && g.NChannels != len(g.Channels) {
			x.warn(x.lines[i], "graph %d says %d channels and lists %d", g.ID, g.NChannels, len(g.Channels))
		}
	}
}

func short(s string) string { return s[:min(len(s), 60)] }
