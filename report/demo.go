package report

import (
	"fmt"
	"io"

	"busbar.dev/query"
)

// Demo prints the answers of the demonstration, each below the command that gives it.
func Demo(w io.Writer, d *query.DemoDoc, o TextOptions) error {
	if d.ThisMachine != nil {
		fmt.Fprintf(w, "── This machine ($ busbar map) ──\n")
		if err := Map(w, d.ThisMachine, o); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "── The reference cluster ($ busbar map %s) ──\n", query.DemoReference)
	if err := Map(w, d.Reference, o); err != nil {
		return err
	}
	q := query.DemoPredict()
	fmt.Fprintf(w, "\n── Four GPUs there, three ways ($ busbar predict -c %s --compare %s --size %s -d %s) ──\n", q.Cluster, q.Compare, q.Size, q.Dtype)
	if err := Predict(w, d.Prediction, o); err != nil {
		return err
	}
	_, err := io.WriteString(w, measuredThere)
	return err
}

// measuredThere stands below the prediction, so that the two can be compared.
const measuredThere = `
Measured there, in the order of the rows: 8.59, 13.06, 147, 176, 309 and 587 ms. The GPUs of a node share a NIC that cannot
reach GPU memory; inter-node traffic is staged through host memory. Which GPUs the jobs got is not published: the run
without any setting was as fast as the forced tree, so it most likely had the tree already, as NCCL chooses it on the GPUs of
the other socket. NCCL_ALGO=allreduce:tree makes sure of it (docs/baskerville.md).
`
