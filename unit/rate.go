package unit

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Rate is a one-directional bandwidth in bytes per second.
type Rate float64

// GBps and Gbps make rates from the two figures people quote: 1e9 bytes per
// second and 1e9 bits per second.
const (
	GBps Rate = 1e9
	Gbps Rate = 1e9 / 8
)

var ratePrefix = map[string]float64{
	"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
	"KI": 1 << 10, "MI": 1 << 20, "GI": 1 << 30, "TI": 1 << 40,
}

// ParseRate reads "50GB/s", "50 GBps", "400Gb/s", "400 Gbps", "400Gbit/s" or
// "12.5GiB/s". A trailing "duplex" (or "bidirectional") says that the figure
// counts both directions; half of it is returned.
func ParseRate(s string) (Rate, error) {
	num, suffix, err := split(s)
	if err != nil {
		return 0, fmt.Errorf("rate %q: %w", s, err)
	}
	unit, duplex := suffix, false
	for _, word := range []string{"duplex", "bidirectional"} {
		// EqualFold on the tail, because lower-casing can change a text's length.
		if n := len(suffix) - len(word); n >= 0 && strings.EqualFold(suffix[n:], word) {
			unit, duplex = strings.TrimSpace(suffix[:n]), true
		}
	}
	mul, err := rateUnit(unit)
	if err != nil {
		return 0, fmt.Errorf("rate %q: %w", s, err)
	}
	if num < 0 {
		return 0, fmt.Errorf("rate %q: negative", s)
	}
	v := num * mul
	if duplex {
		v /= 2
	}
	if !rateInRange(v) {
		return 0, fmt.Errorf("rate %q: out of range", s)
	}
	return Rate(v), nil
}

// rateInRange bounds bytes per second by what can be meant: none, or one to 1e18.
func rateInRange(v float64) bool { return v == 0 || v >= 1 && v <= 1e18 }

func rateUnit(u string) (float64, error) {
	help := "use Gb/s (bits) or GB/s (bytes), e.g. 400Gb/s = 50GB/s"
	if u == "" {
		return 0, fmt.Errorf("no unit; %s", help)
	}
	base := u
	found := false
	for _, per := range []string{"/second", "/sec", "/s", "ps"} {
		if t, ok := strings.CutSuffix(base, per); ok {
			base, found = t, true
			break
		}
	}
	if !found {
		return 0, fmt.Errorf("unit %q is not a rate; %s", u, help)
	}
	bits := 1.0
	switch {
	case strings.HasSuffix(strings.ToLower(base), "bit"):
		base, bits = base[:len(base)-3], 8
	case strings.HasSuffix(base, "b"):
		base, bits = base[:len(base)-1], 8
	case strings.HasSuffix(base, "B"):
		base = base[:len(base)-1]
	default:
		return 0, fmt.Errorf("unit %q says neither bits nor bytes; %s", u, help)
	}
	mul, ok := ratePrefix[strings.ToUpper(base)]
	if !ok {
		return 0, fmt.Errorf("unknown unit %q; %s", u, help)
	}
	return mul / bits, nil
}

// String prints the rate in bytes per second, e.g. "50 GB/s".
func (r Rate) String() string { return scaled(float64(r), "B/s") }

// Bits prints the rate in bits per second, e.g. "400 Gb/s", as networks are
// quoted.
func (r Rate) Bits() string { return scaled(float64(r)*8, "b/s") }

// GBps is the rate in 1e9 bytes per second.
func (r Rate) GBps() float64 { return float64(r) / 1e9 }

// Gbps is the rate in 1e9 bits per second.
func (r Rate) Gbps() float64 { return float64(r) * 8 / 1e9 }

// MarshalText writes the rate with a unit that parses back exactly enough for
// a file that people edit.
func (r Rate) MarshalText() ([]byte, error) { return []byte(digitsFull(r.GBps()) + "GB/s"), nil }

// UnmarshalText reads what ParseRate reads.
func (r *Rate) UnmarshalText(text []byte) error {
	v, err := ParseRate(string(text))
	if err == nil {
		*r = v
	}
	return err
}

// MarshalJSON writes the number of GB/s; the field that holds it says so in
// its name.
func (r Rate) MarshalJSON() ([]byte, error) { return json.Marshal(round9(r.GBps())) }

// UnmarshalJSON reads a number of GB/s, or a text with a unit.
func (r *Rate) UnmarshalJSON(data []byte) error {
	if isText(data) {
		return fromText(data, r.UnmarshalText)
	}
	var f float64
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	if !rateInRange(f * 1e9) {
		return fmt.Errorf("rate %s: out of range", data)
	}
	*r = Rate(f * 1e9)
	return nil
}
