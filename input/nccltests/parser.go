package nccltests

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
)

// columns is what a table's header names.
type columns struct {
	seen    bool
	root    bool
	perIter bool // four more figures in each half (-I)
}

// parser walks through the lines.
type parser struct {
	world   int // ranks, as a benchmark printed before its table
	name    string
	out     *Output
	program string            // last program named on a command line
	torn    *torn             // the row that is being put together
	hosts   map[string]bool   // of the rank lines
	glued   map[string]string // what unglue found
	rows    int
	full    bool // a limit was reached and said so
	script  script
}

func (p *parser) warnf(line int, format string, args ...any) {
	if len(p.out.Warnings) < maxWarnings {
		p.out.Warnings = append(p.out.Warnings, cluster.Warning{
			Source: fmt.Sprintf("%s:%d", p.name, line), Text: fmt.Sprintf(format, args...),
		})
	}
}

// table returns the table at hand, a new one when there is none. It is nil when
// the text holds more tables than we keep.
func (p *parser) table(line int) *Table {
	if n := len(p.out.Tables); n > 0 {
		return &p.out.Tables[n-1]
	}
	return p.newTable(line)
}

func (p *parser) newTable(line int) *Table {
	p.endRow()
	if len(p.out.Tables) >= maxTables {
		if !p.full {
			p.full = true
			p.warnf(line, "more than %d tables; the rest is left out: split the file", maxTables)
		}
		return nil
	}
	p.out.Tables = append(p.out.Tables, Table{
		Line: line, Average: math.NaN(), Params: noParams(), Test: p.program, OpFrom: "command",
	})
	return &p.out.Tables[len(p.out.Tables)-1]
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
func (t *Table) done() bool {
	return len(t.Sweeps) > 0 || t.Average == t.Average || t.OutOfBounds != ""
}

func (p *parser) line(num int, text string) {
	text, record := p.cutRecord(text)
	t := strings.TrimSpace(text)
	body := strings.TrimSpace(strings.TrimLeft(t, "#"))
	if body == "" {
		return
	}
	switch {
	case p.payloads(num, body), p.torchTables(num, body), p.scripts(num, body):
	case record:
		p.fields(num, strings.Fields(t), true)
	case strings.HasPrefix(body, "nThread ") && strings.Contains(body, " nGpus "):
		p.params(num, t, body)
	case strings.HasPrefix(body, "nccl-tests version "), strings.HasPrefix(body, "Collective test starting: "):
		p.starting(num, body)
	case strings.HasPrefix(body, "Rank ") && p.rank(num, body):
	case strings.HasPrefix(body, "Out of bounds values"):
		p.footer(num, body, func(tab *Table, v string) { tab.OutOfBounds = v })
	case strings.HasPrefix(body, "Avg bus bandwidth"):
		p.footer(num, body, func(tab *Table, v string) { tab.Average = leading(v) })
	case strings.Contains(body, "algbw") && p.columns(num, body):
	case strings.Contains(t, "Test NCCL failure") || strings.Contains(t, "Test CUDA failure") ||
		strings.Contains(t, ": Test failure "):
		if len(p.out.Failures) < maxFailures {
			p.out.Failures = append(p.out.Failures, Failure{num, t})
		}
	case strings.Contains(t, "_perf") && !strings.HasPrefix(t, "#"):
		p.command(t)
	case t[0] >= '0' && t[0] <= '9' || strings.IndexByte("-nNi.", t[0]) >= 0: // a figure, nan or inf
		p.fields(num, strings.Fields(t), false)
	}
}

// params begins a run.
func (p *parser) params(num int, text, body string) {
	t := p.fresh(num, func(t *Table) bool { return t.done() || t.Params.Text != "" || len(t.Ranks) > 0 })
	if t == nil {
		return
	}
	p.endRow()
	t.Params = parseParams(body)
	t.Params.Text = text
}

// starting reads the two lines that come before the parameters since 2.16.7.
func (p *parser) starting(num int, body string) {
	t := p.fresh(num, func(t *Table) bool { return t.done() || t.Params.Text != "" })
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
	t := p.fresh(num, func(t *Table) bool { return t.done() })
	if t == nil {
		return true
	}
	t.header.seen = true
	for _, s := range f {
		switch s {
		case "root":
			t.header.root = true
		case "cputime":
			t.CPUTime = true
		case "error":
			t.Delta = true
		case "i_min":
			t.header.perIter = true
		}
	}
	return true
}

var rankLine = lazyre.New(
	`^Rank\s+(\d+)(?:\s+Group\s+(\d+))?\s+Pid\s+(\d+)\s+on\s+(\S+)\s+device\s+(\d+)\s+\[([0-9a-fA-Fx:.]+)\]\s*(.*)$`)

// rank reads a rank line.
func (p *parser) rank(num int, body string) bool {
	m := rankLine.FindStringSubmatch(body)
	if m == nil {
		return false
	}
	r := Rank{Line: num, Group: -1, Host: m[4], Bus: m[6], Model: strings.TrimSpace(m[7])}
	for _, n := range []struct {
		text string
		dst  *int
	}{{m[1], &r.Rank}, {m[2], &r.Group}, {m[3], &r.PID}, {m[5], &r.Device}} {
		if n.text == "" {
			continue
		}
		v, err := strconv.Atoi(n.text)
		if err != nil || v > math.MaxInt32 {
			return false
		}
		*n.dst = v
	}
	if strings.Count(r.Bus, ":") == 2 {
		r.PCI, _ = cluster.ParsePCI(r.Bus)
	}
	t := p.fresh(num, func(t *Table) bool { return t.done() })
	if t == nil {
		return true
	}
	if len(t.Ranks) >= maxRanks || r.Rank >= maxRanks {
		if !p.full {
			p.full = true
			p.warnf(num, "rank %d: more than %d ranks in one run; the rest is left out", r.Rank, maxRanks)
		}
		return true
	}
	t.Ranks = append(t.Ranks, r)
	if !p.hosts[r.Host] && len(p.hosts) < maxRanks {
		p.hosts[r.Host] = true
		clear(p.glued)
	}
	return true
}

// footer reads "Avg bus bandwidth    : 68.4" and its like.
func (p *parser) footer(num int, body string, set func(*Table, string)) {
	_, v, ok := strings.Cut(body, ":")
	if !ok {
		return
	}
	p.endRow()
	if t := p.table(num); t != nil {
		set(t, strings.TrimSpace(v))
	}
}

// command remembers the program a command line names; it counts for the tables
// that follow, unless they name theirs.
func (p *parser) command(t string) {
	if program := programIn(t); program != "" {
		p.program = program
	}
}

func noParams() Params {
	return Params{
		Threads: -1, GPUs: -1, MinBytes: -1, MaxBytes: -1, Warmup: -1, Iters: -1, Aggregated: -1, Validation: -1, Graph: -1,
	}
}

// parseParams reads the pairs of name and number; "warmup iters:", "agg iters:"
// and "iters:" differ by the word before.
func parseParams(body string) Params {
	q := noParams()
	f := strings.Fields(body)
	for i := 0; i+1 < len(f); i++ {
		n, err := strconv.ParseInt(f[i+1], 10, 64)
		small := int(min(n, math.MaxInt32))
		if f[i] == "step:" {
			q.Step = f[i+1]
		}
		if err != nil || n < 0 {
			continue
		}
		switch f[i] {
		case "nThread":
			q.Threads = small
		case "nGpus":
			q.GPUs = small
		case "minBytes":
			q.MinBytes = n
		case "maxBytes":
			q.MaxBytes = n
		case "validation:":
			q.Validation = small
		case "graph:":
			q.Graph = small
		case "iters:":
			switch f[i-1] {
			case "warmup":
				q.Warmup = small
			case "agg":
				q.Aggregated = small
			default:
				q.Iters = small
			}
		}
	}
	return q
}

// leading reads the number a text begins with, NaN when there is none.
func leading(s string) float64 {
	f := strings.Fields(s)
	if len(f) > 0 {
		if v, err := strconv.ParseFloat(f[0], 64); err == nil {
			return v
		}
	}
	return math.NaN()
}
