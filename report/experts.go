package report

import (
	"busbar.dev/internal/texttab"
	"busbar.dev/query"
)

// Experts prints the exchanges of a mixture of experts.
func Experts(p *Page, d *query.ExpertsDoc) {
	p.printf("%d experts of %d GPUs (%s %s), %d for a token of %d elements, %s kernels\n", d.Experts, d.GPUs,
		d.Cluster, d.Layout, d.TopK, d.Hidden, d.Mode)
	t := texttab.New(">tokens", "", "type", ">time", ">from", ">to", ">in node", ">RDMA", ">GB/s|%.0f", "limit")
	for _, r := range d.Rows {
		t.Add(r.Tokens, r.Op, r.Dtype, r.Time, r.Low, r.High, r.Inside, r.Across, r.Bandwidth.GBps(), r.Limit)
	}
	p.table(t)
	p.printf("in node, RDMA: bytes that a GPU sends inside its node and to others; GB/s as DeepEP " +
		"counts it, with copies that stay on the GPU\n")
}
