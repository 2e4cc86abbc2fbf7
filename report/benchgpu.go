package report

import (
	"fmt"
	"io"

	"busbar.dev/coll"
	"busbar.dev/engine/bench/gpu"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
	"busbar.dev/unit"
)

// BenchGPU prints the best setting of each size and what NCCL's own choice lost against it.
func BenchGPU(w io.Writer, d *query.BenchGPUDoc) error {
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
		t.Row(b.Size.String(), micros(b.Auto), micros(b.Time), b.Setting.String(), fmt.Sprintf("%.1f%%", 100*b.Lost()), op.BusBW(d.Ranks, unit.Micros(b.Time)).String())
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nlost: how much longer NCCL's own choice takes than the best setting. Differences of a few percent are noise: --repeat 4 and bench diff tell")
	if d.Bad > 0 {
		fmt.Fprintf(w, "%d wrong elements; such rows are not compared\n", d.Bad)
	}
	if d.Untimed > 0 {
		fmt.Fprintf(w, "left out: %s without a time that is a number above 0\n", words.Plural(d.Untimed, "row"))
	}
	for _, x := range d.Refused {
		fmt.Fprintf(w, "refused: %s: %s\n", x.Setting, x.Why)
	}
	return nil
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
