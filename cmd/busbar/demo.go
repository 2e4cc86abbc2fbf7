package main

import "fmt"

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
	if err := c.predict().Run(e); err != nil {
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

// predict is the command of the reference case.
func (c demoCmd) predict() *predictCmd {
	return &predictCmd{common: c.common, Cluster: referenceAt, Compare: threeWays, Size: gradients, Dtype: "bfloat16", Op: "all_reduce", Factor: 2, Proto: "auto"}
}

func (c demoCmd) document(e *env) error {
	out := map[string]any{}
	for name, sources := range map[string][]string{"this_machine": nil, "reference": {reference}} {
		cl, err := e.load(sources, c.common)
		if err != nil {
			return err
		}
		out[name] = mapOf(cl)
	}
	f, err := c.predict().forecast(e)
	if err != nil {
		return err
	}
	out["prediction"] = f.document(false)
	return writeIndented(e.stdout, out)
}
