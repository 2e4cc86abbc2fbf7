//go:build unix

package main

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"busbar.dev/internal/stats"
	"busbar.dev/unit"
)

// why are the reasons for what is missed, as far as they are known.
//
//go:embed why.md
var why string

// goal is what a table is held to.
type goal struct {
	title string
	text  string
	// least is how many times as long a peer must take; 0 is no demand.
	least func(side string, size int64) float64
}

func tcpGoal(string, int64) float64 { return 1 }

func shmGoal(side string, size int64) float64 {
	if side == "Open MPI" && size >= 256<<10 {
		return 3
	}
	return 1
}

// report writes all tables and returns how many goals were missed and how many there are.
func (b *book) report(w io.Writer, plan []table, began time.Time) (missed, goals int) {
	var body strings.Builder
	for _, t := range plan {
		m, g := b.table(&body, t)
		missed, goals = missed+m, goals+g
	}
	fmt.Fprintf(w, "# busbar beside Gloo, Open MPI and MPICH\n\n")
	fmt.Fprintf(w, "Written by `make bench-peers` on %s in %.0f minutes.\n", began.UTC().Format("2006-01-02 15:04 MST"), time.Since(began).Minutes())
	for _, line := range describe() {
		fmt.Fprintf(w, "- %s\n", line)
	}
	fmt.Fprintf(w, "- other programs took %.0f%% of the processors in the median run, %.0f%% in the worst\n\n", 100*stats.Nearest(slices.Clone(b.others), 0.5), 100*stats.Nearest(slices.Clone(b.others), 1))
	fmt.Fprintf(w, "All sides take turns; a time is that of runs back to back, the slowest rank's, and the median of the rounds. "+
		"Sizes are nccl-tests'. all_reduce and broadcast are in place, the others out of place, all float32. "+
		"A figure such as 1.8× is the peer's time divided by busbar's: above 1 busbar is faster. **Bold** misses the goal.\n\n")
	fmt.Fprintf(w, "**%d of %d goals are met.**\n%s", goals-missed, goals, body.String())
	b.own(w)
	b.spread(w)
	io.WriteString(w, why)
	if len(b.errors) > 0 {
		fmt.Fprintf(w, "\n## What failed\n\n")
		for _, e := range b.errors {
			fmt.Fprintf(w, "- %s\n", strings.ReplaceAll(e, "\n", " "))
		}
	}
	return missed, goals
}

// table is one of the report.
type table struct {
	section, op string
	sides       []string
	goal        goal
	bound       func(ranks int, size int64) float64 // microseconds, nil where there is none
	reach       float64                             // of the bound
}

// table writes one; a row a size, a group of columns a number of ranks.
func (b *book) table(w io.Writer, t table) (missed, goals int) {
	var sizes []int64
	var ranks []int
	for k := range b.samples {
		if k.section == t.section && k.op == t.op {
			sizes, ranks = append(sizes, k.size), append(ranks, k.ranks)
		}
	}
	slices.Sort(sizes)
	slices.Sort(ranks)
	sizes, ranks = slices.Compact(sizes), slices.Compact(ranks)
	if len(sizes) == 0 {
		return 0, 0
	}
	fmt.Fprintf(w, "\n## %s\n\n%s\n\n| size |", t.goal.title, t.goal.text)
	for _, n := range ranks {
		fmt.Fprintf(w, " %d ranks |", n)
		for _, s := range t.sides {
			fmt.Fprintf(w, " %s |", s)
		}
		if t.bound != nil {
			fmt.Fprintf(w, " of the bound |")
		}
	}
	columns := 1 + len(ranks)*(1+len(t.sides))
	if t.bound != nil {
		columns += len(ranks)
	}
	fmt.Fprintf(w, "\n|%s\n", strings.Repeat("---:|", columns))
	for _, size := range sizes {
		fmt.Fprintf(w, "| %v |", unit.Bytes(size))
		for _, n := range ranks {
			m, g := b.cells(w, t, n, size)
			missed, goals = missed+m, goals+g
		}
		fmt.Fprintln(w)
	}
	return missed, goals
}

// cells are our time and the ratios of one size and number of ranks.
func (b *book) cells(w io.Writer, t table, n int, size int64) (missed, goals int) {
	k := key{t.section, t.op, n, size, us}
	ours, ok := b.best(k)
	if !ok {
		fmt.Fprint(w, strings.Repeat(" |", 1+len(t.sides)))
		if t.bound != nil {
			fmt.Fprint(w, " |")
		}
		return 0, 0
	}
	fmt.Fprintf(w, " %s |", micros(ours))
	judge := func(text string, fine bool) {
		goals++
		if !fine {
			missed++
			text = "**" + text + "**"
		}
		fmt.Fprintf(w, " %s |", text)
	}
	for _, s := range t.sides {
		k.side = s
		theirs, ok := b.best(k)
		switch {
		case !ok:
			fmt.Fprint(w, " – |")
		case s == plain:
			share := theirs / ours
			judge(fmt.Sprintf("%.0f%%", 100*share), share >= t.least(s, size))
		default:
			judge(ratio(theirs/ours), theirs/ours >= t.goal.least(s, size))
		}
	}
	if t.bound != nil {
		share := t.bound(n, size) / ours
		judge(fmt.Sprintf("%.0f%%", 100*share), size < 16<<20 || share >= t.reach)
	}
	return missed, goals
}

func ratio(x float64) string {
	if x >= 10 {
		return fmt.Sprintf("%.0f×", x)
	}
	return fmt.Sprintf("%.2f×", x)
}

// micros prints a time with three digits.
func micros(x float64) string {
	switch {
	case x < 10:
		return fmt.Sprintf("%.2f µs", x)
	case x < 100:
		return fmt.Sprintf("%.1f µs", x)
	case x < 1000:
		return fmt.Sprintf("%.0f µs", x)
	case x < 1e5:
		return fmt.Sprintf("%.3g ms", x/1e3)
	}
	return fmt.Sprintf("%.0f ms", x/1e3)
}
