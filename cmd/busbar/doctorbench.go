package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/doctor"
	"busbar.dev/finding"
	"busbar.dev/hardware"
	"busbar.dev/internal/texttab"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/query"
	"busbar.dev/report"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// doctorBenchCmd holds a measured sweep against what should come.
type doctorBenchCmd struct {
	common
	Result  string `arg:"" name:"result" help:"What nccl-tests printed (text, or the JSON of its -J), results that bench -o kept, or the JSON of bench; - for standard input."`
	Cluster string `short:"c" placeholder:"CLUSTER" help:"Where it was measured: a preset (azure-ndv5:2), a cluster file, or any file that map reads. Without it: the GPUs that the output names, and the network that is usual with them."`
	Layout  string `short:"l" placeholder:"NODESxGPUS" help:"Who took part, where the output does not list its ranks."`
	Op      string `placeholder:"OP" help:"The collective, where the output does not name it."`
	NCCL    string `name:"nccl" placeholder:"VERSION" help:"The release of NCCL, where the output does not name it."`
	SVG     string `name:"svg" placeholder:"FILE" help:"Draw the measured curve over the predicted band."`
	Output  string `short:"o" name:"output" aliases:"format" placeholder:"FORMAT" default:"text" help:"text, json, markdown, sarif or junit; FORMAT=FILE writes to a file."`
	FailOn  string `name:"fail-on" placeholder:"SEVERITY" default:"warn" help:"The least severity that makes the exit code 1: note, warn, error or never."`
}

// Help ends with examples.
func (doctorBenchCmd) Help() string {
	return "Holds every size of a measured sweep against the time predicted for this hardware, with its error bar, and against the thresholds that cloud operators publish for the machine (docs/doctor.md lists them with their sources). " +
		"Says which part of the curve is wrong and what that pattern means: small sizes only (latency), the middle (protocol), the peak (one NIC of several, half of the links, sockets, host memory). " +
		"Exit code 1: something above a note. What our own engine measured is judged by its shape and, with -c, by the rate of the NICs; the predictions are NCCL's.\n\n" +
		"Examples:\n" +
		"  busbar doctor bench docs/examples/allreduce.txt -c dgx-h100:2\n" +
		"  busbar doctor bench docs/examples/allreduce.txt -c dgx-h100:2 --svg curve.svg -o markdown\n" +
		"  all_reduce_perf -b 8 -e 8G -f 2 -g 8 | busbar doctor bench - -c azure-ndv5"
}

// Run reads, predicts, judges, reports.
func (c *doctorBenchCmd) Run(e *env) error {
	t, err := findingForms(nil, nil, nil).one(markdownWord(c.Output), c.JSON)
	if err != nil {
		return err
	}
	if err := (query.Doctor{Sources: []string{c.Result}, FailOn: c.FailOn}).Check(); err != nil {
		return err
	}
	if c.SVG != "" {
		if err := e.writable(c.SVG); err != nil {
			return err
		}
	}
	sweeps, about, err := c.sweeps(e)
	if err != nil {
		return err
	}
	var curves []*doctor.Curve
	for _, s := range sweeps {
		x, err := c.curve(e, s)
		if err != nil {
			return err
		}
		about.fill(x)
		curves = append(curves, x)
	}
	rep := doctor.Bench(curves)
	text := func(w io.Writer) error {
		for _, x := range curves {
			printCurve(w, x, c.Verbose)
		}
		return c.findings(e, w, rep)
	}
	document := func(w io.Writer) error { return doctor.BenchJSON(w, rep, curves) }
	err = findingForms(rep, document, text).write(e, t)
	if err == nil && c.SVG != "" {
		err = e.writeFile(c.SVG, func(w io.Writer) error { return drawCurve(w, curves) })
	}
	if least, bad := finding.ParseSeverity(c.FailOn); err == nil && bad == nil && finding.AtLeast(rep.Findings, least) {
		return errWrong
	}
	return err
}

// curve predicts one measured sweep.
func (c *doctorBenchCmd) curve(e *env, s *result.Sweep) (*doctor.Curve, error) {
	if !s.OnGPUs() {
		return c.own(e, s)
	}
	if c.NCCL != "" {
		s.Library = c.NCCL
	}
	if c.Cluster != "" {
		return c.on(e, s)
	}
	return c.named(s)
}

// on predicts a sweep on the cluster that was given.
func (c *doctorBenchCmd) on(e *env, s *result.Sweep) (*doctor.Curve, error) {
	p := placement{common: common{Quiet: c.Quiet}, Cluster: c.Cluster}
	shapes := []shape{{text: s.Layout(), nodes: s.Nodes, gpus: s.PerNode}}
	cl, err := p.load(e, shapes)
	if err != nil {
		return nil, err
	}
	if cl.Summary().GPUs == 0 {
		return nil, fmt.Errorf("-c %s: no node of it has a GPU; nothing to predict", c.Cluster)
	}
	if err := p.assume(e, cl, shapes); err != nil {
		return nil, err
	}
	k, err := truth.On(s, cl, nccl.Newest)
	if err != nil {
		return nil, err
	}
	x, err := doctor.NewCurve(k)
	if err != nil {
		return nil, err
	}
	x.Preset = presetName(c.Cluster)
	return x, nil
}

// presetName is the preset that a cluster's word names, "" where it names none.
func presetName(word string) string {
	name, _, _ := strings.Cut(word, ":")
	for _, p := range hardware.Presets() {
		if strings.EqualFold(p.Name, name) || slices.ContainsFunc(p.Aliases, func(a string) bool { return strings.EqualFold(a, name) }) {
			return p.Name
		}
	}
	return ""
}

// named predicts a sweep on the machine that its output names: the GPUs, and
// between nodes the network that is usual with them.
func (c *doctorBenchCmd) named(s *result.Sweep) (*doctor.Curve, error) {
	if s.GPU() == "" {
		return nil, fmt.Errorf("%s does not name its GPUs; give the cluster with -c", s.ID)
	}
	guessed := ""
	if s.Nodes > 1 {
		u, ok := hardware.UsualNetworkOf(s.GPU())
		if !ok {
			return nil, fmt.Errorf("%s ran on %d nodes, and nothing says what joins them; give the cluster with -c", s.ID, s.Nodes)
		}
		n, rate := max(1, u.NICsPerGPU*float64(s.PerNode)), u.Port.Gbps()
		s.Machine = &result.Machine{GPU: s.GPU(), NICs: &n, Gbps: &rate, Fabric: "InfiniBand"}
		guessed = fmt.Sprintf("%g InfiniBand NICs of %g Gb/s a node, as are usual with such GPUs", n, rate)
	}
	k, err := truth.Prepare(s, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; give the cluster with -c", s.ID, err)
	}
	x, err := doctor.NewCurve(k)
	if err != nil {
		return nil, err
	}
	x.Machine = fmt.Sprintf("%d × %d %s", s.Nodes, s.PerNode, s.GPU())
	if strings.HasPrefix(x.Class, "pcie") {
		guessed = "GPUs behind PCIe as is usual; the output does not say how"
	}
	if guessed != "" {
		x.Guessed, x.Assumed = true, append(x.Assumed, guessed)
	}
	return x, nil
}

// own is a sweep of our own engine: nothing of NCCL's is predicted for it, but
// NICs bound it where the cluster is known.
func (c *doctorBenchCmd) own(e *env, s *result.Sweep) (*doctor.Curve, error) {
	const why = "busbar's own engine ran it; predictions are of NCCL (busbar lab check predicts the engine)"
	machine := "busbar's engine over " + s.Transport
	if c.Cluster == "" || s.Nodes < 2 {
		return doctor.Unpredicted(s, machine, why, nil), nil
	}
	p := placement{common: common{Quiet: true}, Cluster: c.Cluster}
	cl, err := p.load(e, []shape{{nodes: s.Nodes, gpus: s.PerNode}})
	if err != nil {
		return nil, err
	}
	x := doctor.Unpredicted(s, machine, why, cl)
	x.Preset = presetName(c.Cluster)
	return x, nil
}

// printCurve prints the curve beside its prediction.
func printCurve(w io.Writer, s *doctor.Curve, all bool) {
	fmt.Fprintf(w, "%s, %s on %s\n", s.Sweep.Op, counted(s.Sweep.Ranks, "rank"), s.Machine)
	for _, a := range s.Assumed {
		fmt.Fprintf(w, "  assumed: %s\n", a)
	}
	if s.Unjudged != "" {
		fmt.Fprintf(w, "  not held against a prediction: %s\n", s.Unjudged)
	}
	right := texttab.Right
	t := texttab.Table{Columns: []texttab.Column{{Head: "  size", Align: right}, {Head: "time", Align: right}, {Head: "busbw (GB/s)", Align: right}, {Head: "predicted", Align: right}, {Head: "from", Align: right}, {Head: "to", Align: right}, {Head: "ratio", Align: right}, {Head: ""}}}
	if len(s.Points) > 0 && s.Points[0].Expected == 0 {
		t.Columns = t.Columns[:3]
	}
	for i := range s.Points {
		p := &s.Points[i]
		if !all && len(s.Points) > 24 && i%2 == 1 && !p.Out() {
			continue
		}
		cells := []string{"  " + p.Size.String(), p.Time.String(), fmt.Sprintf("%.2f", p.BusBW)}
		if p.Expected > 0 {
			mark := ""
			if p.Out() {
				mark = "slow"
			}
			cells = append(cells, p.Expected.String(), unit.Time(float64(p.Expected)/p.Margin).String(), unit.Time(float64(p.Expected)*p.Margin).String(), fmt.Sprintf("%.2f", p.Ratio()), mark)
		}
		t.Row(cells...)
	}
	_ = t.Write(w) // a writer's error shows at the next write
	for _, a := range s.Against() {
		verdict := "passes"
		if a.Got < a.GBps {
			verdict = "fails"
		}
		fmt.Fprintf(w, "  %s asks %.4g GB/s (%s), measured %.4g: %s\n    %s\n", a.Title, a.GBps, a.Measured, a.Got, verdict, a.Source)
	}
	fmt.Fprintln(w)
}

// drawCurve draws the measured line over the predicted band. One collective is
// drawn, the first.
func drawCurve(w io.Writer, curves []*doctor.Curve) error {
	s := curves[0]
	f := &query.PredictDoc{Cluster: s.Machine, Op: s.Sweep.Op, NCCL: s.NCCL, Compared: true}
	row := func(layout string, p *doctor.CurvePoint, t unit.Time, margin float64) {
		op, _ := s.Sweep.Operation(p.Size) // it was predicted, or read
		f.Rows = append(f.Rows, query.NewPredictRow(layout, predict.Row{Run: &result.Run{Op: op, Ranks: s.Sweep.Ranks, Time: t, Margin: margin}, Asked: p.Size}))
	}
	for i := range s.Points {
		if p := &s.Points[i]; p.Expected > 0 {
			row("predicted", p, p.Expected, p.Margin)
		}
	}
	for i := range s.Points {
		row("measured", &s.Points[i], s.Points[i].Time, 0)
	}
	return report.Curves(w, f)
}
