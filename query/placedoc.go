package query

import (
	"fmt"

	"busbar.dev/cluster"
	"busbar.dev/internal/words"
	"busbar.dev/launch"
	"busbar.dev/plan"
	"busbar.dev/unit"
)

// fill makes rows of placements and says which to take.
func (x *placing) fill(d *PlaceDoc, all plan.Placements, scheduler string, top int) {
	x.prefer(all.List, scheduler)
	best := &all.List[0]
	for i := range all.List {
		row := x.row(&all.List[i], best)
		if i == 0 {
			d.Best = row
		}
		if row.Why == scheduler {
			d.Scheduler = &row
		}
		if i < top {
			d.Rows = append(d.Rows, row)
		}
		d.Worst = row
	}
	d.Take = d.Best
	s := d.Scheduler
	switch {
	case s == nil:
		d.Text = fmt.Sprintf("Take %s. %s is to wait: of the blocks that could hold %s, none has as many free ones (--segment lets a job take several blocks).",
			hostText(&d.Best), scheduler, words.Plural(d.Nodes, "node"))
	case s.Hosts == d.Best.Hosts:
		d.Text = fmt.Sprintf("Take %s: %s is the best of %s.", hostText(s), scheduler, words.Plural(d.Tried, "placement"))
	case s.Tied && s.Longer <= 0:
		d.Text = fmt.Sprintf("Take %s: as fast as %s, and on nodes with fewer findings.", hostText(&d.Best), scheduler)
	case s.Tied:
		d.Text = fmt.Sprintf("A tie: %s takes %s longer than the best of %d placements (%s to %s), which is within the noise of a step. Take the shorter: %s.",
			scheduler, s.Longer.Short(), d.Tried, s.LongerLow.Short(), s.LongerHigh.Short(), hostText(&d.Best))
	default:
		d.Text = fmt.Sprintf("Take %s: %s per step less than %s (%s to %s), which is %.0f%% of its step.", hostText(&d.Best),
			s.Longer.Short(), scheduler, s.LongerLow.Short(), s.LongerHigh.Short(), 100*s.Longer.Seconds()/s.Step.Seconds())
	}
	if d.Worst.Tied && x.placer.Flaws(plainNumbers(len(x.free.names))) == 0 {
		d.Text += " All placements tie: this network does not care where the job runs."
	}
	d.Text += x.findings(&d.Take)
}

func (x *placing) row(p, best *plan.Placement) PlaceRow {
	m := unit.Span(x.margin)
	r := PlaceRow{
		Why: p.Why, Step: p.Result.Step, Low: p.Result.Step / m, High: p.Result.Step * m, Exposed: p.Result.Exposed,
		Longer: p.Result.Step - best.Result.Step, Level: x.placer.Level(p.Nodes), Leaves: []PlaceLeaf{},
	}
	bar := unit.Span(max(p.Margin, best.Margin, 1))
	r.LongerLow, r.LongerHigh = r.Longer/bar, r.Longer*bar
	r.Tied = r.LongerLow < placeNoise*best.Result.Step
	inRack := map[string]int{}
	for _, i := range p.Nodes {
		r.names = append(r.names, x.free.names[i])
		if rack := x.free.racks[i]; rack != "" {
			if inRack[rack]++; inRack[rack] == 1 {
				r.Racks = append(r.Racks, rack)
			}
		}
	}
	for _, n := range inRack {
		r.Segment = gcd(n, r.Segment)
	}
	r.Hosts = cluster.FormatHosts(r.names)
	leaves, counts := x.placer.Leaves(p.Nodes)
	for k, leaf := range leaves {
		l := PlaceLeaf{Nodes: counts[k]}
		if leaf >= 0 {
			l.Leaf = x.job.cluster.Network.Switches[leaf].Name
			if n := x.job.cluster.Network.Rails; n > 1 {
				l.Rails = n
			}
		}
		r.Leaves = append(r.Leaves, l)
	}
	return r
}

// Names are the hosts by their names, in the order of ranks; none where Hosts is no hostlist.
func (r *PlaceRow) Names() []string {
	if r.names == nil { // read from JSON
		r.names, _ = cluster.ParseHosts(r.Hosts)
	}
	return r.names
}

// Request is the nodes to take, for a scheduler.
func (d *PlaceDoc) Request() *launch.Request {
	r := &d.Take
	return &launch.Request{
		Hosts: r.Names(), GPUs: d.PerNode, Leaves: len(r.Leaves), Level: r.Level, Racks: len(r.Racks), Segment: r.Segment, Require: !d.Worst.Tied,
	}
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
