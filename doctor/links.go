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
	steady   course = "steady"
	dropped  course = "dropped"  // and stayed down
	flapping course = "flapping" // down and up again and again
	failing  course = "failing"  // the last measurements failed
	young    course = "young"    // too few samples for more
)

// story is a history told: what it shows, since when, and from what to what.
type story struct {
	*evidence.Link
	course
	at            time.Time
	before, after unit.Rate
	text          string
}

const (
	leastTold = 6    // samples of which something is told
	lowPart   = 0.75 // of its usual rate, below which a sample is down
	fewestLow = 0.25 // of the samples that are down, and up, where it flaps
	mostSwing = 5    // changes between down and up from which on it flaps
	leastRow  = 3    // samples in a row that are more than an accident
)

// tell looks at a history: a pair dropped where its last samples are all far below what it has at its best.
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
	if k := lastRun(list, func(p health.Point) bool { return p.Failed }); len(list)-k >= leastRow {
		s.course, s.at = failing, list[k].Time
		s.text = fmt.Sprintf("%s: measurements fail since %s (%s)", who, minute(s.at), over)
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
	n, low, high := swings(list, rates)
	if n >= mostSwing {
		s.course, s.before, s.after, s.at = flapping, high, low, first
		s.text = fmt.Sprintf("%s: flaps, %d times between about %v and %v (%s)", who, n, high, low, over)
		return s
	}
	k := lastRun(list, func(p health.Point) bool { return float64(p.Rate) < worthTelling*float64(high) })
	if len(list)-k >= leastRow && k >= leastRow {
		s.course, s.at = dropped, list[k].Time
		s.before, s.after = stats.Nearest(usable(list[:k]), 0.5), stats.Nearest(usable(list[k:]), 0.5)
		s.text = fmt.Sprintf("%s: dropped at %s from %v to %v (%s)", who, minute(s.at), s.before, s.after, over)
		return s
	}
	s.course, s.after = steady, stats.Nearest(rates, 0.5)
	s.text = fmt.Sprintf("%s: not lower than before, median %v (%s)", who, s.after, over)
	return s
}

// lastRun is where the samples of some sort at the end begin.
func lastRun(list []health.Point, of func(health.Point) bool) int {
	k := len(list)
	for k > 0 && of(list[k-1]) {
		k--
	}
	return k
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
