package lab

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"busbar.dev/unit"
)

// Scale is the factor between rates of the cluster and of the lab.
type Scale struct{ Num, Den float64 }

// parseScale reads 1/200 or 0.005.
func parseScale(s string) (Scale, error) {
	num, den, ok := strings.Cut(s, "/")
	a, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
	b := 1.0
	if err == nil && ok {
		b, err = strconv.ParseFloat(strings.TrimSpace(den), 64)
	}
	x := Scale{a, b}
	if err != nil || !(a > 0) || !(b > 0) || math.IsInf(a, 0) || math.IsInf(b, 0) || x.Value() > 1000 || x.Value() < 1e-9 {
		return Scale{}, fmt.Errorf("scale %.40q: expected a factor such as 1/200", s)
	}
	return x, nil
}

// Value is the factor.
func (s Scale) Value() float64 { return s.Num / s.Den }

func (s Scale) String() string {
	if s.Den == 1 {
		return strconv.FormatFloat(s.Num, 'g', -1, 64)
	}
	return strconv.FormatFloat(s.Num, 'g', -1, 64) + "/" + strconv.FormatFloat(s.Den, 'g', -1, 64)
}

// MarshalText and UnmarshalText use the form that ParseScale reads.
func (s Scale) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a scale.
func (s *Scale) UnmarshalText(b []byte) (err error) {
	*s, err = parseScale(string(b))
	return err
}

// What two processor cores push through sockets, bridges and shapers beside the
// collectives themselves, with room to spare: one NIC at full rate, and all together.
const (
	fastest  = unit.Rate(1e9 / 8)
	together = unit.Rate(4e9 / 8)
)

// fit is the scale at which a machine with two cores can be every node at once: one
// over a round number.
func (p *Plan) fit() Scale {
	top, sum := unit.Rate(0), unit.Rate(0)
	for i := range p.NICs {
		top = max(top, p.NICs[i].Rate)
		sum += p.NICs[i].Rate
	}
	return oneOver(max(float64(top/fastest), float64(sum/together)))
}

// oneOver is one over a round number that is no less than what is needed.
func oneOver(need float64) Scale {
	for den := 1.0; ; den *= 10 {
		for _, m := range []float64{1, 2, 4, 5, 8} {
			if den*m >= need*0.999 {
				return Scale{1, den * m}
			}
		}
	}
}

// least is a rate at which a full packet still takes less than a second.
const least = unit.Rate(64 << 10)

// shrink turns the cluster's rates into the lab's.
func (p *Plan) shrink(staging unit.Rate) error {
	f := unit.Rate(p.Scale.Value())
	p.Staging = staging * f
	low := unit.Rate(math.Inf(1))
	for i := range p.NICs {
		p.NICs[i].Rate *= f
		low = min(low, p.NICs[i].Rate)
	}
	for i := range p.Cables {
		p.Cables[i].Rate *= f
		low = min(low, p.Cables[i].Rate)
	}
	for i := range p.Inner {
		for k := range p.Inner[i].Links {
			p.Inner[i].Links[k].Rate *= f
		}
	}
	if p.Staging > 0 {
		low = min(low, p.Staging)
	}
	if low < least {
		return fmt.Errorf("scale %v makes the slowest link %v; at least %v is needed: choose a greater scale", p.Scale, low,
			least)
	}
	return nil
}
