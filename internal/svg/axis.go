package svg

import "math"

// Axis maps values to a direction of a picture.
type Axis struct {
	log       bool
	low, High float64 // values
	from, to  float64 // where they lie
	Ticks     []float64
}

// At is where a value lies.
func (a *Axis) At(v float64) float64 {
	low, high := a.low, a.High
	if a.log {
		v, low, high = math.Log2(max(v, a.low/2)), math.Log2(low), math.Log2(high)
	}
	return a.from + (v-low)/(high-low)*(a.to-a.from)
}

// PowerAxis goes in powers of a base, from the one below the values to the one above, with as many ticks as have room.
func PowerAxis(base, low, high, from, to float64) Axis {
	const near = 1e-9 // so much a logarithm may be off
	first := math.Floor(math.Log2(low)/math.Log2(base) + near)
	last := max(first+1, math.Ceil(math.Log2(high)/math.Log2(base)-near))
	a := Axis{log: true, low: math.Pow(base, first), High: math.Pow(base, last), from: from, to: to}
	for e := first; e <= last; e += math.Ceil((last - first) / 8) {
		a.Ticks = append(a.Ticks, math.Pow(base, e))
	}
	return a
}

// EvenAxis goes from zero in round steps.
func EvenAxis(high, from, to float64) Axis {
	step := math.Pow(10, math.Floor(math.Log10(high)))
	for _, part := range []float64{2, 1, 0.5, 0.2} {
		if high/(step*part) >= 5 || part == 0.2 {
			step *= part
			break
		}
	}
	n := math.Ceil(high/step - 1e-9)
	a := Axis{High: n * step, from: from, to: to}
	for i := range int(n) + 1 {
		a.Ticks = append(a.Ticks, float64(i)*step)
	}
	return a
}
