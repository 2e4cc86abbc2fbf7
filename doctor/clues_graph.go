package doctor

import (
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/doctor/evidence"
)

// ringsOffNVLink is a ring of NCCL's that leaves NVLink where the node's topology has it: the type of its paths, channels and rate.
func (c *Case) ringsOffNVLink() *clue {
	if c.Cluster == nil || !slices.ContainsFunc(c.Cluster.Types, hasNVLink) {
		return nil
	}
	for _, o := range c.All(evidence.Graph) {
		inside, _, _ := strings.Cut(o.Arg(2), "/")
		ring := strings.Contains(o.Quotes[0].Text, "Pattern 4,") || strings.Contains(o.Quotes[0].Text, `<graph id="0"`)
		if ring && o.Arg(0) != "0" && slices.Contains([]string{"PIX", "PXB", "PXN", "PHB", "NODE", "SYS"}, inside) {
			return &clue{[]string{inside, o.Arg(0), o.Arg(1)}, first(o.Quotes, 1)}
		}
	}
	return nil
}

// hasNVLink reports whether NVLink joins GPUs of a type.
func hasNVLink(t *cluster.NodeType) bool {
	return slices.ContainsFunc(t.Links, func(l cluster.Link) bool { return l.Kind == cluster.NVLink })
}
