package report

import (
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
	printNotes(w, d.Notes)
	if !strings.HasPrefix(d.Tool, "nccl-tests") {
		if err := ncclColumnsOf(w, d.Sweeps); err != nil {
			return err
		}
		if d.Settings < 2 || len(d.Ops) > 1 {
			return refusedSettings(w, d.Refused)
		}
		fmt.Fprintln(w)
	}
	model := ""
	if name := d.Sweeps[0].GPU(); name != "" {
		model = " of " + texttab.Clean(name)
	}
	fmt.Fprintf(w, "%s, %s, %s%s, %s", d.Op, d.Dtype, words.Plural(d.Ranks, "rank"), model, d.Tool)
	if d.Library != "" {
		fmt.Fprintf(w, ", NCCL %s", d.Library)
	}
	fmt.Fprintf(w, "; %s\n\n", words.Plural(d.Settings, "setting"))
	t := texttab.New(">size", ">NCCL's choice", ">best", "setting", ">lost", ">busbw")
	op := coll.Op{Kind: d.Op}
	op.Type, _ = coll.ParseDtype(d.Dtype)
	for _, b := range d.Rows {
		op.Bytes = b.Size
		t.Row(b.Size.String(), unit.Micros(b.Auto).String(), unit.Micros(b.Time).String(), b.Setting.String(),
			fmt.Sprintf("%.1f%%", 100*b.Lost), op.BusBW(d.Ranks, unit.Micros(b.Time)).String())
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
	return refusedSettings(w, d.Refused)
}

func printNotes(w io.Writer, list []string) {
	for _, note := range list {
		fmt.Fprintf(w, "note: %s\n", texttab.Clean(note))
	}
}

func refusedSettings(w io.Writer, list []gpu.Refusal) error {
	for _, x := range list {
		if _, err := fmt.Fprintf(w, "refused: %s: %s\n", x.Setting, texttab.Clean(x.Why)); err != nil {
			return err
		}
	}
	return nil
}

// ncclColumnsOf prints sweeps as nccl-tests prints them, so that whatever reads those reads these.
func ncclColumnsOf(w io.Writer, list result.Sweeps) error {
	if taken, err := ncclTable(list, true).Send(w); taken {
		return err
	}
	for i, s := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "# %s by %s, %s, NCCL %s, %s of %s%s\n", s.Op, texttab.Clean(s.Tool), s.Dtype,
			texttab.Clean(s.Library), words.Plural(s.Ranks, "rank"), texttab.Clean(s.GPU()), sweepSetting(s))
		fmt.Fprintf(w, "# Collective test starting: %s\n#\n", s.Op.Binary())
		ncclHeader(w, false)
		for j := range s.Points {
			fmt.Fprint(w, ncclLine(s, &s.Points[j], false))
		}
		total, rows := 0.0, s.Rows()
		for _, r := range rows {
			total += r.BusBW().GBps()
		}
		if len(rows) > 0 {
			fmt.Fprintf(w, "# Avg bus bandwidth    : %.4f\n", total/float64(len(rows)))
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
		if err := ncclColumnsOf(w, d.Results); err != nil {
			return err
		}
	}
	printNotes(w, d.Notes)
	if err := refusedSettings(w, d.Refused); err != nil {
		return err
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
