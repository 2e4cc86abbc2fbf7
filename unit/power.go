package unit

import "fmt"

// Power is in watts.
type Power float64

// Kilowatt and Megawatt are larger powers.
const (
	Watt     Power = 1
	Kilowatt Power = 1e3
	Megawatt Power = 1e6
)

// String prints e.g. "700 W" or "11.2 MW".
func (p Power) String() string { return scaledSmall(float64(p), "W") }

// For is the energy that a power is over a time.
func (p Power) For(t Span) Energy { return Energy(float64(p) * float64(t)) }

// Energy is in joules, and printed in watt-hours as it is paid.
type Energy float64

// Watt-hours and their thousands.
const (
	WattHour     Energy = 3600
	KilowattHour Energy = 3.6e6
	MegawattHour Energy = 3.6e9
)

// KWh is the energy in kWh.
func (e Energy) KWh() float64 { return float64(e / KilowattHour) }

// MWh is the energy in MWh.
func (e Energy) MWh() float64 { return float64(e / MegawattHour) }

// String prints e.g. "12.3 MWh".
func (e Energy) String() string { return scaledSmall(float64(e/WattHour), "Wh") }

// scaledSmall is scaled with the k of kilo small, as watt-hours have it.
func scaledSmall(v float64, unit string) string {
	if v >= 999.5 && v < 999.5e3 {
		return digits(v/1e3) + " k" + unit
	}
	return scaled(v, unit)
}

// ParsePower reads "700W", "10.2 kW" or "1.5MW".
func ParsePower(s string) (Power, error) {
	num, suffix, err := split(s)
	if err != nil {
		return 0, fmt.Errorf("power %q: %w", s, err)
	}
	mul, ok := map[string]Power{"W": Watt, "kW": Kilowatt, "KW": Kilowatt, "MW": Megawatt}[suffix]
	if !ok || num < 0 || num > 1e12 {
		return 0, fmt.Errorf("power %q: expected a number with W, kW or MW", s)
	}
	return Power(num) * mul, nil
}
