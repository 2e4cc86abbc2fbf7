package health

import (
	"fmt"
	"time"

	"busbar.dev/internal/stats"
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

const (
	dailySlow  = 0.85 // of the day's median: less is slow
	dailyDays  = 4    // fewer may be chance
	dailyShare = 0.8  // of the days
	dailyHours = 6    // that a day must have been measured in, to say what is usual on it
	dailyMost  = 8    // hours; slow for longer is no time of day
)

// DailySlow finds the hours. Each is compared with the median of its own day, so that a level that changed once, or a
// bad day, is none; it must have been slow on most of at least four days, more often than chance where other hours are
// slow too, and when it was last measured at that hour.
func DailySlow(list []Point) []Daily {
	type hour struct {
		day time.Time
		of  int
	}
	rates := map[hour][]float64{}
	days := map[time.Time]map[int]float64{}
	for _, p := range list {
		if p.Rate > 0 && !p.Failed && p.Setup == list[len(list)-1].Setup {
			h := hour{p.Time.UTC().Truncate(24 * time.Hour), p.Time.UTC().Hour()}
			rates[h] = append(rates[h], float64(p.Rate))
		}
	}
	for h, r := range rates {
		if days[h.day] == nil {
			days[h.day] = map[int]float64{}
		}
		days[h.day][h.of] = stats.Median(r)
	}
	var slow, measured [24]int
	var first, last, newest [24]time.Time
	var low, usual []float64
	for day, hours := range days {
		if len(hours) < dailyHours {
			continue
		}
		var all []float64
		for _, r := range hours {
			all = append(all, r)
		}
		mid := stats.Median(all)
		for h, r := range hours {
			measured[h]++
			at := day.Add(time.Duration(h) * time.Hour)
			if at.After(newest[h]) {
				newest[h] = at
			}
			if r < dailySlow*mid {
				slow[h]++
				low = append(low, r)
				if at.After(last[h]) {
					last[h] = at
				}
				if first[h].IsZero() || at.Before(first[h]) {
					first[h] = at
				}
			} else {
				usual = append(usual, r)
			}
		}
	}
	var found [24]bool
	n, others, cells := 0, 1, 2 // the share of the other hours that are slow has one of two as its prior
	for h := range found {
		if found[h] = measured[h] >= dailyDays && float64(slow[h]) >= dailyShare*float64(measured[h]); found[h] {
			n++
		} else {
			others, cells = others+slow[h], cells+measured[h]
		}
	}
	if n == 0 || n > dailyMost {
		return nil
	}
	for h := range found {
		chance := 24 * tail(measured[h], slow[h], float64(others)/float64(cells))
		found[h] = found[h] && last[h].Equal(newest[h]) && chance < unlikely
	}
	return runs(found, func(from, to int) Daily {
		d := Daily{
			From: from, To: to, Days: slow[from], Of: measured[from], Rate: unit.Rate(stats.Median(low)),
			Usual: unit.Rate(stats.Median(usual)), Since: first[from],
		}
		for h := from; h != to; h = (h + 1) % 24 {
			d.Days, d.Of = min(d.Days, slow[h]), min(d.Of, measured[h])
			if first[h].Before(d.Since) {
				d.Since = first[h]
			}
		}
		return d
	})
}

// runs are neighbouring hours as one, over midnight too.
func runs(found [24]bool, of func(from, to int) Daily) []Daily {
	var out []Daily
	for h := range found {
		if !found[h] || found[(h+23)%24] {
			continue
		}
		to := h
		for found[to] {
			to = (to + 1) % 24
		}
		out = append(out, of(h, to))
	}
	return out
}
