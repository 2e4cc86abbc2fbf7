package report

import (
	"fmt"
	"io"
	"strings"

	"busbar.dev/calibrate"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
)

// Calibrate prints what a calibration found. The cluster with its calibration is in the file, - is standard output;
// empty where nobody keeps it.
func Calibrate(w io.Writer, d *query.CalibrateDoc, file string) error {
	if d.By != "" {
		fmt.Fprintf(w, "measured now, by %s\n", d.By)
	}
	collectives := d.After.Points > 0
	if collectives {
		fmt.Fprintf(w, "%s\n\n", calibratedBy(d.Measured))
		if err := fitted(w, &d.Site); err != nil {
			return err
		}
	}
	if d.GPU != nil {
		if err := kernels(w, d.GPU); err != nil {
			return err
		}
	}
	switch {
	case !d.Better && !collectives:
		fmt.Fprintln(w, "the fit is no better than before; nothing was written")
	case !d.Better:
		return fitNoBetter(w, d.Sizes)
	case file == "-":
		fmt.Fprintln(w, "the cluster with its calibration is on standard output; keep it in a file for predict -c FILE")
	case file != "":
		fmt.Fprintf(w, "written to %s; predict with -c %s\n", file, strings.Replace(file, ".calibration.", ".", 1))
	default:
		fmt.Fprintln(w, "nothing was written; -o FILE keeps it")
	}
	return nil
}

// kernels prints what GPUs do alone, and what that says of steps.
func kernels(w io.Writer, g *calibrate.KernelFit) error {
	fmt.Fprintf(w, "\n%s, %s, for step and plan:\n", g.Model, words.Plural(g.GPUs, "GPU"))
	t := texttab.New("kernel", ">measured µs", "", ">SM MHz", ">predicted before", ">after")
	for _, k := range g.Kernels {
		clock := ""
		if k.MHz > 0 {
			clock = fmt.Sprint(k.MHz)
		}
		t.Row(k.Name, fmt.Sprintf("%.1f", k.Micros), k.Rate, clock, signed(k.Before/k.Micros-1), signed(k.After/k.Micros-1))
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if g.Steps == nil {
		if err := movedTable(w, g.Moved); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "\nmean error of the kernels: %s before, %s after, %s of those left out of the fit\n",
		percent(g.Before), percent(g.After), percent(g.LeftOut))
	if g.Steps != nil {
		return trained(w, g.Steps)
	}
	if !g.Kept {
		fmt.Fprintln(w, "figures of kernels are not kept: they are about as predicted, and kernels alone do not say how "+
			"long steps take; --torch PYTHON measures steps")
	}
	return nil
}

// movedTable prints figures that moved.
func movedTable(w io.Writer, list []calibrate.Moved) error {
	t := texttab.New("figure", ">was", ">is", ">range", "unit")
	for _, f := range list {
		t.Row(f.Name, fmt.Sprintf("%.4g", f.Was), fmt.Sprintf("%.4g", f.Value), fmt.Sprintf("%.4g–%.4g", f.Low, f.High),
			f.Unit)
	}
	if t.Len() == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return t.Write(w)
}

// trained prints steps that were measured.
func trained(w io.Writer, s *calibrate.PartsFit) error {
	fmt.Fprintf(w, "\ntraining steps on one GPU, eager, bf16, %s:\n", texttab.Clean(s.Software))
	t := texttab.New("model", ">measured ms", ">predicted before", ">after", ">left out")
	for _, x := range s.Steps {
		t.Row(texttab.Clean(x.Name), fmt.Sprintf("%.1f", x.Micros/1e3), signed(x.Before/x.Micros-1),
			signed(x.After/x.Micros-1), signed(x.LeftOut/x.Micros-1))
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if err := movedTable(w, s.Moved); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nmean error of the steps: %s before, %s after, %s of those left out of the fit\n",
		percent(s.Before), percent(s.After), percent(s.LeftOut))
	return err
}

func signed(x float64) string { return fmt.Sprintf("%+.1f%%", 100*x) }

// calibratedBy says in one line what was measured.
func calibratedBy(list []calibrate.Measured) string {
	const most = 4
	var parts []string
	for i, t := range list {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(list)-most))
			break
		}
		parts = append(parts, fmt.Sprintf("%s (%s) on %s (%s), NCCL %s (%s)", t.Op, t.OpFrom, t.Layout, t.LayoutFrom, t.NCCL,
			t.NCCLFrom))
	}
	return "measured: " + strings.Join(parts, "; ")
}

// fitted prints the figures that moved, and how much better they are.
func fitted(w io.Writer, s *calibrate.Site) error {
	t := texttab.New("figure", ">was", ">is", ">range", "unit")
	for _, m := range s.Moved {
		t.Row(m.Name, fmt.Sprintf("%.4g", m.Was), fmt.Sprintf("%.4g", m.Value), fmt.Sprintf("%.4g–%.4g", m.Low, m.High),
			m.Unit)
	}
	if t.Len() == 0 {
		fmt.Fprintln(w, "The measurements determine no parameter better than the model already does.")
	} else if err := t.Write(w); err != nil {
		return err
	}
	if s.Dropped != "" {
		fmt.Fprintf(w, "fitted parameters are not kept: %s\n", s.Dropped)
	}
	if s.Part > 0 {
		fmt.Fprintf(w, "kept beside them: %.0f%% of what the model leaves at %d sizes (measured over predicted), and what "+
			"they let it expect at sizes between and around them\n", 100*s.Part, s.Points)
	} else {
		fmt.Fprintln(w, "no curve of what the model leaves is kept: there is nothing left, or more than a cluster explains")
	}
	fmt.Fprintf(w, "\nerror on the %d points: median %s before, %s after; 90th percentile %s before, %s after\n",
		s.After.Points,
		percent(s.Before.Median), percent(s.After.Median), percent(s.Before.P90), percent(s.After.P90))
	if h := s.HeldOut; h != nil {
		fmt.Fprintf(w, "on sizes that were left out of the fit: median %s before, %s after; 90th percentile %s before, %s "+
			"after\n",
			percent(h.Before.Median), percent(h.After.Median), percent(h.Before.P90), percent(h.After.P90))
	}
	if len(s.Loose) > 0 {
		fmt.Fprintf(w, "unchanged, because the points do not determine them: %s\n", strings.Join(s.Loose, ", "))
	}
	if s.Points == 1 {
		fmt.Fprintln(w, "one size is one number: it cannot tell latency from rate, nor how either changes with the size; "+
			"error bars stay as they are")
	}
	if len(s.Ends) > 0 {
		fmt.Fprintf(w, "%s went to the end of what is possible: the description of the cluster, the layout or the run "+
			"itself is more likely wrong than the model\n", strings.Join(s.Ends, ", "))
	}
	return nil
}

// fitNoBetter says why nothing was written, and where the error is.
func fitNoBetter(w io.Writer, sizes []calibrate.SizeScore) error {
	fmt.Fprintf(w, "the fit is no better than before; nothing was written\n\n")
	t := texttab.New("sizes (small < 64 KiB, large > 16 MiB)", ">points", ">median before", ">after", ">pred/meas before",
		">after")
	for _, x := range sizes {
		t.Row(x.Name, fmt.Sprint(x.After.Points), percent(x.Before.Median), percent(x.After.Median),
			fmt.Sprintf("%.2f", x.Before.Bias), fmt.Sprintf("%.2f", x.After.Bias))
	}
	return t.Write(w)
}

// Suggest prints which sizes to measure, and how.
func Suggest(w io.Writer, d *query.SuggestDoc) error {
	fmt.Fprintf(w, "%s on %s of %s: these sizes say most about all of them, the first most\n\n", d.Op, d.Layout, d.Cluster)
	t := texttab.New(">size", ">predicted µs", "by", ">uncertainty left")
	for _, p := range d.Points {
		t.Row(p.Size.String(), fmt.Sprintf("%.1f", p.Time.Micros()), p.Algo+"/"+p.Proto, percent(p.Left))
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nmeasure them with %s, one process a GPU, and give the output to busbar calibrate:\n", d.Tool)
	sizes := make([]string, len(d.Points))
	for i, p := range d.Points {
		sizes[i] = fmt.Sprint(int64(p.Size))
	}
	_, err := fmt.Fprintf(w, "  for s in %s; do mpirun -np %d -N %d ./build/%s -b $s -e $s -g 1 -n 100; done | tee "+
		"measured.log\n", strings.Join(sizes, " "), d.Nodes*d.PerNode, d.PerNode, d.By)
	return err
}
