package doctor

import "math"

// What is known of sweeps before one is looked at: of the published ones (collectives.jsonl) 21 of 165 are known to be slow, and a fault makes a
// collective up to some thirty times as slow (sockets instead of RDMA).
const (
	slowShare   = 21.0 / 165
	greatestLog = 3.5
)

// expects is the density of a logarithm x of measured by predicted time if nothing is wrong: Student's with four degrees of freedom, because the
// model's errors on machines left out have such tails; nine of ten are within the error bar.
func expects(x, margin float64) float64 {
	s := math.Log(max(margin, 1.01)) / 2.132
	return 0.375 / s * math.Pow(1+x*x/(4*s*s), -2.5)
}

// likely is how likely something is wrong where a time is ratio times what it should be, and one of ten is off by more than margin.
func likely(ratio, margin float64) float64 {
	if ratio <= 1 || margin <= 0 {
		return 0
	}
	wrong := slowShare / greatestLog
	return math.Round(100*wrong/(wrong+(1-slowShare)*expects(math.Log(ratio), margin))) / 100
}

// repeats is how likely a repeated measurement is on the same side of a bound: within slack nine of ten times.
func repeats(ratio float64) float64 {
	return math.Round(50*(1+math.Erf(1.645*math.Log(ratio)/math.Log(slack)/math.Sqrt2))) / 100
}

// likely is that of a part of the curve. Where the machine was guessed, or such runs are off more than others, the bar is as wide as a wrong guess makes it.
func (s *Curve) likely(ratio, margin float64, unsure bool) float64 {
	if s.Guessed || unsure {
		margin *= veryFar
	}
	return likely(ratio, margin)
}

// marginOf is the error bar of a point; a curve that nothing predicts has the one of line rates.
func marginOf(p *CurvePoint) float64 {
	if p.Margin > 0 {
		return p.Margin
	}
	return ownMargin
}

// mechanism is a known reason for a peak, a row of mechanisms.csv: between which shares of the expected rate, or GB/s, it leaves it.
type mechanism struct {
	Name       string  `csv:"name"`
	Class      string  `csv:"class,optional"` // nodes: between nodes; else that of the GPUs' links
	LeastShare float64 `csv:"least_share,optional"`
	MostShare  float64 `csv:"most_share,optional"`
	LeastGBps  float64 `csv:"least_GBps,optional"`
	MostGBps   float64 `csv:"most_GBps,optional"`
	OneNIC     bool    `csv:"one_nic,optional"`
	Cause      string  `csv:"cause"`
	Fix        string  `csv:"fix"`
	low, high  float64
}

// likeliest is the mechanism under which a peak is likeliest, and its share of all: each gives any rate of its range alike, and is off
// beyond that as repeated measurements are.
func likeliest(list []mechanism, peak float64) (best *mechanism, share float64) {
	sum, most := 0.0, 0.0
	for i := range list {
		m := &list[i]
		if m.high <= m.low || m.low <= 0 {
			continue
		}
		off := max(0, math.Log(m.low/peak), math.Log(peak/m.high))
		p := math.Exp(-off*off/(2*math.Log(slack)*math.Log(slack))) / (math.Log(m.high/m.low) + math.Log(slack))
		if sum += p; p > most {
			best, most = m, p
		}
	}
	return best, most / sum
}
