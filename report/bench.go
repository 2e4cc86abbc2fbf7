package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/engine/bench"
	"busbar.dev/internal/texttab"
	"busbar.dev/query"
)

// ncclWidth is how many columns nccl-tests' table takes.
const ncclWidth = 123

// BenchRow prints the last row of a measurement as nccl-tests does, after the header where it is the
// first. A terminal with fewer columns, 0 being any number, gets the columns that differ from row to row.
func BenchRow(w io.Writer, d *query.BenchDoc, columns int) error {
	if len(d.Rows) == 0 || len(d.Rows) == 1 && d.Group == nil {
		return query.ErrDecoded
	}
	narrow := columns > 0 && columns < ncclWidth
	if len(d.Rows) == 1 {
		var head strings.Builder
		benchHeader(&head, d, narrow)
		if _, err := io.WriteString(w, commentsWrapped(head.String(), columns)); err != nil {
			return err
		}
	}
	return benchLine(w, &d.Rows[len(d.Rows)-1], d.Checked, narrow)
}

// commentsWrapped wraps comments between words where they do not fit.
func commentsWrapped(text string, columns int) string {
	if columns <= 0 {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if texttab.Width(line) <= columns {
			b.WriteString(line + "\n")
			continue
		}
		for i, part := range texttab.Wrap(strings.TrimPrefix(line, "# "), columns-4) {
			lead := "# "
			if i > 0 {
				lead = "#   "
			}
			b.WriteString(lead + part + "\n")
		}
	}
	return b.String()
}

// BenchEnd prints what comes after the rows.
func BenchEnd(w io.Writer, d *query.BenchDoc) error {
	if taken, err := benchTable(d).Send(w); taken {
		return err
	}
	verdict := fmt.Sprintf("%d OK", d.WrongElements())
	switch {
	case d.WrongElements() > 0:
		verdict = fmt.Sprintf("%d FAILED", d.WrongElements())
	case !d.Checked:
		verdict = "N/A (not checked)"
	}
	_, err := fmt.Fprintf(w, "# Out of bounds values : %s\n# Avg bus bandwidth    : %.6g\n#\n# Collective test "+
		"concluded: %s\n", verdict, d.AvgBus, benchProgram(d.Op))
	return err
}

// ncclHeads are nccl-tests' columns.
var ncclHeads = []string{
	">size (B)", ">count", "type", "redop", ">root", ">time (us)", ">algbw (GB/s)", ">busbw (GB/s)", ">wrong",
	">in-place time (us)", ">in-place algbw (GB/s)", ">in-place busbw (GB/s)", ">in-place wrong",
}

// benchTable is the rows for writers that take tables: all at once, in place beside out of place.
func benchTable(d *query.BenchDoc) *texttab.Table {
	t := texttab.New(ncclHeads...)
	for i := range d.Rows {
		r := &d.Rows[i]
		cells := []string{
			fmt.Sprint(int64(r.Size)), fmt.Sprint(r.Count), r.Dtype, cmp.Or(r.Redop, "none"), fmt.Sprint(r.Root),
		}
		for _, x := range []*query.BenchTiming{&r.BenchTiming, r.InPlace} {
			if x == nil {
				cells = append(cells, "", "", "", "")
				continue
			}
			wrong := ""
			if d.Checked {
				wrong = fmt.Sprint(x.Wrong)
			}
			cells = append(cells, strings.TrimSpace(benchTime(x.Time.Mean)), fmt.Sprintf("%.2f", x.AlgBW),
				fmt.Sprintf("%.2f", x.BusBW), wrong)
		}
		t.Row(cells...)
	}
	return t
}

// benchProgram is the name of the program of nccl-tests whose table this is.
func benchProgram(kind coll.Kind) string {
	if b := kind.Binary(); b != "" {
		return b
	}
	return strings.ReplaceAll(kind.String(), "_", "") + "_perf"
}

// benchHeader is nccl-tests'.
func benchHeader(w io.Writer, d *query.BenchDoc, narrow bool) {
	first, last := d.Plan.Sizes[0], d.Plan.Sizes[len(d.Plan.Sizes)-1]
	check := 0
	if d.Checked {
		check = 1
	}
	fmt.Fprintf(w, "# Collective test starting: %s\n", benchProgram(d.Op))
	fmt.Fprintf(w, "# nThread 1 nGpus 1 minBytes %d maxBytes %d step: %v(factor) warmup iters: %d iters: %d agg iters: "+
		"1 validation: %d graph: 0\n#\n",
		int64(first), int64(last), d.Factor, d.Warmup, d.Iters, check)
	fmt.Fprintf(w, "# Using %d ranks on CPUs, transport %s, algorithm %s\n", d.Group.Size(), d.Transport, d.Plan.Algo)
	if note := bench.Crowded(d.Group.Members()); note != "" {
		fmt.Fprintf(w, "# %s\n", note)
	}
	for r, m := range d.Group.Members() {
		fmt.Fprintf(w, "#  Rank %2d Group  0 Pid %6d on %10s device  %d [0x00] CPU\n", r, m.Pid, m.Host, r)
	}
	if narrow {
		r := &d.Rows[0]
		fmt.Fprintf(w, "#  Elements of type %s, redop %s, root %d\n#\n#%13s%-33s%s\n", r.Dtype, cmp.Or(r.Redop, "none"),
			r.Root, "", "out-of-place", "in-place")
		fmt.Fprintf(w, "# %10s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s\n", "size", "time", "algbw", "busbw", "#wrong", "time",
			"algbw", "busbw", "#wrong")
		fmt.Fprintf(w, "# %10s  %7s  %6s  %6s  %6s  %7s  %6s  %6s\n", "(B)", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)",
			"(GB/s)")
		return
	}
	fmt.Fprintf(w, "#\n#%58s%-24s%11s%s\n", "", "   out-of-place", "", "in-place")
	fmt.Fprintf(w, "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s\n", "size", "count", "type",
		"redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong")
	fmt.Fprintf(w, "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s\n", "(B)", "(elements)", "", "",
		"", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "")
}

// benchLine is a row of nccl-tests' table.
func benchLine(w io.Writer, r *query.BenchRow, checked, narrow bool) error {
	var text strings.Builder // one write, so that nothing comes into the middle of a row
	if narrow {
		fmt.Fprintf(&text, "%12d", r.Size)
	} else {
		fmt.Fprintf(&text, "%12d  %12d  %8s  %6s  %6s", r.Size, r.Count, r.Dtype, cmp.Or(r.Redop, "none"), fmt.Sprint(r.Root))
	}
	for _, t := range []*query.BenchTiming{&r.BenchTiming, r.InPlace} {
		if t == nil {
			fmt.Fprintf(&text, "  %7s  %6s  %6s  %6s", "N/A", "N/A", "N/A", "N/A")
			continue
		}
		wrong := "N/A"
		if checked {
			wrong = fmt.Sprint(t.Wrong)
		}
		fmt.Fprintf(&text, "  %7s  %6.2f  %6.2f  %6s", benchTime(t.Time.Mean), t.AlgBW, t.BusBW, wrong)
	}
	_, err := fmt.Fprintln(w, text.String())
	return err
}

// benchTime is microseconds in the seven characters that nccl-tests has for them.
func benchTime(us float64) string {
	switch {
	case us >= 100000:
		return fmt.Sprintf("%.0f", us)
	case us >= 10000:
		return fmt.Sprintf("%.1f", us)
	default:
		return fmt.Sprintf("%.2f", us)
	}
}
