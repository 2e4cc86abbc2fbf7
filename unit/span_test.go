package unit

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestParseSpan(t *testing.T) {
	for in, want := range map[string]Span{
		"90s": 90, "10min": 600, "10 m": 600, "2.5h": 9000, "54d": 54 * 86400, "5.8y": Span(5.8 * 365.25 * 86400), "0s": 0,
		"1w": 7 * Day, "250ms": 0.25, "40us": 40e-6, "40 µs": 40e-6, "5ns": 5e-9,
	} {
		if got, err := ParseSpan(in); err != nil || math.Abs(float64(got-want)) > 1e-12*max(1, float64(want)) {
			t.Errorf("ParseSpan(%q) = %g, %v; want %g", in, float64(got), err, float64(want))
		}
	}
	for _, in := range []string{"", "5", "-1h", "1 fortnight", "1e99y", "NaNs", "h"} {
		if v, err := ParseSpan(in); err == nil {
			t.Errorf("ParseSpan(%q) = %v, want an error", in, v)
		}
	}
	for s, want := range map[Span]string{
		0: "0 ms", 40e-6: "40 µs", 5e-9: "5 ns", -40e-6: "-40 µs", 0.25: "250 ms", 90: "90 s", 600: "10 min",
		3 * Hour: "3 h", 54 * Day: "54 days", 5.8 * Year: "5.8 years",
	} {
		if s.String() != want {
			t.Errorf("%g s prints as %s; want %s", float64(s), s, want)
		}
	}
}

// What is printed is read back to within its digits.
func TestSpanBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Span(math.Exp(rapid.Float64Range(math.Log(1e-3), math.Log(1e9)).Draw(t, "log")))
		back, err := ParseSpan(s.String())
		if err != nil || math.Abs(float64(back/s)-1) > 0.006 {
			t.Fatalf("%g s prints as %s, read back as %g, %v", float64(s), s, float64(back), err)
		}
	})
}

func TestPower(t *testing.T) {
	for in, want := range map[string]Power{"700W": 700, "10.2 kW": 10200, "1.5MW": 1.5e6} {
		if got, err := ParsePower(in); err != nil || got != want {
			t.Errorf("ParsePower(%q) = %g, %v", in, float64(got), err)
		}
	}
	for _, in := range []string{"", "700", "-1W", "1 horse", "1e300MW"} {
		if v, err := ParsePower(in); err == nil {
			t.Errorf("ParsePower(%q) = %v, want an error", in, v)
		}
	}
	if s := (11.2 * Megawatt).String(); s != "11.2 MW" {
		t.Error(s)
	}
	if s := (5 * Kilowatt).String(); s != "5 kW" {
		t.Error(s)
	}
}

func FuzzParseSpan(f *testing.F) {
	for _, s := range []string{"90s", "5.8y", "54 days", "1e3h", "-", "µs"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, err := ParseSpan(s); err == nil && !(v >= 0 && v <= maxSpan) {
			t.Fatalf("%q is %g", s, float64(v))
		}
		_, _ = ParsePower(s)
	})
}

// A volume at a rate is a span, and a short span is a time.
func TestVolume(t *testing.T) {
	v := Volume(1.5e9)
	if s := v.At(50 * GBps); s != 0.03 || s.Time() != 30*Millisecond || s.Time().Span() != s {
		t.Errorf("%v at 50 GB/s takes %v", v, s)
	}
	if v.String() != "1.5 GB" || v.GB() != 1.5 || v.Bytes() != 1_500_000_000 || Volume(1e30).Bytes() != 1<<62 {
		t.Errorf("%v, %g GB, %d bytes, %d", v, v.GB(), v.Bytes(), Volume(1e30).Bytes())
	}
}
