package main

import (
	"io"

	"busbar.dev/query"
	"busbar.dev/report"
)

// doctorExplainCmd draws what a run of NCCL set up.
type doctorExplainCmd struct {
	common
	query.Explain
	Output []string `short:"o" placeholder:"FILE" sep:"none" help:"Also write a file by its ending: .svg (picture), .json (as --json), .txt (text). FORMAT=FILE names svg, json or text explicitly; FORMAT=- replaces the text. Repeatable."`
}

// Help ends with examples.
func (doctorExplainCmd) Help() string {
	return "Shows what NCCL set up, from its log: rings, trees and channels on hosts, GPUs and NICs, which hosts talk through which NIC, and how much of an all-reduce passes each NIC. It also shows " +
		"how GPUs are connected (P2P, SHM, NET, with GPUDirect RDMA or not), and what is odd: a NIC with two channels while another idles, a pair through host memory where others talk directly. " +
		"Logs of a part of the ranks give a part of it. NCCL prints these lines while it sets up, at NCCL_DEBUG=INFO (subsystem INIT; GRAPH adds the links of long rings).\n\n" +
		"Examples:\n" +
		"  busbar doctor explain docs/examples/rings.log\n" +
		"  busbar doctor explain docs/examples/rings.log -o traffic.svg\n" +
		"  busbar doctor explain docs/examples/rings.log --comm 0 --size 256M --json"
}

// Run reads the logs and writes what was asked for.
func (c *doctorExplainCmd) Run(e *env) error {
	targets, err := c.forms(e, nil).several(e, c.Output, c.JSON)
	if err != nil {
		return err
	}
	doc, err := c.Explain.Run(e.ctx, e.query(c.common))
	if err != nil {
		return err
	}
	return c.forms(e, doc).writeAll(e, targets, c.JSON)
}

// forms are how a run can be shown.
func (c *doctorExplainCmd) forms(e *env, doc *query.ExplainDoc) forms {
	return forms{also: true, list: []form{
		{"text", []string{".txt"}, func(w io.Writer) error { return report.TrafficText(w, doc.Run, doc.Size, e.text(w, c.common)) }},
		jsonForm(doc),
	}}.drawn(func() (*report.Picture, error) { return report.Traffic(doc.Run), nil })
}
