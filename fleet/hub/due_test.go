package hub

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"busbar.dev/fleet"
)

func TestDue(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse(time.TimeOnly, s)
		if err != nil {
			t.Fatal(err)
		}
		return v.AddDate(2026, 0, 0)
	}
	for name, c := range map[string]struct {
		order fleet.Order
		given string
		now   string
		want  string
	}{
		"once, now":                {fleet.Order{}, "12:00:00", "12:00:05", "12:00:00"},
		"once, later":              {fleet.Order{From: at("13:00:00")}, "12:00:00", "12:00:05", "13:00:00"},
		"repeated, first":          {fleet.Order{Every: time.Hour}, "12:00:00", "12:00:05", "12:00:00"},
		"repeated, next":           {fleet.Order{Every: time.Hour, Ran: at("12:00:00")}, "12:00:00", "12:10:00", "13:00:00"},
		"from the past, never ran": {fleet.Order{Every: time.Hour, From: at("02:30:00")}, "12:00:00", "12:10:00", "12:30:00"},
		"three missed":             {fleet.Order{Every: time.Hour, Ran: at("12:00:00")}, "12:00:00", "15:10:00", "16:00:00"},
		"began a little late":      {fleet.Order{Every: time.Hour, Ran: at("13:00:01")}, "12:00:00", "13:00:02", "14:00:00"},
		"ran in the future":        {fleet.Order{Every: time.Hour, Ran: at("23:00:00")}, "12:00:00", "12:10:00", "13:00:00"},
		"a little in the future":   {fleet.Order{Every: time.Hour, Ran: at("13:00:01")}, "12:00:00", "12:59:58", "14:00:00"},
		"right on time":            {fleet.Order{Every: time.Hour, Ran: at("12:00:00")}, "12:00:00", "13:00:00", "13:00:00"},
	} {
		if got := due(&c.order, at(c.given), at(c.now)); !got.Equal(at(c.want)) {
			t.Errorf("%s: %v, want %s", name, got.Format(time.TimeOnly), c.want)
		}
	}
}

func TestDueIsOnTheGrid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		second := func(name string) time.Time {
			return base.Add(time.Duration(rapid.Int64Range(0, 1e6).Draw(t, name)) * time.Second)
		}
		o := fleet.Order{
			Every: time.Duration(rapid.Int64Range(10, 1e5).Draw(t, "every")) * time.Second, From: second("from"),
			Ran: second("ran"),
		}
		now := second("now")
		got := due(&o, base, now)
		if o.Ran.Sub(now) > o.Every {
			o.Ran = time.Time{} // by a clock that was wrong
		}
		if got.Before(now) || !got.After(o.Ran) || got.Sub(o.From)%o.Every != 0 {
			t.Fatalf("due %v: before %v, not after %v, or off the grid", got, now, o.Ran)
		}
		if prev := got.Add(-o.Every); !prev.Before(o.From) && !prev.Before(now) && prev.After(o.Ran) {
			t.Fatalf("%v was passed over", prev)
		}
	})
}
