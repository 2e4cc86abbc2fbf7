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
func (p Power) String() string {
	if v := float64(p); v >= 999.5 && v < 999.5e3 { // the k of kilo is small
		return digits(v/1e3) + " kW"
	}
	return scaled(float64(p), "W")
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
