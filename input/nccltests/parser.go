package nccltests

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/num"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/words"
)

// columns is what a table's header names.
type columns struct {
	seen    bool
	root    bool
	perIter bool // four more figures in each half (-I)
	// units are what the columns of sizes, times and rates count in: B, us and GB/s by themselves.
	units [3]string
}

// scale is how many bytes, µs or GB/s a unit is; that of nccl-tests where the line of units is not there. Sizes count
// by 1024, as those of its options.
var scale = words.Pairs("=1|B=1|KB=1024|KiB=1024|MB=1048576|MiB=1048576|GB=1073741824|GiB=1073741824|" +
	"us=1|ms=1000|s=1000000|GB/s=1|Gb/s=0.125|Gbps=0.125|MB/s=0.001")

var unitsLine = lazyre.New(`^\((\w+)\)\s+\(elements\)\s+\(([^)]+)\)\s+\(([^)]+)\)`)

// parser walks through the lines.
type parser struct {
	remarks
	name  string
	out   *Output
	torn  *torn           // the row that is being put together
	hosts map[string]bool // of the rank lines
	rows  int
	full  bool // the text holds more than is kept

	untimed, clashes noticed
}

// noticed is how many halves of rows were left out for one reason, and the first.
type noticed struct {
	n, line int
	first   string
}

func (s *noticed) note(line int, what string) {
	if s.n++; s.n == 1 {
		s.line, s.first = line, what
	}
}

// tell warns of what was left out.
func (p *parser) tell(s noticed, why string) {
	if s.n > 0 {
		p.warnf(s.line, "%s %s, the first: %s; left out", words.Plural(s.n, "figure"), why, s.first)
	}
}

// overflow says once that the text holds more than is kept.
func (p *parser) overflow(line int, what string, limit int) {
	if !p.full {
		p.full = true
		p.warnf(line, "more than "+what+"; the rest is left out: split the file", limit)
	}
}

// warnf warns of a line, up to a few.
func (p *parser) warnf(line int, format string, args ...any) {
	if len(p.out.Warnings) < maxWarnings {
		p.out.Warnings = append(p.out.Warnings,
			cluster.Warning{Source: place(p.name, line), Text: fmt.Sprintf(format, args...)})
	}
}

// table returns the table at hand, a new one when there is none. It is nil when
// the text holds more tables than we keep.
func (p *parser) table(line int) *Table {
	if t := p.lastTable(); t != nil {
		return t
	}
	return p.newTable(line)
}

func (p *parser) newTable(line int) *Table {
	p.endRow()
	if len(p.out.Tables) >= maxTables {
		p.overflow(line, "%d tables", maxTables)
		return nil
	}
	p.out.Tables = append(p.out.Tables,
		Table{Line: line, GPUs: -1, Test: p.program, OpFrom: "command", serial: p.serial})
	return p.lastTable()
}

// fresh returns the table at hand if it has not come as far as used says, else
// a new one.
func (p *parser) fresh(line int, used func(*Table) bool) *Table {
	if t := p.table(line); t == nil || !used(t) {
		return t
	}
	return p.newTable(line)
}

// done reports whether a table has rows or its end.
func (t *Table) done() bool { return len(t.Sweeps) > 0 || t.ended }

func (p *parser) line(num int, text string) {
	if p.remark(text) {
		if t := p.lastTable(); t != nil && !t.done() {
			t.Library = cmp.Or(t.Library, p.release)
		}
	}
	text, record := p.cutRecord(text)
	t := strings.TrimSpace(text)
	body := strings.TrimSpace(strings.TrimLeft(t, "#"))
	if body == "" {
		return
	}
	switch {
	case p.formLine(num, body):
	case record:
		p.fields(num, strings.Fields(t), true)
	case strings.HasPrefix(body, "nThread ") && strings.Contains(body, " nGpus "):
		p.params(num, body)
	case strings.HasPrefix(body, "nccl-tests version "), strings.HasPrefix(body, "Collective test starting: "):
		p.starting(num, body)
	case strings.HasPrefix(body, "Rank ") && p.rank(num, body):
	case strings.HasPrefix(body, "Out of bounds values"), strings.HasPrefix(body, "Avg bus bandwidth"):
		if strings.Contains(body, ":") { // "Avg bus bandwidth    : 68.4" and its like
			p.endRow()
			if t := p.table(num); t != nil {
				t.ended = true
			}
		}
	case strings.Contains(body, "algbw") && p.columns(num, body):
	case strings.HasPrefix(body, "(") && p.units(num, body):
	case strings.Contains(t, "Test NCCL failure") || strings.Contains(t, "Test CUDA failure") ||
		strings.Contains(t, ": Test failure "):
		p.out.Failure = cmp.Or(p.out.Failure, t)
	case strings.Contains(t, "_perf") && !strings.HasPrefix(t, "#"):
		p.commanded(t)
	case t[0] >= '0' && t[0] <= '9' || strings.IndexByte("-nNi.", t[0]) >= 0: // a figure, nan or inf
		p.fields(num, strings.Fields(t), false)
	}
}

// Before "iters:" stands a digit, and neither "warmup" nor "agg".
var paramsLine = lazyre.New(`^nThread \d+ nGpus (\d{1,9})(?:.*\d iters: (\d{1,9}))?`)

// params begins a run.
func (p *parser) params(line int, body string) {
	t := p.fresh(line, func(t *Table) bool { return t.done() || t.GPUs >= 0 || len(t.Ranks) > 0 })
	if t == nil {
		return
	}
	p.endRow()
	t.GPUs = -1
	if m := paramsLine.FindStringSubmatch(body); m != nil {
		t.GPUs, t.Iters = num.Int(m[1]), num.Int(m[2])
	}
}

// starting reads the two lines that come before the parameters since 2.16.7.
func (p *parser) starting(num int, body string) {
	t := p.fresh(num, func(t *Table) bool { return t.done() || t.GPUs >= 0 })
	if t == nil {
		return
	}
	if v, ok := strings.CutPrefix(body, "Collective test starting: "); ok {
		t.Test, t.OpFrom = strings.TrimSpace(v), "header"
		return
	}
	for _, f := range strings.Fields(strings.TrimPrefix(body, "nccl-tests version ")) {
		if v, ok := strings.CutPrefix(f, "nccl-library="); ok {
			t.Library = v
		} else if t.Version == "" && !strings.Contains(f, "=") {
			t.Version = f
		}
	}
}

// columns reads the header of a table.
func (p *parser) columns(num int, body string) bool {
	f := strings.Fields(body)
	if len(f) < 6 || f[0] != "size" || f[1] != "count" {
		return false
	}
	t := p.fresh(num, (*Table).done)
	if t == nil {
		return true
	}
	t.header.seen = true
	t.header.root = slices.Contains(f, "root")
	t.header.perIter = slices.Contains(f, "i_min")
	t.delta = slices.Contains(f, "error")
	return true
}

// units reads the line below the header.
func (p *parser) units(num int, body string) bool {
	m, t := unitsLine.FindStringSubmatch(body), p.lastTable()
	if m == nil || t == nil || t.done() {
		return m != nil
	}
	for i, unit := range m[1:] {
		if scale[unit] == "" {
			p.warnf(num, "a column counts in (%s), which is not known; taken as nccl-tests' own unit", unit)
			unit = ""
		}
		t.header.units[i] = unit
	}
	return true
}

var rankLine = lazyre.New(
	`^Rank\s+(\d{1,9})(?:\s+Group\s+\d+)?\s+Pid\s+\d+\s+on\s+(\S+)\s+device\s+(\d{1,9})\s+\[([0-9a-fA-Fx:.]+)\]\s*(.*)$`)

// rank reads a rank line.
func (p *parser) rank(line int, body string) bool {
	m := rankLine.FindStringSubmatch(body)
	if m == nil {
		return false
	}
	r := Rank{Rank: num.Int(m[1]), Host: m[2], Device: num.Int(m[3]), Bus: m[4], Model: strings.TrimSpace(m[5])}
	if strings.Count(r.Bus, ":") == 2 {
		r.PCI, _ = cluster.ParsePCI(r.Bus)
	}
	t := p.fresh(line, (*Table).done)
	if t == nil {
		return true
	}
	if len(t.Ranks) >= maxRanks || r.Rank >= maxRanks {
		p.overflow(line, "%d ranks in one run", maxRanks)
		return true
	}
	t.Ranks = append(t.Ranks, r)
	if len(p.hosts) < maxRanks {
		p.hosts[r.Host] = true
	}
	return true
}
