package main

import (
	"testing"
	"time"

	"busbar.dev/fleet"
)

// TestFrom has a time of day mean the next one, whether the order repeats or not.
func TestFrom(t *testing.T) {
	zone := time.FixedZone("CET", 3600)
	now := time.Date(2026, 11, 15, 23, 5, 0, 0, zone)
	for _, c := range []struct {
		every, from, want string
	}{
		{"", "", ""},
		{"1h", "", ""},
		{"", "02:30", "2026-11-16T02:30:00+01:00"},
		{"1h", "02:30", "2026-11-16T02:30:00+01:00"},
		{"1d", "02:30", "2026-11-16T02:30:00+01:00"},
		{"1h", "23:30", "2026-11-15T23:30:00+01:00"},
		{"1h", "23:05", "2026-11-15T23:05:00+01:00"},
		{"1h", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"}, // times are counted from there
	} {
		var o fleet.Order
		f := whenFlags{Every: c.every, From: c.from}
		if err := f.when(&o, now); err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		got := ""
		if !o.From.IsZero() {
			got = o.From.Format(time.RFC3339)
		}
		if got != c.want {
			t.Errorf("--every %q --from %q at %v: %s, want %s", c.every, c.from, now, got, c.want)
		}
	}
}

// TestSpanText prints a schedule as it was given.
func TestSpanText(t *testing.T) {
	for _, text := range []string{"10s", "90s", "30min", "90min", "1h", "36h", "1d", "30d"} {
		var o fleet.Order
		f := whenFlags{Every: text}
		if err := f.when(&o, time.Now()); err != nil {
			t.Fatal(err)
		}
		if got := spanText(o.Every); got != text {
			t.Errorf("%s is shown as %s", text, got)
		}
	}
}
