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
	p.printf("%s on %d of %d free nodes of %s, %s each, %s; %s priced\n\n", d.Model, d.Nodes, d.FreeNodes,
		cmp.Or(d.Cluster, "the cluster"), words.Plural(d.PerNode, "GPU"), d.Parallel, words.Plural(d.Tried, "placement"))
	t := texttab.New("nodes", "leaves", ">step", ">expected", ">exposed", ">longer", "", "chosen by")
	add := func(r *query.PlaceRow) {
		longer := r.Longer.Short() + when(!r.Tied, fmt.Sprintf(" (%s–%s)", r.LongerLow.Short(), r.LongerHigh.Short()))
		t.Add(hostList(natural.Sort(slices.Clone(r.Names())), 40), leafText(r.Leaves), r.Step,
			r.Low.Short()+"–"+r.High.Short(), r.Exposed, when(r.Longer > 0, longer),
			cmp.Or(when(r.Hosts == d.Best.Hosts, "best"), when(r.Tied, "tie")), r.Why)
	}
	shown := map[string]bool{}
	for i := range d.Rows {
		add(&d.Rows[i])
		shown[d.Rows[i].Hosts] = true
	}
	for _, r := range []*query.PlaceRow{d.Scheduler, &d.Worst} {
		if r != nil && !shown[r.Hosts] {
			add(r)
			shown[r.Hosts] = true
		}
	}
	p.table(t)
	p.printf("\n")
	p.wrapped("", "", d.Text)
}

// leafText is nodes by leaf: leaf1 4, leaf2 2.
func leafText(list []plan.Leaf) string {
	const most = 3
	text := ""
	for i, l := range list {
		if i == most {
			return text + fmt.Sprintf(" and %d more", len(list)-most)
		}
		name := cmp.Or(l.Leaf, "unknown")
		if l.Rails > 1 && len(list) == 1 {
			return words.Plural(l.Rails, "rail")
		}
		if l.Rails > 1 {
			name = "rails of " + name
		}
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s %d", name, l.Nodes)
	}
	return text
}
