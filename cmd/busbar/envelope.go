package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/texttab"
	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// envelopeCmd takes what step takes; without a cluster and a model it prints the documents' cases.
type envelopeCmd struct {
	common
	jobFlags
	GPUs int     `name:"gpus" least:"1" placeholder:"N" help:"So many GPUs, over as few nodes as hold them; all of the cluster's without it."`
	MFU  float64 `name:"mfu" default:"0.5" help:"The share of the peak that computing reaches."`
}

// Help ends with examples.
func (envelopeCmd) Help() string {
	return "The arithmetic that one does on the back of an envelope, each line with its formula and its numbers: memory, operations, compute, exchange of gradients inside and across nodes, and whether it hides. " +
		"Without arguments: every figure of the documents it comes from that follows from others there, beside what is printed, with a note where a document prints something else than its formula gives. With -c and -m: your case, by the same rules. busbar step prices what really happens.\n\n" +
		"Examples:\n" +
		"  busbar envelope\n" +
		"  busbar envelope -c dgx-a100:4 -m gpt3-2.7b --global-batch 64\n" +
		"  busbar envelope -c dgx-h100 -m llama3-8b --gpus 64 --json"
}

// Run prints the documents' cases or the user's.
func (c *envelopeCmd) Run(e *env) error {
	cases := workload.Papers()
	if c.Cluster != "" || c.Model != "" {
		own, err := c.own(e)
		if err != nil {
			return err
		}
		cases = []workload.Case{own}
	}
	if c.JSON {
		return writeIndented(e.stdout, map[string]any{"cases": cases})
	}
	return printEnvelope(e.stdout, cases, c.Verbose)
}

// own is the user's case.
func (c *envelopeCmd) own(e *env) (workload.Case, error) {
	var none workload.Case
	if c.Cluster == "" || c.Model == "" {
		return none, fmt.Errorf("expected both -c CLUSTER and -m MODEL, or neither")
	}
	if !(c.MFU > 0 && c.MFU <= 1) {
		return none, fmt.Errorf("--mfu %g; expected more than 0, at most 1", c.MFU)
	}
	if c.GPUs < 0 || c.GPUs > 0 && (c.Layout != "" || c.Compare != "") {
		return none, fmt.Errorf("--gpus %d: expected a positive number, and neither -l nor --compare beside it", c.GPUs)
	}
	if c.Compare != "" {
		return none, fmt.Errorf("--compare %s: an envelope is of one layout; give it with -l", c.Compare)
	}
	a, err := c.jobFlags.ask(e, c.common)
	if err != nil {
		return none, err
	}
	cl, s := a.cluster, a.shapes[0]
	if c.GPUs > 0 {
		per := len(cl.TypeOf(0).Of(cluster.GPU))
		s = shape{nodes: (c.GPUs + max(per, 1) - 1) / max(per, 1), gpus: min(c.GPUs, per)}
		if s.nodes > len(cl.Hosts) {
			if cl, err = c.jobFlags.more(e, c.common, []shape{s}); err != nil {
				return none, err
			}
		}
		s.text = fmt.Sprintf("%dx%d", s.nodes, s.gpus)
	}
	layout, name, err := laid(cl, s)
	if err != nil {
		return none, err
	}
	gpu, err := gpuOf(cl, layout)
	if err != nil {
		return none, err
	}
	g, err := step.NewGPU(gpu, step.Default())
	if err != nil {
		return none, err
	}
	nodes := hostsOf(layout)
	x := workload.Envelope{
		Title: fmt.Sprintf("%s on %s, %s of %s", a.model.Name, cl.Name, name, gpu.Title), Params: float64(a.model.Params()), Active: float64(a.model.Active()), Seq: cmp.Or(c.Seq, a.model.Seq),
		Batch: cmp.Or(c.Global, max(1, c.Micro)*int64(len(layout))), GPUs: len(layout), Nodes: nodes, Recompute: c.Recompute == string(workload.Full),
		GPU: gpu.Title, Peak: g.Peak(workload.Precision(c.Precision)), MFU: c.MFU, Intra: gpu.Link * unit.Rate(gpu.Links),
	}
	if a.model.Unpriced != "" {
		x.Sample = a.model.Forward(x.Seq)
	}
	if nodes > 1 {
		if x.Inter = nicRate(cl, layout); x.Inter <= 0 {
			return none, fmt.Errorf("%s does not say how fast its NICs are; give --nic", cl.Name)
		}
	}
	return workload.Case{Title: x.Title, Lines: x.Lines()}, nil
}

// nicRate is what the NICs of the first node carry together.
func nicRate(cl *cluster.Cluster, l nccl.Layout) unit.Rate {
	t := cl.TypeOf(l[0].Host)
	all := unit.Rate(0)
	for _, i := range t.Of(cluster.NIC) {
		if n := t.Devices[i].NIC; n != nil {
			for k := range n.Ports {
				all += n.Ports[k].Rate.Value
			}
		}
	}
	return all
}

// endRows is how many rows of a long table stand at its beginning and its end without -v.
const endRows = 2

// printEnvelope writes a table a case; notes stand below the line they are about.
func printEnvelope(w io.Writer, cases []workload.Case, whole bool) error {
	last := ""
	for i, c := range cases {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if c.Document != last {
			fmt.Fprintf(w, "%s\n\n", c.Document)
			last = c.Document
		}
		fmt.Fprintln(w, c.Title)
		t := texttab.Table{Columns: []texttab.Column{{Head: ""}, {Head: "", Align: texttab.Right}, {Head: ""}, {Head: "printed", Align: texttab.Right}, {Head: "numbers"}, {Head: "formula"}}}
		if c.Document == "" { // the user's own
			t.Columns = slices.Delete(t.Columns, 3, 4)
		}
		for k, l := range c.Lines {
			if c.Long && !whole && k >= endRows && k < len(c.Lines)-endRows {
				if k == endRows {
					t.Row(fmt.Sprintf("  … %d more: -v", len(c.Lines)-2*endRows))
				}
				continue
			}
			cells := []string{"  " + l.Name, workload.Figure(l.Value), l.Unit, l.Printed, "= " + l.Worked, l.Formula}
			if c.Document == "" {
				cells = slices.Delete(cells, 3, 4)
			}
			t.Row(cells...)
		}
		if err := t.Write(w); err != nil {
			return err
		}
		for _, l := range c.Lines {
			if l.Note != "" {
				for k, text := range texttab.Wrap(strings.TrimSpace(l.Name)+": "+l.Note, 96) {
					if k > 0 {
						text = "  " + text
					}
					fmt.Fprintln(w, "  "+text)
				}
			}
		}
	}
	return nil
}
