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
}

// String says it for people.
func (d Daily) String() string {
	return fmt.Sprintf("slow between %02d:00 and %02d:00 UTC on %d of %d days: %v instead of %v", d.From, d.To, d.Days, d.Of, d.Rate, d.Usual)
}

const (
	dailySlow  = 0.85 // of the day's median: less is slow
	dailyDays  = 4    // fewer may be chance
	dailyShare = 0.8  // of the days
	dailyHours = 6    // that a day must have been measured in, to say what is usual on it
	dailyMost  = 8    // hours; slow for longer is no time of day
)

// DailySlow finds the hours. Each is compared with the median of its own day, so that a level that changed once, or a bad day, is
// none; it must have been slow on most of at least four days.
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
	var low, usual []float64
	for _, hours := range days {
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
			if r < dailySlow*mid {
				slow[h]++
				low = append(low, r)
			} else {
				usual = append(usual, r)
			}
		}
	}
	var found [24]bool
	n := 0
	for h := range found {
		if found[h] = measured[h] >= dailyDays && float64(slow[h]) >= dailyShare*float64(measured[h]); found[h] {
			n++
		}
	}
	if n == 0 || n > dailyMost {
		return nil
	}
	return runs(found, func(from, to int) Daily {
		d := Daily{From: from, To: to, Days: slow[from], Of: measured[from], Rate: unit.Rate(stats.Median(low)), Usual: unit.Rate(stats.Median(usual))}
		for h := from; h != to; h = (h + 1) % 24 {
			d.Days, d.Of = min(d.Days, slow[h]), min(d.Of, measured[h])
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
