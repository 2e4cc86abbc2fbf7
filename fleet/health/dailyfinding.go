package health

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"busbar.dev/finding"
	"busbar.dev/internal/words"
)

// dailies are the findings about times of day. They are looked for once an hour: days do not change faster.
type dailies struct {
	hour  time.Time // of the newest sweep when they were looked for
	list  []finding.Finding
	hours []Daily // of each
}

const (
	dailySeries = 4096 // directions that are looked at; of more every so many
	dailyNode   = 3    // directions of a node that must have a history, to tell the node from its pairs
	dailyPairs  = 8    // findings about single pairs of one time of day
)

// slowThen is directions that are slow at one time of day.
type slowThen struct {
	Daily

	of []int32 // series
}

// renew looks for the times of day again where the newest sweep is of another hour.
func (d *dailies) renew(h *History, order []uint32) {
	if len(order) == 0 {
		return
	}
	hour := stamp(h.sweeps.at(order[len(order)-1]).at).Truncate(time.Hour)
	if !hour.After(d.hour) {
		return
	}
	d.hour, d.list, d.hours = hour, nil, nil
	looked, found := h.slowHours()
	for _, g := range found {
		for _, f := range h.dailyFindings(g, looked) {
			d.list, d.hours = append(d.list, f), append(d.hours, g.Daily)
		}
	}
}

// slowHours finds directions that are slow at some time of day, those of the same hours together; looked are all with a
// history long enough to tell.
func (h *History) slowHours() (looked []int32, found []slowThen) {
	every := 1 + len(h.series)/dailySeries
	for i := 0; i < len(h.series); i += every {
		r := &h.series[i]
		var list []Point
		for _, p := range r.samples {
			if h.sweeps.holds(p.sweep) {
				list = append(list, h.point(p))
			}
		}
		if len(list) == 0 || h.node[r.from].gone || h.node[r.to].gone ||
			list[len(list)-1].Time.Sub(list[0].Time) < (dailyDays-1)*24*time.Hour {
			continue
		}
		looked = append(looked, int32(i))
		for _, d := range DailySlow(list) {
			k := slices.IndexFunc(found, func(g slowThen) bool { return g.overlaps(d) })
			if k < 0 {
				k, found = len(found), append(found, slowThen{Daily: d})
			}
			found[k].of = append(found[k].of, int32(i))
		}
	}
	return looked, found
}

// overlaps reports whether two times of day have an hour in common.
func (d Daily) overlaps(o Daily) bool {
	for h := d.From; h != d.To; h = (h + 1) % 24 {
		if o.has(h) {
			return true
		}
	}
	return false
}

// has reports whether an hour is in it.
func (d Daily) has(hour int) bool {
	return (hour-d.From+24)%24 < (d.To-d.From+24)%24
}

// dailyFindings says whose the slow directions are: of most of the fleet, of nodes, else of pairs.
func (h *History) dailyFindings(g slowThen, looked []int32) []finding.Finding {
	part := func(of func(*series) bool) (slow, all []int32) {
		for _, i := range looked {
			if of(&h.series[i]) {
				all = append(all, i)
				if slices.Contains(g.of, i) {
					slow = append(slow, i)
				}
			}
		}
		return slow, all
	}
	most := func(slow, all []int32) bool {
		return len(all) >= dailyNode && float64(len(slow)) >= dailyShare*float64(len(all))
	}
	if slow, all := part(func(*series) bool { return true }); most(slow, all) {
		return []finding.Finding{h.dailyFinding(g, slow, looked, "fleet", nil)}
	}
	var list []finding.Finding
	left := map[int32]bool{}
	for _, i := range g.of {
		left[i] = true
	}
	for n := range h.node {
		slow, all := part(func(r *series) bool { return r.from == int32(n) || r.to == int32(n) })
		if !most(slow, all) {
			continue
		}
		name := h.nodes.list[n]
		list = append(list, h.dailyFinding(g, slow, looked, name, []string{name}))
		for _, i := range slow {
			delete(left, i)
		}
	}
	for _, i := range slices.Sorted(maps.Keys(left))[:min(len(left), dailyPairs)] {
		a, b := h.nodes.list[h.series[i].from], h.nodes.list[h.series[i].to]
		list = append(list, h.dailyFinding(g, []int32{i}, looked, a+">"+b, []string{a, b}))
	}
	return list
}

// dailyFinding is one finding about a time of day. It drains nobody: at other hours nothing is wrong.
func (h *History) dailyFinding(g slowThen, slow, looked []int32, who string, nodes []string) finding.Finding {
	d := g.Daily
	f := finding.Finding{
		ID: fmt.Sprintf("slow-daily:%s:%02d-%02d", who, d.From, d.To), Kind: SlowDaily, Severity: finding.Note, Nodes: nodes,
		Where:  who,
		Figure: rate.String(), Factor: round(float64(d.Rate) / float64(cmp.Or(d.Usual, 1))), Since: d.Since,
		Confidence: round(0.9 * float64(d.Days) / float64(max(d.Of, 1))),
		Fix: "Look for what runs at these hours: backups, other jobs' checkpoints, scrubs of the storage, cron and " +
			"systemctl list-timers. Move it, or start jobs at other hours.",
	}
	if f.Factor <= 0.8 {
		f.Severity = finding.Warn
	}
	days := int(h.daily.hour.Sub(d.Since)/(24*time.Hour)) + 1
	subject, peers := who, ""
	switch {
	case nodes == nil:
		f.Nodes, f.Where, subject = []string{}, "", "The network"
	case len(looked) > len(slow):
		peers = fmt.Sprintf("; %d other directions are not", len(looked)-len(slow))
	}
	f.Text = fmt.Sprintf("%s is slow daily %s for %s: %v instead of %v%s.", subject, d.Hours(), words.Plural(days, "day"),
		d.Rate, d.Usual, peers)
	f.Evidence = finding.Facts(fmt.Sprintf("%s of %d, on %d of %d days", words.Plural(len(slow), "direction"), len(looked),
		d.Days, d.Of))
	return f
}

// explain names the time of day that a finding of now belongs to: of the same nodes, begun at these hours.
func (d *dailies) explain(list []finding.Finding) {
	for i := range list {
		f := &list[i]
		if f.Kind == SlowDaily || f.Figure != rate.String() || f.ExplainedBy != "" {
			continue
		}
		for k := range d.list {
			if g := &d.list[k]; (len(g.Nodes) == 0 || slices.Equal(g.Nodes, f.Nodes)) && d.hours[k].has(f.Since.UTC().Hour()) {
				f.ExplainedBy = g.ID
			}
		}
	}
}
