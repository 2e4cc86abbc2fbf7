package doctor

import (
	"fmt"
	"slices"
	"time"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
	"busbar.dev/fleet/health"
	"busbar.dev/internal/stats"
	"busbar.dev/unit"
)

// course is what the history of one direction of a pair shows.
type course string

const (
	steady    course = "steady"
	dropped   course = "dropped"   // and stayed down
	recovered course = "recovered" // it was down for a time
	rose      course = "rose"
	flapping  course = "flapping" // down and up again and again
	failing   course = "failing"  // the last measurements failed
	daily     course = "daily"    // down at the same hours of most days
	young     course = "young"    // too few samples for more
)

// story is a history told: what it shows, since when, and from what to what.
type story struct {
	*evidence.Link
	course
	at            time.Time
	before, after unit.Rate
	hours         string // of the day, where it is daily
	text          string
}

const (
	leastTold = 6    // samples of which something is told
	lowPart   = 0.75 // of its usual rate, below which a sample is down
	fewestLow = 0.25 // of the samples that are down, and up, where it flaps
	mostSwing = 5    // changes between down and up from which on it flaps
)

// tell looks at a history. Where its level changed is said by health.Changes; a pair that is down in
// every second sample has no levels.
func tell(l *evidence.Link) story {
	s := story{Link: l, course: young}
	if len(l.Points) == 0 {
		return s
	}
	list := alike(l.Points)
	first, last := list[0].Time, list[len(list)-1].Time
	who := fmt.Sprintf("%s to %s", l.From, l.To)
	over := fmt.Sprintf("%d samples from %s to %s", len(list), minute(first), minute(last))
	if len(list) < leastTold {
		s.text = fmt.Sprintf("%s: %s are too few for a history", who, over)
		return s
	}
	rates := usable(list)
	if at, ok := failingSince(list); ok {
		s.course, s.at = failing, at
		s.text = fmt.Sprintf("%s: measurements fail since %s (%s)", who, minute(at), over)
		if len(rates) > 0 {
			s.before = stats.Nearest(rates, 0.5)
			s.text += fmt.Sprintf(", before %v", s.before)
		}
		return s
	}
	if len(rates) < leastTold {
		s.text = fmt.Sprintf("%s: %d of %s have a rate, too few for a history", who, len(rates), over)
		return s
	}
	if d := health.DailySlow(list); len(d) > 0 {
		s.course, s.before, s.after, s.at, s.hours = daily, d[0].Usual, d[0].Rate, d[0].Since, d[0].Hours()
		s.text = fmt.Sprintf("%s: %s (%s)", who, d[0], over)
		return s
	}
	if n, low, high := swings(list, rates); n >= mostSwing {
		s.course, s.before, s.after, s.at = flapping, high, low, first
		s.text = fmt.Sprintf("%s: flaps, %d times between about %v and %v (%s)", who, n, high, low, over)
		return s
	}
	changes := health.Changes(list)
	if len(changes) == 0 {
		s.course, s.after = steady, stats.Nearest(rates, 0.5)
		s.text = fmt.Sprintf("%s: steady at %v (%s)", who, s.after, over)
		return s
	}
	c := changes[len(changes)-1]
	s.at, s.before, s.after = c.Time, c.Before, c.After
	switch {
	case c.After < c.Before:
		s.course = dropped
		s.text = fmt.Sprintf("%s: dropped at %s from %v to %v", who, minute(c.Time), c.Before, c.After)
	case len(changes) > 1 && changes[len(changes)-2].After < changes[len(changes)-2].Before:
		s.course = recovered
		s.text = fmt.Sprintf("%s: at %v from %s to %s, and %v again since", who, c.Before,
			minute(changes[len(changes)-2].Time), minute(c.Time), c.After)
	default:
		s.course = rose
		s.text = fmt.Sprintf("%s: rose at %s from %v to %v", who, minute(c.Time), c.Before, c.After)
	}
	if n := len(changes); n > 2 || n == 2 && s.course != recovered {
		s.text += fmt.Sprintf(", the last of %d changes", n)
	}
	s.text += " (" + over + ")"
	return s
}

// alike are the samples that were measured as the last one was.
func alike(list []health.Point) []health.Point {
	setup := list[len(list)-1].Setup
	return slices.DeleteFunc(slices.Clone(list), func(p health.Point) bool { return p.Setup != setup })
}

func minute(t time.Time) string { return t.UTC().Format("2006-01-02 15:04Z") }

// usable are the rates, sorted.
func usable(list []health.Point) []unit.Rate {
	var out []unit.Rate
	for _, p := range list {
		if p.Rate > 0 && !p.Failed {
			out = append(out, p.Rate)
		}
	}
	slices.Sort(out)
	return out
}

// failingSince is when the failures at the end began; three in a row are more than an accident.
func failingSince(list []health.Point) (at time.Time, ok bool) {
	k := len(list)
	for k > 0 && list[k-1].Failed {
		k--
	}
	if len(list)-k < 3 {
		return at, false
	}
	return list[k].Time, true
}

// swings counts how often samples go down and up, where both are often. A failure is down too.
func swings(list []health.Point, rates []unit.Rate) (n int, low, high unit.Rate) {
	high = rates[len(rates)*4/5]
	downs, all, was := 0, 0, 0
	var lows []unit.Rate
	for _, p := range list {
		if p.Rate <= 0 && !p.Failed {
			continue
		}
		now := 1
		if p.Failed || float64(p.Rate) < lowPart*float64(high) {
			now = -1
			downs++
			lows = append(lows, p.Rate)
		}
		if was != 0 && now != was {
			n++
		}
		was = now
		all++
	}
	if share := float64(downs) / float64(max(all, 1)); share < fewestLow || share > 1-fewestLow {
		return 0, 0, high
	}
	return n, stats.Nearest(lows, 0.5), high
}

// stories are those of all histories that were read.
func (c *Case) stories() []story {
	var list []story
	for i := range c.Links {
		if s := tell(&c.Links[i]); s.text != "" {
			list = append(list, s)
		}
	}
	return list
}

// histories are quotes of what the histories of pairs with some hosts show, of all pairs where no host
// is named.
func (c *Case) histories(hosts ...string) []finding.Quote {
	var list []finding.Quote
	for _, s := range c.stories() {
		if len(hosts) == 0 || slices.Contains(hosts, s.From) || slices.Contains(hosts, s.To) {
			list = append(list, finding.Quote{File: s.File, Text: s.text})
		}
	}
	return list[:min(len(list), 2)]
}
