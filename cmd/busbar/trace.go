package main

import (
	"busbar.dev/query"
	"busbar.dev/report"
)

// traceCmd says where the time of real steps went.
type traceCmd struct {
	common
	query.Trace
}

// Help ends with examples.
func (traceCmd) Help() string {
	return "Reads what a profiler recorded of real steps: traces of PyTorch (torch.profiler, export_chrome_trace) and " +
		"of Nsight Systems (nsys export --type sqlite; nsys stats --report cuda_gpu_trace --format csv). " +
		"Says how much of a step is computing, exposed communication (a collective runs and nothing is computed), copies " +
		"and idle time, and lists the collectives by process group and size with their bus bandwidth. " +
		"The traces of several ranks show which rank is late, and separate waiting from transfer. " +
		"With -c, every collective is compared with its prediction; with -c and -m, the step is too.\n\n" +
		"Exit code 1: the step takes longer than the range of its prediction, a rank is late, or a transfer is slower than " +
		"its prediction allows. A sentence names the parts of the step that take longer.\n\n" +
		"Examples:\n" +
		"  busbar trace docs/examples/trace\n" +
		"  busbar trace docs/examples/trace -c dgx-h100:1 -l 1x2\n" +
		"  busbar trace docs/examples/trace -c dgx-h100:1 -l 1x2 -m gpt2 --seq 64\n" +
		"  busbar trace rank0.pt.trace.json.gz rank1.pt.trace.json.gz\n" +
		"  busbar trace report.sqlite --json"
}

// Run reads, adds up and predicts.
func (c *traceCmd) Run(e *env) error {
	doc, err := c.Trace.Run(e.ctx, e.query(c.common))
	switch {
	case err != nil:
		return err
	case c.JSON:
		return wrong(doc, report.JSON(e.stdout, doc))
	}
	return wrong(doc, report.Traced(e.stdout, doc, e.text(e.stdout, c.common)))
}
