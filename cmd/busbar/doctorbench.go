package main

import (
	"io"

	"busbar.dev/query"
	"busbar.dev/report"
)

// doctorBenchCmd holds a measured sweep against what should come.
type doctorBenchCmd struct {
	common
	query.DoctorBench
	SVG    string `name:"svg" placeholder:"FILE" help:"Draw the measured curve over the predicted band, as SVG."`
	Output string `short:"o" name:"output" aliases:"format" placeholder:"FORMAT" default:"text" help:"Output: text, json, markdown, sarif or junit; FORMAT=FILE writes to a file (default text)."`
}

// Help ends with examples.
func (doctorBenchCmd) Help() string {
	return "Compares every size of a measured sweep with the time predicted for this hardware, with its error bar, and with the thresholds that cloud operators publish for the machine (docs/doctor.md lists them with their sources). " +
		"Says which part of the curve is wrong and what that pattern means: small sizes only (latency), medium sizes (protocol), large sizes (one NIC of several, half of the links, sockets, host memory). " +
		"Exit code 1: a finding above a note. Results of busbar bench are judged by the shape of the curve and, with -c, by the rate of the NICs, because predictions are for NCCL.\n\n" +
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
	if err := e.drawable(c.SVG); err != nil {
		return err
	}
	doc, err := c.DoctorBench.Run(e.ctx, e.query(c.common))
	if err != nil {
		return err
	}
	text := func(w io.Writer) error { return report.DoctorBench(w, doc, e.text(w, c.common)) }
	err = findingForms(doc.Report, jsonForm(doc).write, text).write(e, t)
	if err == nil && c.SVG != "" {
		err = e.writeFile(c.SVG, pictured(func() (*report.Picture, error) { return report.MeasuredCurve(doc) }))
	}
	return wrong(doc, err)
}
