package report

import (
	"cmp"
	"fmt"
	"slices"

	"busbar.dev/internal/natural"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/plan"
	"busbar.dev/query"
)

// Place prints placements, the scheduler's among them, and which to take.
func Place(p *Page, d *query.PlaceDoc) {
	jobLine(p, d.Cluster, d.GPU, &d.Job, true)
	p.printf("%d of %d free nodes, %s each, %s; %s priced\n", d.Nodes, d.FreeNodes, words.Plural(d.PerNode, "GPU"),
		d.Job.Parallel, words.Plural(d.Tried, "placement"))
	p.wrapped("", "", d.Text)
	t := texttab.New("nodes", "leaves", ">step", ">expected", ">exposed", ">longer", "", "chosen by")
	rows, shown := slices.Clone(d.Rows), map[string]bool{}
	if d.Scheduler != nil {
		rows = append(rows, *d.Scheduler)
	}
	for _, r := range append(rows, d.Worst) {
		if shown[r.Hosts] {
			continue
		}
		shown[r.Hosts] = true
		longer := r.Longer.Short() + when(!r.Tied, fmt.Sprintf(" (%s–%s)", r.LongerLow.Short(), r.LongerHigh.Short()))
		t.Add(hostList(natural.Sort(slices.Clone(r.Names())), 40), leafText(r.Leaves), r.Step,
			r.Low.Short()+"–"+r.High.Short(), r.Exposed, when(r.Longer > 0, longer),
			either(r.Hosts == d.Best.Hosts, "best", when(r.Tied, "tie")), r.Why)
	}
	p.table(t)
}

// leafText is nodes by leaf: leaf1 4, leaf2 2.
func leafText(list []plan.Leaf) string {
	if len(list) == 1 && list[0].Rails > 1 {
		return words.Plural(list[0].Rails, "rail")
	}
	var leaves []string
	for _, l := range list {
		leaves = append(leaves, fmt.Sprintf("%s%s %d", when(l.Rails > 1, "rails of "), cmp.Or(l.Leaf, "unknown"), l.Nodes))
	}
	return several(leaves, 3, 3)
}
