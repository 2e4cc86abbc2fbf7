package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/engine/bench/gpu"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/measure"
	"busbar.dev/query"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// BenchGPU prints what NCCL's own choice took, in nccl-tests' columns where busbar-gpu measured it, and where several
// settings were tried the best of each size and what NCCL's own choice lost against it.
func BenchGPU(p *Page, d *query.BenchGPUDoc) {
	p.notes(d.Notes)
	switch {
	case strings.HasPrefix(d.Tool, "nccl-tests"):
		bestSettings(p, d)
	case d.Settings > 1 && len(d.Ops) < 2:
		ncclColumnsOf(p, d.Sweeps)
		p.printf("\n")
		bestSettings(p, d)
	default:
		ncclColumnsOf(p, d.Sweeps)
	}
	refusedSettings(p, d.Refused)
}

// bestSettings prints the best setting of each size, and what NCCL's own choice lost against it.
func bestSettings(p *Page, d *query.BenchGPUDoc) {
	model := d.Sweeps[0].GPU()
	p.printf("%s, %s, %s%s, %s%s; %s\n\n", d.Op, d.Dtype, words.Plural(d.Ranks, "rank"), when(model != "", " of "+model),
		d.Tool, when(d.Library != "", ", NCCL "+d.Library), words.Plural(d.Settings, "setting"))
	t := texttab.New(">size", ">NCCL's choice", ">best", "setting", ">lost", ">busbw")
	op := coll.Op{Kind: d.Op}
	op.Type, _ = coll.ParseDtype(d.Dtype)
	for _, b := range d.Rows {
		op.Bytes = b.Size
		t.Add(b.Size, b.Auto, b.Time, b.Setting, percent(b.Lost), op.BusBW(d.Ranks, b.Time))
	}
	p.table(t)
	p.printf("\nlost: how much longer NCCL's own choice takes than the best setting. Differences of a few percent are " +
		"noise: --repeat 4 and bench diff tell\n")
	if d.Bad > 0 {
		p.printf("%d wrong elements; such rows are not compared\n", d.Bad)
	}
	if d.Untimed > 0 {
		p.printf("left out: %s without a time that is a number above 0\n", words.Plural(d.Untimed, "row"))
	}
}

func refusedSettings(p *Page, list []gpu.Refusal) {
	for _, x := range list {
		p.printf("refused: %s: %s\n", x.Setting, x.Why)
	}
}

// ncclColumnsOf prints sweeps as nccl-tests prints them, so that whatever reads those reads these.
func ncclColumnsOf(p *Page, list result.Sweeps) {
	p.send(ncclTable(list, true))
	for i, s := range list {
		if i > 0 {
			p.printf("\n")
		}
		p.printf("# %s by %s, %s, NCCL %s, %s of %s%s\n", s.Op, s.Tool, s.Dtype, s.Library, words.Plural(s.Ranks, "rank"),
			s.GPU(), sweepSetting(s))
		p.printf("# Collective test starting: %s\n#\n", s.Op.Binary())
		ncclHeader(p, false)
		for j := range s.Points {
			ncclLine(p, s, &s.Points[j], false)
		}
		total, rows := 0.0, s.Rows()
		for _, r := range rows {
			total += r.BusBW().GBps()
		}
		if len(rows) > 0 {
			p.printf("# Avg bus bandwidth    : %.4f\n", total/float64(len(rows)))
		}
	}
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
func BenchGPUNode(p *Page, d *measure.GPUNode) {
	p.printf("%s: %s, measured in %.1f s\n", d.Host, words.Plural(len(d.GPUs), "GPU"), d.Seconds)
	for i, g := range d.GPUs {
		p.printf("\nGPU %d: %s, %s, %v, CUDA %s%s\n", i, g.Name, g.PCI, unit.Bytes(g.Memory), g.Driver,
			when(g.NCCL != "", ", NCCL "+g.NCCL))
		for _, r := range g.Rates {
			p.printf("  %-28s %8.1f GB/s\n", rateWords[r.What], r.GBps)
		}
		if len(g.Products) == 0 {
			continue
		}
		t := p.columns("product", "type", ">TFLOPS|%.1f", ">µs|%.1f", ">SM MHz", ">W|%.0f", "throttled")
		t.Title = fmt.Sprintf("GPU %d", i)
		for _, x := range g.Products {
			t.Add(fmt.Sprintf("%dx%dx%d", x.M, x.N, x.K), x.Dtype, x.TFLOPS, x.Micros, x.MHz, x.Watts,
				strings.Join(x.Why, ", "))
		}
		p.table(t)
	}
	if len(d.Peers) > 0 {
		t := texttab.New(">from", ">to", ">GB/s|%.1f", ">both ways, together|%.1f")
		for _, x := range d.Peers {
			t.Add(x.From, x.To, x.GBps, x.Both)
		}
		p.printf("\ncopies between GPUs\n")
		p.table(t)
	}
	if len(d.Results) > 0 {
		p.printf("\n")
		ncclColumnsOf(p, d.Results)
	}
	p.notes(d.Notes)
	refusedSettings(p, d.Refused)
	if d.Bad > 0 {
		p.printf("%d wrong elements\n", d.Bad)
	}
}

var rateWords = map[string]string{
	"copy": "memory, copy (read + write)", "write": "memory, write", "to_gpu": "host to GPU", "from_gpu": "GPU to host",
	"both": "host and GPU, both ways",
}

// BenchGPUCommands prints what would be run, a command line each.
func BenchGPUCommands(p *Page, d *query.BenchGPUCommands) {
	for _, c := range d.Commands {
		p.lines(query.ShellLine(c.Args))
	}
}
