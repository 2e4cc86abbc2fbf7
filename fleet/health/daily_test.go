package health

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

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
		if c.from == c.to && len(got) > 0 || c.from != c.to && (len(got) != 1 || got[0].From != c.from || got[0].To != c.to || got[0].Days < 5 || got[0].Rate >= got[0].Usual) {
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
