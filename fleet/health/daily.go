package health

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"busbar.dev/finding"
	"busbar.dev/internal/stats"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// Daily is hours of the day, UTC, in which a pair is slow day after day: something else uses the network then.
type Daily struct {
	From int `json:"from_hour"`
	To   int `json:"to_hour"` // the first that is not slow; less than From over midnight
	Days int `json:"days"`    // on which it was slow
	Of   int `json:"of_days"` // on which it was measured at these hours
	// Rate and Usual are medians in these hours and in the others.
	Rate  unit.Rate `json:"rate_GBps"`
	Usual unit.Rate `json:"usual_GBps"`
	Since time.Time `json:"since"` // the first time that it was slow at these hours
}

// Hours says when: between 02:00 and 04:00 UTC.
func (d Daily) Hours() string { return fmt.Sprintf("between %02d:00 and %02d:00 UTC", d.From, d.To) }

// String says it for people.
func (d Daily) String() string {
	return fmt.Sprintf("slow %s on %d of %d days: %v instead of %v", d.Hours(), d.Days, d.Of, d.Rate, d.Usual)
}

// has reports whether an hour is in it.
func (d Daily) has(hour int) bool { return (hour-d.From+24)%24 < (d.To-d.From+24)%24 }

const (
	dailySlow  = 0.85 // of the day's median: less is slow
	dailyDays  = 4    // fewer may be chance
	dailyShare = 0.8  // of the days
	dailyHours = 6    // that a day must have been measured in, to say what is usual on it
	dailyMost  = 8    // hours; slow for longer is no time of day
)

// hourOfDay is what an hour was on all days.
type hourOfDay struct {
	slow, measured int
	first          time.Time // that it was slow
	ended          bool      // it was not when it was last measured
	daily          bool
}

// DailySlow finds the hours in a history, oldest first. Each is compared with the median of its own day, so that a
// level that changed once, or a bad day, is none; it must have been slow on most of at least four days, more often than
// chance where other hours are slow too, and when it was last measured at that hour.
func DailySlow(list []Point) (found []Daily) {
	var hours [24]hourOfDay
	var low, usual []float64
	for rest := alike(list); len(rest) > 0; {
		day := rest[0].Time.UTC().Truncate(24 * time.Hour)
		var rates [24][]float64
		for ; len(rest) > 0 && rest[0].Time.Sub(day) < 24*time.Hour; rest = rest[1:] {
			h := rest[0].Time.UTC().Hour()
			rates[h] = append(rates[h], float64(rest[0].Rate))
		}
		var all []float64
		for _, r := range rates {
			if len(r) > 0 {
				all = append(all, stats.Median(r))
			}
		}
		limit := dailySlow * stats.Median(all)
		for i, r := range rates {
			if len(r) == 0 || len(all) < dailyHours {
				continue
			}
			h, rate := &hours[i], stats.Median(r)
			h.measured++
			if h.ended = rate >= limit; h.ended {
				usual = append(usual, rate)
				continue
			}
			low = append(low, rate)
			if h.slow++; h.slow == 1 {
				h.first = day.Add(time.Duration(i) * time.Hour)
			}
		}
	}
	n, others, measured := 0, 1, 2 // the share of the other hours that are slow has one of two as its prior
	for i := range hours {
		h := &hours[i]
		if h.daily = h.measured >= dailyDays && float64(h.slow) >= dailyShare*float64(h.measured); h.daily {
			n++
		} else {
			others, measured = others+h.slow, measured+h.measured
		}
	}
	for i := range hours {
		h := &hours[i]
		h.daily = h.daily && n <= dailyMost && !h.ended &&
			24*tail(h.measured, h.slow, float64(others)/float64(measured)) < unlikely
	}
	for from, h := range hours {
		if !h.daily || hours[(from+23)%24].daily {
			continue
		}
		d := Daily{from, from, h.slow, h.measured, unit.Rate(stats.Median(low)), unit.Rate(stats.Median(usual)), h.first}
		for ; hours[d.To].daily; d.To = (d.To + 1) % 24 {
			h := &hours[d.To]
			d.Days, d.Of = min(d.Days, h.slow), min(d.Of, h.measured)
			if h.first.Before(d.Since) {
				d.Since = h.first
			}
		}
		found = append(found, d)
	}
	return found
}

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
func (d *dailies) renew(t *table) {
	if len(t.sweeps.order) == 0 {
		return
	}
	hour := stamp(t.sweeps.order[len(t.sweeps.order)-1].at).Truncate(time.Hour)
	if !hour.After(d.hour) {
		return
	}
	*d = dailies{hour: hour}
	looked, found := t.slowHours()
	for i := range found {
		d.report(t, &found[i], looked)
	}
}

// slowHours finds directions that are slow at some time of day, those of the same hours together; looked are all with a
// history long enough to tell.
func (t *table) slowHours() (looked []int32, found []slowThen) {
	for i := 0; i < len(t.series); i += 1 + len(t.series)/dailySeries {
		list := t.points(&t.series[i])
		if len(list) == 0 || t.series[i].class == unjudged ||
			list[len(list)-1].Time.Sub(list[0].Time) < (dailyDays-1)*24*time.Hour {
			continue
		}
		looked = append(looked, int32(i))
		for _, d := range DailySlow(list) {
			k := slices.IndexFunc(found, func(g slowThen) bool { return g.has(d.From) || d.has(g.From) })
			if k < 0 {
				k, found = len(found), append(found, slowThen{Daily: d})
			}
			found[k].of = append(found[k].of, int32(i))
		}
	}
	return looked, found
}

// report says whose the slow directions are: of most of the fleet, of nodes, else of pairs.
func (d *dailies) report(t *table, g *slowThen, looked []int32) {
	most := func(slow, all int) bool { return all >= dailyNode && float64(slow) >= dailyShare*float64(all) }
	if most(len(g.of), len(looked)) {
		d.add(g, len(g.of), len(looked), "fleet", nil)
		return
	}
	directions := func(list []int32) []int { // by node
		n := make([]int, len(t.node))
		for _, i := range list {
			n[t.series[i].from]++
			n[t.series[i].to]++
		}
		return n
	}
	slow, all := directions(g.of), directions(looked)
	for n, name := range t.nodes.list {
		if most(slow[n], all[n]) {
			d.add(g, slow[n], len(looked), name, []string{name})
		}
	}
	left := slices.DeleteFunc(g.of, func(i int32) bool {
		a, b := t.series[i].from, t.series[i].to
		return most(slow[a], all[a]) || most(slow[b], all[b])
	})
	for _, i := range left[:min(len(left), dailyPairs)] {
		a, b := t.nodes.list[t.series[i].from], t.nodes.list[t.series[i].to]
		d.add(g, 1, len(looked), a+">"+b, []string{a, b})
	}
}

// add makes a finding about a time of day. It drains nobody: at other hours nothing is wrong.
func (d *dailies) add(g *slowThen, slow, looked int, who string, nodes []string) {
	subject, peers := who, ""
	switch {
	case nodes == nil:
		subject = "The network"
	case looked > slow:
		peers = fmt.Sprintf("; %d other directions are not", looked-slow)
	}
	days := int(d.hour.Sub(g.Since)/(24*time.Hour)) + 1
	f := found(SlowDaily, subject, "", g.Since.UnixNano(), []string{fmt.Sprintf("%s of %d, on %d of %d days",
		words.Plural(slow, "direction"), looked, g.Days, g.Of)},
		g.Hours(), words.Plural(days, "day"), g.Rate, g.Usual, peers)
	f.ID, f.Nodes = fmt.Sprintf("slow-daily:%s:%02d-%02d", who, g.From, g.To), append([]string{}, nodes...)
	f.Figure, f.Factor = rate.String(), round(float64(g.Rate)/float64(cmp.Or(g.Usual, 1)))
	f.Confidence = round(0.9 * float64(g.Days) / float64(max(g.Of, 1)))
	if nodes != nil {
		f.Where = who
	}
	if f.Factor <= 0.8 {
		f.Severity = finding.Warn
	}
	d.list, d.hours = append(d.list, f), append(d.hours, g.Daily)
}

// explain names the time of day that a finding of now belongs to: of the same nodes, begun at these hours.
func (d *dailies) explain(list []finding.Finding) {
	for i := range list {
		f := &list[i]
		if f.Kind == SlowDaily || f.Figure != rate.String() {
			continue
		}
		for k := range d.list {
			if g := &d.list[k]; (len(g.Nodes) == 0 || slices.Equal(g.Nodes, f.Nodes)) && d.hours[k].has(f.Since.UTC().Hour()) {
				f.ExplainedBy = g.ID
			}
		}
	}
}
