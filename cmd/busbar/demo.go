package main

import (
	"fmt"

	"busbar.dev/query"
	"busbar.dev/report"
)

type demoCmd struct {
	common
}

// Help ends with an example.
func (demoCmd) Help() string {
	return "Maps and audits this machine, then the reference cluster (nodes of four A100s that share one InfiniBand port), and predicts an all-reduce there for four GPUs placed three ways.\n\nExample:\n  busbar demo"
}

// reference is the cluster of the demonstration, and the question about it.
const (
	reference   = "baskerville:2"
	referenceAt = "baskerville"
	threeWays   = "1x4,2x2,4x1"
	gradients   = "1.32GB"
)

// Run maps this machine and the reference cluster, and predicts on the latter.
func (c demoCmd) Run(e *env) error {
	if c.JSON {
		return c.document(e)
	}
	for i, sources := range [][]string{nil, {reference}} {
		title := []string{"This machine ($ busbar map)", "The reference cluster ($ busbar map " + reference + ")"}[i]
		fmt.Fprintf(e.stdout, "── %s ──\n", title)
		m := mapCmd{common: c.common, Sources: sources, Output: "text"}
		if err := m.Run(e); err != nil {
			return err
		}
		fmt.Fprintln(e.stdout)
	}
	fmt.Fprintf(e.stdout, "── Four GPUs there, three ways ($ busbar predict -c %s --compare %s --size %s -d bfloat16) ──\n", referenceAt, threeWays, gradients)
	p := predictCmd{common: c.common, Predict: c.predict()}
	if err := p.Run(e); err != nil {
		return err
	}
	_, err := fmt.Fprint(e.stdout, measuredThere)
	return err
}

// measuredThere stands below the prediction, so that the two can be compared.
const measuredThere = `
Measured there, in the order of the rows: 8.59, 13.06, 147, 176, 309 and 587 ms. The GPUs of a node share a NIC that cannot
reach GPU memory; what leaves the node is copied through host memory. Which GPUs the jobs got is not published: the run
without any setting was as fast as the forced tree, so it most likely had the tree already, as NCCL takes it on the GPUs of
the other socket. NCCL_ALGO=allreduce:tree makes sure of it (docs/baskerville.md).
`

// predict is the question of the reference case.
func (c demoCmd) predict() query.Predict {
	return query.Predict{Cluster: referenceAt, Compare: threeWays, Size: gradients, Dtype: "bfloat16"}
}

// demoDoc is the document of --json.
type demoDoc struct {
	Prediction  *query.PredictDoc `json:"prediction"`
	Reference   *query.MapDoc     `json:"reference"`
	ThisMachine *query.MapDoc     `json:"this_machine"`
}

func (c demoCmd) document(e *env) error {
	var d demoDoc
	var err error
	at := e.query(c.common)
	if d.ThisMachine, err = (query.Map{}).Run(e.ctx, at); err != nil {
		return err
	}
	if d.Reference, err = (query.Map{Sources: []string{reference}}).Run(e.ctx, at); err != nil {
		return err
	}
	if d.Prediction, err = c.predict().Run(e.ctx, at); err != nil {
		return err
	}
	return report.JSON(e.stdout, d)
}
