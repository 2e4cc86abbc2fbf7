package report

import (
	"fmt"
	"io"

	"busbar.dev/internal/texttab"
	"busbar.dev/query"
)

// Experts prints the exchanges of a mixture of experts.
func Experts(w io.Writer, d *query.ExpertsDoc) error {
	fmt.Fprintf(w, "%d experts of %d GPUs (%s %s), %d for a token of %d elements, %s kernels\n", d.Experts, d.GPUs,
		d.Cluster, d.Layout, d.TopK, d.Hidden, d.Mode)
	t := texttab.New(">tokens", "", "type", ">time", ">from", ">to", ">in node", ">RDMA", ">GB/s", "limit")
	for i := range d.Rows {
		r := &d.Rows[i]
		t.Row(fmt.Sprint(r.Tokens), r.Op, r.Dtype, r.Time.String(), r.Low.String(), r.High.String(), r.Inside.String(),
			r.Across.String(), fmt.Sprintf("%.0f", float64(r.Bandwidth)/1e9), r.Bottleneck)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "in node, RDMA: bytes that a GPU sends inside its node and to others; GB/s as DeepEP "+
		"counts it, with copies that stay on the GPU")
	return err
}
