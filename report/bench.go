package report

import (
	"cmp"
	"fmt"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/internal/texttab"
	"busbar.dev/query"
	"busbar.dev/result"
)

// ncclWidth is how many columns nccl-tests' table takes.
const ncclWidth = 123

// BenchRow prints the last row of a measurement as nccl-tests does, after the header where it is the
// first. A terminal with fewer columns gets the columns that differ from row to row.
func BenchRow(p *Page, d *query.BenchDoc) {
	s := d.Results[len(d.Results)-1]
	narrow := p.Width > 0 && p.Width < ncclWidth
	if len(d.Results) == 1 && len(s.Points) == 1 {
		benchHeader(p, d, s, narrow)
	}
	ncclLine(p, s, &s.Points[len(s.Points)-1], narrow)
}

// comment prints a line that is none of the table, wrapped between words where it does not fit.
func (p *Page) comment(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if p.Width <= 0 || texttab.Width(text)+2 <= p.Width {
		p.printf("# %s\n", text)
		return
	}
	p.hanging("# ", "#   ", texttab.Wrap(text, p.Width-4))
}

// BenchEnd prints what comes after the rows.
func BenchEnd(p *Page, d *query.BenchDoc) {
	p.send(ncclTable(d.Results, false))
	verdict := fmt.Sprintf("%d OK", d.WrongElements())
	switch {
	case d.WrongElements() > 0:
		verdict = fmt.Sprintf("%d FAILED", d.WrongElements())
	case !d.Checked:
		verdict = "N/A (not checked)"
	}
	p.printf("# Out of bounds values : %s\n# Avg bus bandwidth    : %.6g\n#\n# Collective test concluded: %s\n", verdict,
		d.AvgBus, benchProgram(d.Op))
}

// benchProgram is the name of the program of nccl-tests whose table this is.
func benchProgram(kind coll.Kind) string {
	return cmp.Or(kind.Binary(), strings.ReplaceAll(kind.String(), "_", "")+"_perf")
}

// benchHeader is nccl-tests'.
func benchHeader(p *Page, d *query.BenchDoc, s *result.Sweep, narrow bool) {
	check := 0
	if d.Checked {
		check = 1
	}
	p.comment("Collective test starting: %s", benchProgram(d.Op))
	p.comment("nThread 1 nGpus 1 minBytes %d maxBytes %d step: %v(factor) warmup iters: %d iters: %d agg iters: 1 "+
		"validation: %d graph: 0", int64(d.Min), int64(d.Max), d.Factor, d.Warmup, d.Iters, check)
	p.printf("#\n")
	p.comment("Using %d ranks on CPUs, transport %s, algorithm %s", d.Ranks, d.Transport, d.Algo)
	if d.Crowded != "" {
		p.comment("%s", d.Crowded)
	}
	for _, m := range d.Members {
		p.comment(" Rank %2d Group  0 Pid %6d on %10s device  %d [0x00] CPU", m.Rank, m.Pid, m.Host, m.Rank)
	}
	if narrow {
		cells := ncclCells(s, &s.Points[0])
		p.comment(" Elements of type %s, redop %s, root %s", cells[2], cells[3], cells[4])
	}
	p.printf("#\n")
	ncclHeader(p, narrow)
}

// ncclColumns are nccl-tests' columns: their names in a table, how wide they are, what stands above them and their
// unit. Those that most rows have in common are left out on a narrow terminal.
var ncclColumns = []struct {
	name       string
	width      int
	head, unit string
	common     bool
}{
	{">size (B)", 12, "size", "(B)", false},
	{">count", 12, "count", "(elements)", true},
	{"type", 8, "type", "", true},
	{"redop", 6, "redop", "", true},
	{">root", 6, "root", "", true},
	{">time (us)", 7, "time", "(us)", false},
	{">algbw (GB/s)", 6, "algbw", "(GB/s)", false},
	{">busbw (GB/s)", 6, "busbw", "(GB/s)", false},
	{">wrong", 6, "#wrong", "", false},
	{">in-place time (us)", 7, "time", "(us)", false},
	{">in-place algbw (GB/s)", 6, "algbw", "(GB/s)", false},
	{">in-place busbw (GB/s)", 6, "busbw", "(GB/s)", false},
	{">in-place wrong", 6, "#wrong", "", false},
}

// ncclHeader is the lines above the rows.
func ncclHeader(p *Page, narrow bool) {
	before, between := 61, 32
	if narrow {
		before, between = 13, 33
	}
	p.printf("#%*s%-*s%s\n", before, "", between, "out-of-place", "in-place")
	heads, units := "", ""
	for _, c := range ncclColumns {
		if !narrow || !c.common {
			heads += fmt.Sprintf("  %*s", c.width, c.head)
			units += fmt.Sprintf("  %*s", c.width, c.unit)
		}
	}
	p.printf("#%s\n#%s\n", heads[3:], units[3:])
}

// ncclCells are the cells of a row; none where nothing was measured, or checked.
func ncclCells(s *result.Sweep, p *result.Point) []string {
	cells := make([]string, len(ncclColumns))
	root := -1
	if s.Op.Rooted() {
		root = s.Root
	}
	op, _ := s.Operation(p.Size) // of a type that is unknown there is no count
	copy(cells, []string{
		fmt.Sprint(int64(p.Size)), fmt.Sprint(op.Count(s.Ranks)), s.Dtype, cmp.Or(s.Redop, "none"), fmt.Sprint(root),
	})
	one := *s
	one.Points = []result.Point{*p}
	for _, r := range one.Rows() {
		half := cells[5:]
		if r.InPlace {
			half = cells[9:]
		}
		// microseconds in the seven characters that nccl-tests has for them
		half[0], half[1], half[2] = rounded(r.Time.Mean.Micros(), 10000), fmt.Sprintf("%.2f", r.AlgBW().GBps()),
			fmt.Sprintf("%.2f", r.BusBW().GBps())
		if r.Wrong != nil {
			half[3] = fmt.Sprint(*r.Wrong)
		}
	}
	return cells
}

// ncclLine prints a row of nccl-tests' table.
func ncclLine(p *Page, s *result.Sweep, x *result.Point, narrow bool) {
	line := ""
	for i, text := range ncclCells(s, x) {
		if c := ncclColumns[i]; !narrow || !c.common {
			line += fmt.Sprintf("  %*s", c.width, cmp.Or(text, "N/A"))
		}
	}
	p.lines(line[2:])
}

// ncclTable is the rows for writers that take tables, all at once, with the collective and its setting where they may
// differ.
func ncclTable(list result.Sweeps, several bool) *texttab.Table {
	heads := []string{texttab.If(several, "operation", "setting")}
	for _, c := range ncclColumns {
		heads = append(heads, c.name)
	}
	t := texttab.New(heads...)
	for _, s := range list {
		for i := range s.Points {
			t.Row(append([]string{s.Op.String(), strings.TrimSpace(sweepSetting(s))}, ncclCells(s, &s.Points[i])...)...)
		}
	}
	return t
}
