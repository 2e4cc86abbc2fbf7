package unit

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Time is a duration in picoseconds: of a message, a collective. It is an integer so that sums and
// comparisons come out the same on every processor. Span is for longer times, Duration the same in
// package time. In JSON it is a number of seconds.
type Time int64

// Common durations.
const (
	Picosecond  Time = 1
	Nanosecond  Time = 1e3
	Microsecond Time = 1e6
	Millisecond Time = 1e9
	Second      Time = 1e12
)

var timeSuffix = map[string]Time{
	"ps": Picosecond, "ns": Nanosecond, "us": Microsecond, "µs": Microsecond, "μs": Microsecond,
	"ms": Millisecond, "s": Second,
}

// ParseTime reads "1.5us", "600 ns" or "2s". There is no default unit.
func ParseTime(s string) (Time, error) {
	num, suffix, err := split(s)
	if err != nil {
		return 0, fmt.Errorf("time %q: %w", s, err)
	}
	mul, ok := timeSuffix[suffix]
	if !ok {
		return 0, fmt.Errorf("time %q: unit %q; expected a unit of ns, us, ms or s", s, suffix)
	}
	v := num * float64(mul)
	if math.Abs(v) >= math.MaxInt64 {
		return 0, fmt.Errorf("time %q: out of range", s)
	}
	return Time(math.Round(v)), nil
}

// Seconds makes a Time from seconds.
func Seconds(s float64) Time { return Time(math.Round(s * float64(Second))) }

// Micros makes a Time from microseconds.
func Micros(us float64) Time { return Time(math.Round(us * float64(Microsecond))) }

// Seconds is the time in seconds.
func (t Time) Seconds() float64 { return float64(t) / float64(Second) }

// Span is the same time as a span.
func (t Time) Span() Span { return Span(t) / 1e12 }

// Micros is the time in microseconds.
func (t Time) Micros() float64 { return float64(t) / float64(Microsecond) }

// String prints three digits with the unit that fits.
func (t Time) String() string {
	for _, u := range []struct {
		v Time
		s string
	}{{Second, "s"}, {Millisecond, "ms"}, {Microsecond, "µs"}, {Nanosecond, "ns"}} {
		if t >= u.v || -t >= u.v {
			return digits(float64(t)/float64(u.v)) + " " + u.s
		}
	}
	return strconv.FormatInt(int64(t), 10) + " ps"
}

// MarshalJSON writes seconds; the field that holds it says so in its name.
func (t Time) MarshalJSON() ([]byte, error) { return json.Marshal(round9(t.Seconds())) }

// UnmarshalJSON reads a number of seconds, or a text with a unit.
func (t *Time) UnmarshalJSON(data []byte) error {
	if isText(data) {
		return fromText(data, t.UnmarshalText)
	}
	var f float64
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	if math.Abs(f)*float64(Second) >= math.MaxInt64 {
		return fmt.Errorf("time %s: out of range", data)
	}
	*t = Seconds(f)
	return nil
}

// MarshalText writes microseconds with their unit.
func (t Time) MarshalText() ([]byte, error) { return []byte(digitsFull(t.Micros()) + "us"), nil }

// UnmarshalText reads what ParseTime reads.
func (t *Time) UnmarshalText(text []byte) error {
	v, err := ParseTime(string(text))
	if err == nil {
		*t = v
	}
	return err
}

// FLOPS is an arithmetic speed in operations per second.
type FLOPS float64

// TFLOPS is 1e12 operations per second.
const TFLOPS FLOPS = 1e12

// String prints e.g. "989 TFLOPS".
func (f FLOPS) String() string { return digits(float64(f)/1e12) + " TFLOPS" }

// MarshalJSON writes the number of TFLOPS; the field that holds it says so in
// its name.
func (f FLOPS) MarshalJSON() ([]byte, error) { return json.Marshal(round9(float64(f) / 1e12)) }

// maxTFLOPS is far beyond any machine, and its square is still a number.
const maxTFLOPS = 1e18

// UnmarshalJSON reads a number of TFLOPS.
func (f *FLOPS) UnmarshalJSON(data []byte) error {
	var v float64
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	if v < 0 || v > maxTFLOPS {
		return fmt.Errorf("speed %s: out of range", data)
	}
	*f = FLOPS(v * 1e12)
	return nil
}

// MarshalText writes TFLOPS with their unit.
func (f FLOPS) MarshalText() ([]byte, error) {
	return []byte(digitsFull(float64(f)/1e12) + "TFLOPS"), nil
}

// UnmarshalText reads "989TFLOPS" or "1.2 PFLOPS".
func (f *FLOPS) UnmarshalText(text []byte) error {
	num, suffix, err := split(string(text))
	if err != nil {
		return fmt.Errorf("speed %q: %w", text, err)
	}
	mul, ok := map[string]float64{"GFLOPS": 1e9, "TFLOPS": 1e12, "PFLOPS": 1e15}[suffix]
	if !ok || num < 0 || num*mul > maxTFLOPS*1e12 {
		return fmt.Errorf("speed %q: expected a number with GFLOPS, TFLOPS or PFLOPS", text)
	}
	*f = FLOPS(num * mul)
	return nil
}

// round9 keeps nine significant digits: enough for any figure here, and free
// of the last-bit noise that makes golden files differ between processors.
func round9(v float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 9, 64), 64)
	return r
}

func digitsFull(v float64) string { return strconv.FormatFloat(round9(v), 'f', -1, 64) }
