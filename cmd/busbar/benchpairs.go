package main

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/engine/ranks"
	"busbar.dev/finding"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/stats"
	"busbar.dev/internal/texttab"
	"busbar.dev/report"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

type benchPairsCmd struct {
	common
	ranks.Job
	Size  string `default:"4M" placeholder:"SIZE" help:"Of the messages that bandwidth is measured with, 4M without it."`
	Small string `default:"8" placeholder:"SIZE" help:"Of the messages that latency is measured with, 8 bytes without it."`
	Warm  int    `short:"w" name:"warmup" default:"2" least:"0" help:"Runs of each pair before those that count."`
	Iters int    `name:"iters" default:"10" least:"1" help:"Runs of each pair that count; the faster quarter is taken."`
	Alone bool   `help:"One pair at a time; else all pairs of a round at once, each rank in one of them."`
	SVG   string `name:"svg" placeholder:"FILE" help:"Draw the bandwidths as a heat map."`
}

// Help ends with examples.
func (benchPairsCmd) Help() string {
	return "Measures latency and bandwidth between every two ranks, each direction and both at once, in rounds in which nobody is in two pairs, " +
		"and names what stands out: a host that is slow with everybody, a pair that is slow, a direction that is. Exit code 1 when one of them is worse than a note. " +
		"Start one rank a host to test a network: pairs on one host share its memory. With --alone nothing else uses the network; without, rounds show what a fabric can carry at once.\n\n" +
		"Examples:\n" +
		"  busbar bench pairs -n 4 --transport tcp\n" +
		"  busbar bench pairs -n 3 --alone --svg pairs.svg --json\n" +
		"  srun -N 16 --ntasks-per-node 1 busbar bench pairs --size 16M"
}

// Run measures as a rank, or starts ranks that do.
func (c *benchPairsCmd) Run(e *env) error {
	p := bench.PairPlan{Warm: c.Warm, Iters: c.Iters, Alone: c.Alone}
	var err error
	if p.Large, err = unit.ParseBytes(c.Size); err != nil {
		return fmt.Errorf("--size: %w", err)
	}
	if p.Small, err = unit.ParseBytes(c.Small); err != nil {
		return fmt.Errorf("--small: %w", err)
	}
	picture := func(data []byte) error {
		return e.writeFile(c.SVG, bytesOf(data))
	}
	return e.onRanks(c.common, &c.Job, ranks.Task{
		Valid: p.Validate, Memory: func(int) unit.Bytes { return p.Memory() }, Advice: "a smaller --size, fewer ranks or more hosts",
		Ready: func() error { return e.writable(c.SVG) },
		Work:  func(g *engine.Group, keep func([]byte) error) error { return c.measure(e, g, p, keep) },
		Keep:  picture,
		Same:  fmt.Sprint("pairs", p),
	})
}

// measure runs the plan on a group; rank 0 prints.
func (c *benchPairsCmd) measure(e *env, g *engine.Group, p bench.PairPlan, keep func([]byte) error) error {
	clear := func() {}
	turns := p.Turns(g.Size())
	t, err := bench.Pairs(e.ctx, g, p, func(k int) {
		clear()
		clear = e.progress(c.common, fmt.Sprintf("pairs, turn %d of %d", k+1, turns))
	})
	clear()
	if err != nil {
		return failure.Cannot(err)
	}
	if g.Rank() != 0 {
		return nil
	}
	t.Names = rankNames(g.Members())
	for _, m := range g.Members() {
		t.Hosts = append(t.Hosts, m.Host)
	}
	findings := t.Findings()
	if crowded(g.Members()) != "" { // what stands out may be who had a processor
		for i := range findings {
			findings[i].Severity = finding.Note
		}
	}
	if c.JSON {
		err = writeIndented(e.stdout, c.document(g, p, t, findings))
	} else {
		err = c.print(e.stdout, g, p, t, findings)
	}
	if err == nil && c.SVG != "" {
		var b bytes.Buffer
		if err = report.Heat(&b, t); err == nil {
			err = keep(b.Bytes())
		}
	}
	if err == nil && finding.Serious(findings) {
		return errWrong
	}
	return err
}

// rankNames are the hosts', with the rank where a host has several.
func rankNames(members []engine.Member) []string {
	count := map[string]int{}
	for _, m := range members {
		count[m.Host]++
	}
	names := make([]string, len(members))
	for i, m := range members {
		switch {
		case m.Host == "":
			names[i] = fmt.Sprintf("rank %d", i)
		case count[m.Host] > 1:
			names[i] = fmt.Sprintf("%s:%d", m.Host, i)
		default:
			names[i] = m.Host
		}
	}
	return names
}

// widest is the number of ranks whose table still can be read.
const widest = 32

// pairFigure is a figure of a table.
type pairFigure struct {
	title string
	of    func(pairs.Measure) float64
}

func pairFigureList() []pairFigure {
	return []pairFigure{
		{"bandwidth one way, GB/s (rows send, columns receive)", func(m pairs.Measure) float64 { return m.Rate.GBps() }},
		{"bandwidth with the other way at the same time, GB/s each", func(m pairs.Measure) float64 { return m.Both.GBps() }},
		{"latency one way, µs", func(m pairs.Measure) float64 { return m.Latency.Micros() }},
	}
}

// print writes tables and findings for people.
func (c *benchPairsCmd) print(w io.Writer, g *engine.Group, p bench.PairPlan, t *pairs.Table, findings []finding.Finding) error {
	n := len(t.Names)
	how := "all pairs of a round at once"
	if p.Alone {
		how = "one pair at a time"
	}
	fmt.Fprintf(w, "%d ranks, %s, transport %s, %s, %v and %v\n", n, counted(n*(n-1)/2, "pair"), g.Transport(), how, p.Small, p.Large)
	for _, f := range pairFigureList() {
		fmt.Fprintf(w, "\n%s\n", f.title)
		if n <= widest {
			if err := pairTable(t, f).Write(w); err != nil {
				return err
			}
		}
		low, mid, high := extremes(t, f.of)
		fmt.Fprintf(w, "median %s, from %s to %s\n", figureText(mid), figureText(low), figureText(high))
	}
	fmt.Fprintln(w)
	if len(findings) == 0 {
		fmt.Fprintln(w, "nothing stands out")
	}
	for _, f := range findings {
		fmt.Fprintf(w, "%s: %s (%.0f deviations)\n", f.Severity, texttab.Clean(f.Text), f.Sigma)
	}
	if note := crowded(g.Members()); note != "" {
		fmt.Fprintf(w, "note: %s; what stands out is a note at most\n", note)
	}
	return nil
}

// crowded says that ranks wait for processors rather than for each other.
func crowded(members []engine.Member) string {
	per := map[string]int{}
	most := 0
	for _, m := range members {
		per[m.Host]++
		most = max(most, per[m.Host])
	}
	if cpus := max(thisMachine().CPUs, runtime.NumCPU()); most > cpus {
		return fmt.Sprintf("%d ranks share %d processors of a host: they wait for those as well, and figures scatter", most, cpus)
	}
	return ""
}

// pairTable is one figure of all pairs.
func pairTable(t *pairs.Table, f pairFigure) *texttab.Table {
	n := len(t.Names)
	out := &texttab.Table{Columns: []texttab.Column{{Head: ""}}}
	for i := range n {
		out.Columns = append(out.Columns, texttab.Column{Head: fmt.Sprint(i), Align: texttab.Right})
	}
	grid := make([][]string, n)
	for i := range grid {
		grid[i] = append(grid[i], fmt.Sprintf("%d %s", i, texttab.Clean(strings.TrimPrefix(t.Names[i], "rank "))))
		grid[i] = append(grid[i], slices.Repeat([]string{"-"}, n)...)
	}
	for _, m := range t.Cells {
		grid[m.From][m.To+1] = figureText(f.of(m))
	}
	for _, row := range grid {
		out.Row(row...)
	}
	return out
}

// figureText is three digits.
func figureText(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// extremes are the least, the median and the greatest of a figure.
func extremes(t *pairs.Table, of func(pairs.Measure) float64) (low, mid, high float64) {
	var list []float64
	for _, m := range t.Cells {
		list = append(list, of(m))
	}
	if len(list) == 0 {
		return 0, 0, 0
	}
	return slices.Min(list), stats.Median(list), slices.Max(list)
}

// document is what --json prints. Rows send, columns receive; a rank to itself is null.
func (c *benchPairsCmd) document(g *engine.Group, p bench.PairPlan, t *pairs.Table, findings []finding.Finding) any {
	n := len(t.Names)
	doc := map[string]any{
		"ranks": n, "names": t.Names, "hosts": g.Hosts(), "transport": string(g.Transport()), "alone": p.Alone,
		"size_bytes": int64(p.Large), "small_bytes": int64(p.Small), "iters": p.Iters, "findings": append([]finding.Finding{}, findings...),
	}
	for i, name := range []string{"bandwidth_GBps", "both_GBps", "latency_us"} {
		of := pairFigureList()[i].of
		grid := make([][]*float64, n)
		for r := range grid {
			grid[r] = make([]*float64, n)
		}
		for _, m := range t.Cells {
			v := of(m)
			grid[m.From][m.To] = &v
		}
		_, mid, _ := extremes(t, of)
		doc[name], doc["median_"+name] = grid, mid
	}
	if note := crowded(g.Members()); note != "" {
		doc["notes"] = []string{note}
	}
	return doc
}
