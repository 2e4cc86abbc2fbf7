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
	if len(d.Measured) > 0 {
		p.printf("%s\n\n", calibratedBy(d.Measured))
		fitted(p, d)
	}
	if s := d.Step; s != nil {
		p.printf("measured %s a step, predicted %s without calibration: %.2f times as long\n", s.Step.Short(),
			s.Predicted.Short(), s.Off)
		p.printf("it holds for %s: such a job is then predicted ×%.2f, its bar goes from ×%.2f to ×%.2f\n", s.Kind,
			s.Factor,
			s.Was, s.Margin)
		p.printf("step and plan apply it to jobs of this framework, kernels, model family and precision on this cluster, " +
			"of " +
			"any batch and degrees; other jobs stay as they are\n")
	}
	switch {
	case !d.Better && (len(d.Refused) > 0 || d.By != "" && len(d.Measured) == 0):
		p.printf("nothing was written\n")
	case !d.Better && d.Site.Points < calibrate.Fewest:
		p.printf("a curve needs %d sizes; nothing was written: busbar calibrate --suggest says which to measure\n",
			calibrate.Fewest)
	case !d.Better:
		p.printf("predictions of sizes that are left out would be no better; nothing was written\n")
	case file == "-":
		p.printf("the cluster with its calibration is on standard output; keep it in a file for predict -c FILE\n")
	case file != "":
		p.printf("written to %s; predict with -c %s\n", file, strings.Replace(file, ".calibration.", ".", 1))
	default:
		p.printf("nothing was written; -o FILE keeps it\n")
	}
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

// fitted prints what is kept of the measurements, what is not, and how much better predictions are.
func fitted(p *Page, d *query.CalibrateDoc) {
	if len(d.Moved) > 0 {
		p.table(movedTable(d.Moved))
	}
	if d.Site.Points > 0 {
		errorsOf(p, "error at "+words.Plural(d.Site.Points, "size"), d.Before, d.After)
		errorsOf(p, "of each size from the others alone", d.HeldOut.Before, d.HeldOut.After)
	}
	if d.Calibration != nil {
		for _, r := range d.Calibration.Residuals {
			p.printf("kept: what the model leaves of %s\n", &r)
		}
	}
	doubts(p, "left out", d.Dropped)
	doubts(p, "refused", d.Refused)
}

// doubts prints measurements that do not count.
func doubts(p *Page, what string, list []calibrate.Doubt) {
	for _, x := range list {
		p.printf("%s: %s of %s on %s, %.3g times the predicted time: %s\n", what, x.Op, x.Size, x.Layout, x.Factor, x.Reason)
	}
}

// errorsOf prints the errors before and after a fit.
func errorsOf(p *Page, what string, before, after truth.Score) {
	p.printf("%s: median %s before, %s after; 90th percentile %s before, %s after\n", what, percent(before.Median),
		percent(after.Median), percent(before.P90), percent(after.P90))
}

// Suggest prints which sizes to measure, and how.
func Suggest(p *Page, d *query.SuggestDoc) {
	p.printf("%s on %s of %s: five sizes, each measured twice\n\n", d.Op, d.Layout, d.Cluster)
	t := texttab.New(">size", ">predicted µs|%.1f", ">bar|×%.2f", "by")
	var sizes []string
	for _, x := range d.Points {
		t.Add(x.Size, x.Time.Micros(), x.Bar, x.Algo+"/"+x.Proto)
		sizes = append(sizes, fmt.Sprint(int64(x.Size)))
	}
	p.table(t)
	p.printf("\nmeasure them with %s, one process a GPU, and give the output to busbar calibrate:\n", d.Tool)
	p.printf("  for i in 1 2; do for s in %s; do mpirun -np %d -N %d ./build/%s -b $s -e $s -g 1 -n 100; done; done | "+
		"tee "+
		"measured.log\n", strings.Join(sizes, " "), d.Nodes*d.PerNode, d.PerNode, d.By)
}
