package report

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
	"busbar.dev/result/pairs"
)

// widestPairs is the number of ranks whose table still can be read.
const widestPairs = 32

// BenchPairs prints the tables of all pairs of ranks, and what stands out.
func BenchPairs(p *Page, d *query.BenchPairsDoc) {
	t := pairs.FromGrids(d.Names, d.Rate, d.Both, d.Latency)
	p.send(pairList(t))
	n := d.Ranks
	p.printf("%d ranks, %s, transport %s, %s, %v and %v\n", n, words.Plural(n*(n-1)/2, "pair"), d.Transport,
		either(d.Alone, "one pair at a time", "all pairs of a round concurrently"), d.Small, d.Size)
	for _, f := range []struct {
		title string
		of    func(pairs.Measure) float64
	}{
		{"bandwidth, one direction, GB/s (rows send, columns receive)", pairs.GBps},
		{"bandwidth with both directions busy, GB/s per direction", pairs.BothGBps},
		{"latency, one direction, µs", pairMicros},
	} {
		p.printf("\n%s\n", f.title)
		if n <= widestPairs {
			p.lay(pairTable(t, f.of))
		}
		low, mid, high := t.Extremes(f.of)
		p.printf("median %s, from %s to %s\n", threeDigits(mid), threeDigits(low), threeDigits(high))
	}
	p.printf("\n")
	if len(d.Findings) == 0 {
		p.printf("no outliers\n")
	}
	for _, f := range d.Findings {
		p.printf("%s: %s (%.0f deviations)\n", f.Severity, f.Text, f.Sigma)
	}
	for _, note := range d.Notes {
		p.printf("note: %s; outliers are notes at most\n", note)
	}
}

func pairMicros(m pairs.Measure) float64 { return m.Latency.Micros() }

// pairList is all figures of all pairs, a row each, for writers that take tables.
func pairList(t *pairs.Table) *texttab.Table {
	out := texttab.New(">from", "from host", ">to", "to host", ">bandwidth (GB/s)",
		">bandwidth, both directions busy (GB/s)", ">latency (us)")
	name := func(i int) string { return strings.TrimPrefix(t.Names[i], "rank ") }
	for _, m := range t.Cells {
		out.Add(m.From, name(m.From), m.To, name(m.To), threeDigits(pairs.GBps(m)),
			threeDigits(pairs.BothGBps(m)), threeDigits(pairMicros(m)))
	}
	return out
}

// pairTable is one figure of all pairs.
func pairTable(t *pairs.Table, of func(pairs.Measure) float64) *texttab.Table {
	n := len(t.Names)
	out := texttab.New("")
	for i := range n {
		out.Columns = append(out.Columns, texttab.Column{Head: fmt.Sprint(i), Align: texttab.Right})
	}
	grid := make([][]string, n)
	for i := range grid {
		grid[i] = append(grid[i], fmt.Sprintf("%d %s", i, strings.TrimPrefix(t.Names[i], "rank ")))
		grid[i] = append(grid[i], slices.Repeat([]string{"-"}, n)...)
	}
	for _, m := range t.Cells {
		grid[m.From][m.To+1] = threeDigits(of(m))
	}
	for _, row := range grid {
		out.Row(row...)
	}
	return out
}

func threeDigits(v float64) string {
	if v < 1 {
		return fmt.Sprintf("%.3f", v)
	}
	return rounded(v, 10)
}
