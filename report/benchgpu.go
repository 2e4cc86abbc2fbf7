package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/engine/bench/gpu"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// BenchGPU prints what NCCL's own choice took, in nccl-tests' columns where busbar-gpu measured it, and where several
// settings were tried the best of each size and what NCCL's own choice lost against it.
func BenchGPU(w io.Writer, d *query.BenchGPUDoc) error {
	if d.Settings == 0 && len(d.Rows) > 0 {
		return query.ErrDecoded
	}
	for _, note := range d.Notes {
		fmt.Fprintf(w, "note: %s\n", texttab.Clean(note))
	}
	if d.Own {
		if err := columns(w, d.Results); err != nil {
			return err
		}
		if d.Settings < 2 || len(d.Ops) > 1 {
			return refusedSettings(w, d)
		}
		fmt.Fprintln(w)
	}
	model := ""
	if d.GPU != "" {
		model = " of " + texttab.Clean(d.GPU)
	}
	fmt.Fprintf(w, "%s, %s, %s%s, %s", d.Op, d.Dtype, words.Plural(d.Ranks, "rank"), model, d.Tool)
	if d.Library != "" {
		fmt.Fprintf(w, ", NCCL %s", d.Library)
	}
	fmt.Fprintf(w, "; %s\n\n", words.Plural(d.Settings, "setting"))
	t := texttab.New(">size", ">NCCL's choice", ">best", "setting", ">lost", ">busbw")
	op := coll.Op{Kind: d.Op}
	op.Type, _ = coll.ParseDtype(d.Dtype)
	micros := func(us float64) string { return unit.Time(us * 1e6).String() }
	for _, b := range d.Best {
		op.Bytes = b.Size
		t.Row(b.Size.String(), micros(b.Auto), micros(b.Time), b.Setting.String(), fmt.Sprintf("%.1f%%", 100*b.Lost()),
			op.BusBW(d.Ranks, unit.Micros(b.Time)).String())
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nlost: how much longer NCCL's own choice takes than the best setting. Differences of a few "+
		"percent are noise: --repeat 4 and bench diff tell")
	if d.Bad > 0 {
		fmt.Fprintf(w, "%d wrong elements; such rows are not compared\n", d.Bad)
	}
	if d.Untimed > 0 {
		fmt.Fprintf(w, "left out: %s without a time that is a number above 0\n", words.Plural(d.Untimed, "row"))
	}
	return refusedSettings(w, d)
}

func refusedSettings(w io.Writer, d *query.BenchGPUDoc) error {
	for _, x := range d.Refused {
		if _, err := fmt.Fprintf(w, "refused: %s: %s\n", x.Setting, x.Why); err != nil {
			return err
		}
	}
	return nil
}

// columns prints sweeps as nccl-tests prints them, so that whatever reads those reads these.
func columns(w io.Writer, list result.Sweeps) error {
	if taken, err := sweepsTable(list).Send(w); taken {
		return err
	}
	for i, s := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "# %s by %s, %s, NCCL %s, %s of %s%s\n", s.Op, texttab.Clean(s.Tool), s.Dtype,
			texttab.Clean(s.Library), words.Plural(s.Ranks, "rank"), texttab.Clean(s.GPU()), sweepSetting(s))
		fmt.Fprintf(w, "# Collective test starting: %s\n", s.Op.Binary())
		fmt.Fprintf(w, "#\n#%61s%35s\n", "out-of-place", "in-place")
		fmt.Fprintf(w, "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   "+
			"algbw   busbw  #wrong \n")
		fmt.Fprintf(w, "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  "+
			"(GB/s)  (GB/s)         \n")
		total, n := 0.0, 0
		for j := range s.Points {
			p := &s.Points[j]
			op, err := s.Operation(p.Size)
			if err != nil {
				return err
			}
			root, redop := "-1", s.Redop
			if s.Op.Rooted() {
				root = fmt.Sprint(s.Root)
			}
			redop = cmp.Or(redop, "none")
			fmt.Fprintf(w, "%12d  %12d  %8s  %6s  %6s%s%s\n", int64(p.Size), op.Count(s.Ranks), s.Dtype, redop, root,
				half(op, s.Ranks, p.Out), half(op, s.Ranks, p.In))
			for _, t := range []*result.Timing{p.Out, p.In} {
				if t != nil {
					total, n = total+float64(op.BusBW(s.Ranks, unit.Micros(t.Time.Mean)))/1e9, n+1
				}
			}
		}
		if n > 0 {
			fmt.Fprintf(w, "# Avg bus bandwidth    : %.4f\n", total/float64(n))
		}
	}
	return nil
}

// sweepSetting are the variables that a sweep was measured with.
func sweepSetting(s *result.Sweep) string {
	text := ""
	for _, k := range slices.Sorted(maps.Keys(s.Env)) {
		text += " " + k + "=" + s.Env[k]
	}
	return text
}

// sweepsTable is the rows of all sweeps for writers that take tables.
func sweepsTable(list result.Sweeps) *texttab.Table {
	t := texttab.New(append([]string{"operation", "setting"}, ncclHeads...)...)
	for _, s := range list {
		for j := range s.Points {
			p := &s.Points[j]
			op, err := s.Operation(p.Size)
			if err != nil {
				continue
			}
			cells := []string{
				s.Op.String(), strings.TrimSpace(sweepSetting(s)), fmt.Sprint(int64(p.Size)), fmt.Sprint(op.Count(s.Ranks)),
				s.Dtype, cmp.Or(s.Redop, "none"), fmt.Sprint(s.Root),
			}
			for _, x := range []*result.Timing{p.Out, p.In} {
				if x == nil {
					cells = append(cells, "", "", "", "")
					continue
				}
				wrong := ""
				if x.Wrong != nil {
					wrong = fmt.Sprint(*x.Wrong)
				}
				at := unit.Micros(x.Time.Mean)
				cells = append(cells, benchTime(x.Time.Mean), fmt.Sprintf("%.2f", float64(op.AlgBW(s.Ranks, at))/1e9),
					fmt.Sprintf("%.2f", float64(op.BusBW(s.Ranks, at))/1e9), wrong)
			}
			t.Row(cells...)
		}
	}
	return t
}

// half is one half of a line.
func half(op coll.Op, ranks int, t *result.Timing) string {
	if t == nil {
		return fmt.Sprintf("  %7s  %6s  %6s  %6s", "N/A", "N/A", "N/A", "N/A")
	}
	us := t.Time.Mean
	digits := 0
	for _, limit := range []float64{10000, 1000, 100} { // as nccl-tests: seven places
		if us < limit {
			digits = min(digits+1, 2)
		}
	}
	wrong := "N/A"
	if t.Wrong != nil {
		wrong = fmt.Sprint(*t.Wrong)
	}
	at := unit.Micros(us)
	return fmt.Sprintf("  %7.*f  %6.2f  %6.2f  %6s", digits, us, float64(op.AlgBW(ranks, at))/1e9,
		float64(op.BusBW(ranks, at))/1e9, wrong)
}

// BenchGPUNode prints what is inside a node.
func BenchGPUNode(w io.Writer, d *query.BenchGPUNodeDoc) error {
	fmt.Fprintf(w, "%s: %s, measured in %.1f s\n", texttab.Clean(d.Host), words.Plural(len(d.GPUs), "GPU"), d.Seconds)
	for i, g := range d.GPUs {
		fmt.Fprintf(w, "\nGPU %d: %s, %s, %v, CUDA %s", i, texttab.Clean(g.Name), texttab.Clean(g.PCI), unit.Bytes(g.Memory),
			texttab.Clean(g.Driver))
		if g.NCCL != "" {
			fmt.Fprintf(w, ", NCCL %s", texttab.Clean(g.NCCL))
		}
		fmt.Fprintln(w)
		for _, r := range g.Rates {
			fmt.Fprintf(w, "  %-28s %8.1f GB/s\n", rateWords[r.What], r.GBps)
		}
		if len(g.Products) == 0 {
			continue
		}
		t := texttab.New("product", "type", ">TFLOPS", ">µs", ">SM MHz", ">W", "throttled")
		t.Indent, t.Title = "  ", fmt.Sprintf("GPU %d", i)
		for _, p := range g.Products {
			t.Row(fmt.Sprintf("%dx%dx%d", p.M, p.N, p.K), p.Dtype, fmt.Sprintf("%.1f", p.TFLOPS), fmt.Sprintf("%.1f", p.Micros),
				fmt.Sprint(p.MHz), fmt.Sprintf("%.0f", p.Watts), strings.Join(p.Why, ", "))
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	if len(d.Peers) > 0 {
		t := texttab.New(">from", ">to", ">GB/s", ">both ways, together")
		for _, p := range d.Peers {
			t.Row(fmt.Sprint(p.From), fmt.Sprint(p.To), fmt.Sprintf("%.1f", p.GBps), fmt.Sprintf("%.1f", p.Both))
		}
		fmt.Fprintln(w, "\ncopies between GPUs")
		if err := t.Write(w); err != nil {
			return err
		}
	}
	if len(d.Results) > 0 {
		fmt.Fprintln(w)
		if err := columns(w, d.Results); err != nil {
			return err
		}
	}
	for _, n := range d.Notes {
		fmt.Fprintf(w, "note: %s\n", texttab.Clean(n))
	}
	for _, x := range d.Refused {
		fmt.Fprintf(w, "refused: %s: %s\n", x.Setting, texttab.Clean(x.Why))
	}
	if d.Bad > 0 {
		fmt.Fprintf(w, "%d wrong elements\n", d.Bad)
	}
	return nil
}

var rateWords = map[string]string{
	"copy": "memory, copy (read + write)", "write": "memory, write", "to_gpu": "host to GPU", "from_gpu": "GPU to host",
	"both": "host and GPU, both ways",
}

// BenchGPUCommands prints what would be run, a command line each.
func BenchGPUCommands(w io.Writer, d *query.BenchGPUCommands) error {
	for _, c := range d.Commands {
		if _, err := fmt.Fprintln(w, gpu.ShellWords(c.Args)); err != nil {
			return err
		}
	}
	return nil
}
