package main

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"busbar.dev/unit"
)

// why are the reasons for what is missed, as far as they are known.
//
//go:embed why.md
var why string

// report writes all tables.
func (b *book) report(w io.Writer, began time.Time) {
	var body strings.Builder
	missed, goals := 0, 0
	for _, t := range tables() {
		m, g := b.table(&body, &t)
		missed, goals = missed+m, goals+g
	}
	fmt.Fprintf(w, "# busbar beside Gloo, Open MPI and MPICH\n\n")
	fmt.Fprintf(w, "Written by `make bench-peers` on %s in %.0f minutes.\n", began.UTC().Format("2006-01-02 15:04 MST"),
		time.Since(began).Minutes())
	for _, line := range describe() {
		fmt.Fprintf(w, "- %s\n", line)
	}
	fmt.Fprintf(w, "\nAll sides take turns; a time is that of runs back to back, the slowest rank's, and the median of "+
		"the rounds. "+
		"Sizes are nccl-tests'. all_reduce and broadcast are in place, the others out of place, all float32. "+
		"A figure such as 1.8× is the peer's time divided by busbar's: above 1 busbar is faster. **Bold** misses the "+
		"goal.\n\n")
	fmt.Fprintf(w, "**%d of %d goals are met.**\n%s", goals-missed, goals, body.String())
	b.spread(w)
	io.WriteString(w, why)
	if len(b.errors) > 0 {
		fmt.Fprintf(w, "\n## What failed\n\n- %s\n", strings.ReplaceAll(strings.Join(b.errors, "\n- "), "\n ", " "))
	}
}

// table is one of the report.
type table struct {
	section, op, title, text string
	sides                    []string
	ahead                    float64 // how many times as long Open MPI must take from 256 KiB on; 0 is 1
	share                    float64 // of the vector that every card must carry each way; 0 where there is no bound
	reach                    float64 // of that bound, or of what plain sockets carry
}

// large is the size from which on bounds count.
const large = 16 << 20

// least is how many times as long a side must take.
func (t *table) least(side string, size int64) float64 {
	switch {
	case side == plain:
		return t.reach
	case side == "Open MPI" && size >= 256<<10:
		return max(t.ahead, 1)
	}
	return 1
}

// table writes one; a row a size, a group of columns a number of ranks.
func (b *book) table(w io.Writer, t *table) (missed, goals int) {
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
	fmt.Fprintf(w, "\n## %s\n\n%s\n\n| size |", t.title, t.text)
	for _, n := range ranks {
		fmt.Fprintf(w, " %d ranks |", n)
		for _, s := range t.sides {
			fmt.Fprintf(w, " %s |", s)
		}
		if t.share > 0 {
			fmt.Fprintf(w, " of the bound |")
		}
	}
	fmt.Fprintf(w, "\n|%s\n", strings.Repeat("---:|", 1+len(ranks)*t.width()))
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

// width is how many columns a number of ranks takes.
func (t *table) width() int {
	if t.share > 0 {
		return 2 + len(t.sides)
	}
	return 1 + len(t.sides)
}

// cells are our time and the ratios of one size and number of ranks.
func (b *book) cells(w io.Writer, t *table, n int, size int64) (missed, goals int) {
	k := key{t.section, t.op, n, size, us}
	ours, ok := b.best(k)
	if !ok {
		fmt.Fprint(w, strings.Repeat(" |", t.width()))
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
			judge(fmt.Sprintf("%.0f%%", 100*theirs/ours), theirs/ours >= t.reach)
		default:
			judge(ratio(theirs/ours), theirs/ours >= t.least(s, size))
		}
	}
	if t.share > 0 {
		share := t.share * float64(size) / nominal / ours
		judge(fmt.Sprintf("%.0f%%", 100*share), size < large || share >= t.reach)
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
