package health

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"busbar.dev/finding"
	"busbar.dev/unit"
)

// everyHalfHour is a history of so many days with scatter, at which part of its rate each time says.
func everyHalfHour(r *rand.Rand, days int, spread float64, part func(time.Time) float64) []Point {
	var list []Point
	for i := range days * 48 {
		at := time.Date(2026, 3, 1, 0, 30*i, 0, 0, time.UTC)
		list = append(list, Point{Time: at, Rate: unit.Rate(12e9 * part(at) * math.Exp(spread*r.NormFloat64()))})
	}
	return list
}

// Hours that are slow every day are found, over midnight too; a bad day, a level that changed and scatter are not.
func TestDaily(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	between := func(from, to int, low float64) func(time.Time) float64 {
		return func(at time.Time) float64 {
			if h := at.Hour(); from < to && h >= from && h < to || from > to && (h >= from || h < to) {
				return low
			}
			return 1
		}
	}
	for _, c := range []struct {
		name     string
		days     int
		part     func(time.Time) float64
		from, to int // equal: none
	}{
		{"backups at night", 7, between(2, 4, 0.6), 2, 4},
		{"over midnight", 7, between(23, 1, 0.5), 23, 1},
		{"too few days", 3, between(2, 4, 0.6), 0, 0},
		{"one bad day", 7, func(at time.Time) float64 {
			if at.Day() == 3 {
				return between(2, 20, 0.5)(at)
			}
			return 1
		}, 0, 0},
		{"a level that changed", 8, func(at time.Time) float64 {
			if at.Day() > 4 {
				return 0.5
			}
			return 1
		}, 0, 0},
		{"working hours: a long time of day is none", 7, between(8, 20, 0.5), 0, 0},
	} {
		got := DailySlow(everyHalfHour(r, c.days, 0.03, c.part))
		if c.from == c.to && len(got) > 0 || c.from != c.to && (len(got) != 1 || got[0].From != c.from || got[0].To != c.to ||
			got[0].Days < 5 || got[0].Rate >= got[0].Usual) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if got := DailySlow(nil); got != nil {
		t.Errorf("nothing: %v", got)
	}
	alarms := 0
	for range 300 {
		alarms += min(1, len(DailySlow(everyHalfHour(r, 7, 0.10, func(time.Time) float64 { return 1 }))))
	}
	if alarms > 0 {
		t.Errorf("%d of 300 histories of scatter alone have a slow time of day", alarms)
	}
}

// nights is a fleet measured every half hour for some days, of which some directions have part of their rate at night.
func nights(days, nodes int, low func(from, to int) bool) *History {
	h := New(Options{})
	r := rand.New(rand.NewPCG(3, 4))
	for i := range days * 48 {
		at := time.Date(2026, 3, 1, 0, 30*i, 0, 0, time.UTC)
		for a := range nodes {
			for b := range nodes {
				if a == b {
					continue
				}
				rate := 12e9 * math.Exp(0.02*r.NormFloat64())
				if n := at.Hour(); n >= 2 && n < 4 && low(a, b) {
					rate *= 0.6
				}
				h.Add(Sample{
					Sweep: at.Format(time.RFC3339), Time: at, From: fmt.Sprintf("n%d", a), To: fmt.Sprintf("n%d", b),
					Rate: unit.Rate(rate),
				})
			}
		}
	}
	return h
}

// What is slow at the same hours of every day is one finding: of the node whose pairs are, of the network where most
// are, of a pair otherwise. It ends when a night was good.
func TestDailyFindings(t *testing.T) {
	noon := time.Date(2026, 3, 6, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		days int
		low  func(from, to int) bool
		want []string
		text string
	}{
		{
			"a node", 5, func(a, b int) bool { return a == 1 || b == 1 },
			[]string{"slow-daily:n1:02-04"},
			"n1 is slow daily between 02:00 and 04:00 UTC for 5 days: 7.1",
		},
		{
			"the network", 5, func(a, b int) bool { return true },
			[]string{"slow-daily:fleet:02-04"},
			"The network is slow daily between 02:00 and 04:00 UTC for 5 days",
		},
		{
			"a direction", 5, func(a, b int) bool { return a == 2 && b == 3 },
			[]string{"slow-daily:n2>n3:02-04"},
			"n2>n3 is slow daily",
		},
		{"nothing", 5, func(a, b int) bool { return false }, nil, ""},
		{"too few days", 3, func(a, b int) bool { return a == 1 || b == 1 }, nil, ""},
	} {
		h := nights(c.days, 5, c.low)
		var got []string
		text := ""
		for _, f := range h.Findings(noon) {
			if f.Kind == SlowDaily {
				got, text = append(got, f.ID), f.Text
				if f.Severity != finding.Warn || len(Drain([]finding.Finding{f})) > 0 ||
					!f.Since.Equal(time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)) {
					t.Errorf("%s: %+v", c.name, f)
				}
			}
		}
		if !slices.Equal(got, c.want) || !strings.Contains(text, c.text) {
			t.Errorf("%s: %v %s", c.name, got, text)
		}
	}
	h := nights(5, 5, func(a, b int) bool { return a == 1 || b == 1 })
	for i := range 20 { // a sixth day whose night is good
		at := time.Date(2026, 3, 6, 0, 30*i, 0, 0, time.UTC)
		for a := range 5 {
			for b := range 5 {
				if a != b {
					h.Add(Sample{
						Sweep: at.Format(time.RFC3339), Time: at, From: fmt.Sprintf("n%d", a), To: fmt.Sprintf("n%d", b), Rate: 12e9,
					})
				}
			}
		}
	}
	for _, f := range h.Findings(noon) {
		if f.Kind == SlowDaily {
			t.Errorf("after a good night: %s", f.Text)
		}
	}
}
