package unit

import (
	"fmt"
	"math"
	"time"
)

// Span is a time in seconds that is computed, not counted: of a training step and its parts, of a run,
// between failures. Time counts picoseconds and ends after 106 days; this one does not. Duration is the same in
// package time. In JSON it is a number of seconds.
type Span float64

// Long times.
const (
	Minute Span = 60
	Hour   Span = 3600
	Day    Span = 24 * Hour
	Year   Span = 365.25 * Day
)

var spanSuffix = map[string]Span{
	"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "sec": 1, "m": Minute, "min": Minute, "h": Hour,
	"hour": Hour, "hours": Hour,
	"d": Day, "day": Day, "days": Day, "w": 7 * Day, "y": Year, "year": Year, "years": Year,
}

// maxSpan is longer than anything that is meant.
const maxSpan = 1e6 * Year

// ParseSpan reads "250us", "90s", "10min", "2.5h", "54d" or "5.8y". There is no default unit.
func ParseSpan(s string) (Span, error) {
	num, suffix, err := split(s)
	if err != nil {
		return 0, fmt.Errorf("time %q: %w", s, err)
	}
	mul, ok := spanSuffix[suffix]
	if !ok {
		return 0, fmt.Errorf("time %q: unit %q; expected a unit of us, ms, s, min, h, d or y", s, suffix)
	}
	v := Span(num) * mul
	if !(v >= 0 && v <= maxSpan) {
		return 0, fmt.Errorf("time %q: out of range", s)
	}
	return v, nil
}

// Seconds is the time in seconds.
func (s Span) Seconds() float64 { return float64(s) }

// Duration is the span as package time has it.
func (s Span) Duration() time.Duration { return time.Duration(s.Seconds() * float64(time.Second)) }

// Time is the whole picoseconds of a short span.
func (s Span) Time() Time { return Time(s * 1e12) }

// Short prints a short span as Time does, with units from ps to s; none is 0. One that is longer than Time counts is
// printed as String does.
func (s Span) Short() string {
	switch {
	case s == 0:
		return "0"
	case math.Abs(float64(s)) >= float64(math.MaxInt64)/1e12:
		return s.String()
	}
	return s.Time().String()
}

// String prints three digits with the unit that fits.
func (s Span) String() string {
	a := Span(math.Abs(float64(s)))
	switch {
	case a < 1e-3 && a >= 1e-12:
		return s.Time().String()
	case a < 1:
		return digits(float64(s)*1e3) + " ms"
	case a < 2*Minute:
		return digits(float64(s)) + " s"
	case a < 2*Hour:
		return digits(float64(s/Minute)) + " min"
	case a < 2*Day:
		return digits(float64(s/Hour)) + " h"
	case a < 2*Year:
		return digits(float64(s/Day)) + " days"
	}
	return digits(float64(s/Year)) + " years"
}
