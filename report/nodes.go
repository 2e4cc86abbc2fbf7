package report

import (
	"fmt"
	"strings"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/texttab"
	"busbar.dev/query"
)

// Nodes prints the nodes of a fleet as a table, and what is wrong.
func Nodes(p *Page, doc *query.NodesDoc) {
	if len(doc.Nodes) == 0 {
		p.printf("no nodes have joined\n")
		return
	}
	out := map[string]string{}
	for _, o := range doc.Slurm {
		out[o.Node] = o.State + when(o.Reason != "", ": "+o.Reason)
	}
	t := texttab.New("node", "state", ">last beat", ">load", "activity", "version", "findings",
		texttab.If(doc.Slurm != nil, "Slurm"))
	for _, n := range doc.Nodes {
		up, doing := n.State == fleet.NodeUp, "nothing"
		if n.Progress != nil {
			doing = n.Progress.Part
		}
		age := time.Duration(n.AgeS*10) * 100 * time.Millisecond
		t.Add(n.Name, n.State, known(n.AgeS >= 0, age.String()), known(up, fmt.Sprintf("%.1f", n.Load)), known(up, doing),
			n.Version, when(n.Unhealthy, "BAD: ")+strings.Join(n.Findings, ", "), out[string(n.Name)])
	}
	p.table(t)
	for _, f := range doc.Findings {
		p.printf("\n%s: %s\n", f.Severity, f.Text)
		p.lines(when(f.Fix != "", "  fix: "+f.Fix))
	}
}
