package report

import (
	"fmt"
	"strings"

	"busbar.dev/calibrate"
	"busbar.dev/calibrate/truth"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
)

// Calibrate prints what a calibration found. The cluster with its calibration is in the file, - is standard output;
// empty where nobody keeps it.
func Calibrate(p *Page, d *query.CalibrateDoc, file string) {
	if d.By != "" {
		p.printf("measured now, by %s\n", d.By)
	}
	collectives := d.After.Points > 0
	if collectives {
		p.printf("%s\n\n", calibratedBy(d.Measured))
		fitted(p, &d.Site)
	}
	if d.GPU != nil {
		kernels(p, d.GPU)
	}
	switch {
	case !d.Better && !collectives:
		p.printf("the fit is no better than before; nothing was written\n")
	case !d.Better:
		fitNoBetter(p, d.Sizes)
	case file == "-":
		p.printf("the cluster with its calibration is on standard output; keep it in a file for predict -c FILE\n")
	case file != "":
		p.printf("written to %s; predict with -c %s\n", file, strings.Replace(file, ".calibration.", ".", 1))
	default:
		p.printf("nothing was written; -o FILE keeps it\n")
	}
}

// kernels prints what GPUs do alone, and what that says of steps.
func kernels(p *Page, g *calibrate.KernelFit) {
	p.printf("\n%s, %s, for step and plan:\n", g.Model, words.Plural(g.GPUs, "GPU"))
	t := texttab.New("kernel", ">measured µs|%.1f", "", ">SM MHz", ">predicted before", ">after")
	for _, k := range g.Kernels {
		t.Add(k.Name, k.Micros, k.Rate, when(k.MHz > 0, fmt.Sprint(k.MHz)), signed(k.Before/k.Micros-1),
			signed(k.After/k.Micros-1))
	}
	p.table(t)
	if g.Steps == nil {
		p.below(movedTable(g.Moved))
	}
	meanErrors(p, "kernels", g.Before, g.After, g.LeftOut)
	switch s := g.Steps; {
	case s != nil:
		p.printf("\ntraining steps on one GPU, eager, bf16, %s:\n", s.Software)
		t := texttab.New("model", ">measured ms|%.1f", ">predicted before", ">after", ">left out")
		for _, x := range s.Steps {
			t.Add(x.Name, x.Micros/1e3, signed(x.Before/x.Micros-1), signed(x.After/x.Micros-1),
				signed(x.LeftOut/x.Micros-1))
		}
		p.table(t)
		p.below(movedTable(s.Moved))
		meanErrors(p, "steps", s.Before, s.After, s.LeftOut)
	case !g.Kept:
		p.printf("figures of kernels are not kept: they are about as predicted, and kernels alone do not say how " +
			"long steps take; --torch PYTHON measures steps\n")
	}
}

func meanErrors(p *Page, of string, before, after, leftOut float64) {
	p.printf("\nmean error of the %s: %s before, %s after, %s of those left out of the fit\n", of, percent(before),
		percent(after), percent(leftOut))
}

// movedTable is figures that moved.
func movedTable(list []calibrate.Moved) *texttab.Table {
	t := texttab.New("figure", ">was|%.4g", ">is|%.4g", ">range", "unit")
	for _, f := range list {
		t.Add(f.Name, f.Was, f.Value, fmt.Sprintf("%.4g–%.4g", f.Low, f.High), f.Unit)
	}
	return t
}

func signed(x float64) string { return fmt.Sprintf("%+.1f%%", 100*x) }

// calibratedBy says in one line what was measured.
func calibratedBy(list []calibrate.Measured) string {
	var parts []string
	for _, t := range list {
		parts = append(parts, fmt.Sprintf("%s (%s) on %s (%s), NCCL %s (%s)", t.Op, t.OpFrom, t.Layout, t.LayoutFrom, t.NCCL,
			t.NCCLFrom))
	}
	return "measured: " + strings.Join(firstOf(parts, 4, ""), "; ")
}

// fitted prints the figures that moved, and how much better they are.
func fitted(p *Page, s *calibrate.Site) {
	if len(s.Moved) == 0 {
		p.printf("The measurements determine no parameter better than the model already does.\n")
	} else {
		p.table(movedTable(s.Moved))
	}
	if s.Dropped != "" {
		p.printf("fitted parameters are not kept: %s\n", s.Dropped)
	}
	if s.Part > 0 {
		p.printf("kept beside them: %.0f%% of what the model leaves at %d sizes (measured over predicted), and what "+
			"they let it expect at sizes between and around them\n", 100*s.Part, s.Points)
	} else {
		p.printf("no curve of what the model leaves is kept: there is nothing left, or more than a cluster explains\n")
	}
	errorsOf(p, fmt.Sprintf("\nerror on the %d points", s.After.Points), s.Before, s.After)
	if h := s.HeldOut; h != nil {
		errorsOf(p, "on sizes that were left out of the fit", h.Before, h.After)
	}
	if len(s.Loose) > 0 {
		p.printf("unchanged, because the points do not determine them: %s\n", strings.Join(s.Loose, ", "))
	}
	if s.Points == 1 {
		p.printf("one size is one number: it cannot tell latency from rate, nor how either changes with the size; " +
			"error bars stay as they are\n")
	}
	if len(s.Ends) > 0 {
		p.printf("%s went to the end of what is possible: the description of the cluster, the layout or the run "+
			"itself is more likely wrong than the model\n", strings.Join(s.Ends, ", "))
	}
}

// errorsOf prints the errors before and after a fit.
func errorsOf(p *Page, what string, before, after truth.Score) {
	p.printf("%s: median %s before, %s after; 90th percentile %s before, %s after\n", what, percent(before.Median),
		percent(after.Median), percent(before.P90), percent(after.P90))
}

// fitNoBetter says why nothing was written, and where the error is.
func fitNoBetter(p *Page, sizes []calibrate.SizeScore) {
	p.printf("the fit is no better than before; nothing was written\n\n")
	t := texttab.New("sizes (small < 64 KiB, large > 16 MiB)", ">points", ">median before", ">after",
		">pred/meas before|%.2f",
		">after|%.2f")
	for _, x := range sizes {
		t.Add(x.Name, x.After.Points, percent(x.Before.Median), percent(x.After.Median), x.Before.Bias, x.After.Bias)
	}
	p.table(t)
}

// Suggest prints which sizes to measure, and how.
func Suggest(p *Page, d *query.SuggestDoc) {
	p.printf("%s on %s of %s: these sizes say most about all of them, the first most\n\n", d.Op, d.Layout, d.Cluster)
	t := texttab.New(">size", ">predicted µs|%.1f", "by", ">uncertainty left")
	var sizes []string
	for _, x := range d.Points {
		t.Add(x.Size, x.Time.Micros(), x.Algo+"/"+x.Proto, percent(x.Left))
		sizes = append(sizes, fmt.Sprint(int64(x.Size)))
	}
	p.table(t)
	p.printf("\nmeasure them with %s, one process a GPU, and give the output to busbar calibrate:\n", d.Tool)
	p.printf("  for s in %s; do mpirun -np %d -N %d ./build/%s -b $s -e $s -g 1 -n 100; done | tee "+
		"measured.log\n", strings.Join(sizes, " "), d.Nodes*d.PerNode, d.PerNode, d.By)
}
