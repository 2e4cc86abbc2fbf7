package health

import (
	"math"
	"time"

	"busbar.dev/unit"
)

// Sample is what one direction of a pair showed in one sweep. The transport, the sweep, both nodes and the
// rail are its identity: a second one is ignored, but a figure replaces a failure.
type Sample struct {
	Sweep   string    `json:"sweep"` // all samples of one round of measuring
	Time    time.Time `json:"time"`
	From    string    `json:"from"`
	To      string    `json:"to"`
	By      string    `json:"by,omitempty"`         // the transport: rdma, nccl; empty is TCP
	Rail    string    `json:"rail,omitempty"`       // the NIC or plane; empty where unknown
	Rate    unit.Rate `json:"rate_GBps,omitempty"`  // 0 unknown
	Latency unit.Time `json:"latency_us,omitempty"` // 0 unknown
	Error   string    `json:"error,omitempty"`      // why the measurement failed
	// Setup is how the sweep was measured (the size of messages, bounds of the rate): sweeps with
	// the same words are compared with each other.
	Setup string `json:"setup,omitempty"`
}

// point is a sample as kept: eight bytes. Its time is that of its sweep.
type point struct {
	sweep         uint32
	rate, latency uint16 // see code
}

// A code is a logarithm in steps of 0.05 %, from 1 up; 0 is unknown, and lost as a rate says
// that the measurement failed.
const (
	perNat = 2000
	lost   = math.MaxUint16
)

func code(v float64) uint16 {
	if !(v > 0) {
		return 0
	}
	return uint16(min(max(math.Round(math.Log(v)*perNat), 0)+1, lost-1))
}

// logOf is the logarithm of a code's value.
func logOf(c uint16) float64 { return float64(c-1) / perNat }

// figure is one of the two that a sample has.
type figure int

const (
	rate figure = iota
	latency
	figures
)

func (f figure) String() string { return [...]string{"bandwidth", "latency"}[f] }

// of is a figure as a logarithm of which more is better; ok is false where it is unknown or
// the measurement failed.
func (p point) of(f figure) (v float64, ok bool) {
	if f == latency {
		if p.latency == 0 || p.rate == lost {
			return 0, false
		}
		return -logOf(p.latency), true
	}
	if p.rate == 0 || p.rate == lost {
		return 0, false
	}
	return logOf(p.rate), true
}

// series is the samples of a pair in one direction over one rail, in the order of their sweeps.
type series struct {
	pairKey
	base    [figures]float32 // see base
	rebase  int32            // samples to come before base is computed anew
	samples []point
}

// least is how many samples a pair keeps even where there are too many pairs.
const least = 16

// room is how many samples a pair may have now: a power of two.
func (h *History) room() int {
	n := int(h.opt.Memory) / 8 / max(len(h.series), 1)
	room := least
	for room*2 <= min(n, h.opt.Samples) {
		room *= 2
	}
	return room
}

// Add takes a sample of a pair. It is false for one that was known already, or that could
// not be kept: without sweep, time or names, beyond the bounds, or older than all that is kept.
func (h *History) Add(s Sample) bool {
	if s.By != "" {
		o := h.over(s.By)
		s.By = ""
		if o == nil {
			return h.no()
		}
		return o.Add(s)
	}
	from, ok1 := h.nodeOf(s.From)
	to, ok2 := h.nodeOf(s.To)
	if !ok1 || !ok2 || from == to || s.Sweep == "" || !known(s.Time) || len(s.Rail) > longest || len(s.Sweep) > longest ||
		len(s.Setup) > longest {
		return h.no()
	}
	p := point{rate: code(float64(s.Rate)), latency: code(float64(s.Latency))}
	if s.Error != "" {
		p = point{rate: lost}
	} else if p.rate == 0 && p.latency == 0 {
		return h.no()
	}
	rail := h.rails.of(s.Rail, mostRails)
	if rail < 0 {
		return h.no()
	}
	key := pairKey{from, to, rail}
	i, ok := h.index[key]
	if !ok {
		if len(h.series) >= h.opt.Series {
			return h.no()
		}
		i = int32(len(h.series))
		h.series = append(h.series, series{pairKey: key})
		h.index[key] = i
	}
	if p.sweep, ok = h.sweeps.of(s.Sweep, s.Setup, s.Time, h.opt.Sweeps); !ok {
		return h.no()
	}
	if !h.series[i].insert(&h.sweeps, p, h.room()) {
		return false
	}
	if s.Error != "" && (len(h.errors) < 4096 || h.errors[i] != "") {
		h.errors[i] = s.Error[:min(len(s.Error), 200)]
	}
	h.sweeps.at(p.sweep).dirty, h.stale = true, true
	return true
}

// mostRails bounds the names of NICs, which are the same on all nodes.
const mostRails = 64

// insert puts a sample in its place; false where it is there already.
func (s *series) insert(w *sweeps, p point, room int) bool {
	i := len(s.samples)
	for i > 0 && w.before(p.sweep, s.samples[i-1].sweep) {
		i--
	}
	if i > 0 && s.samples[i-1].sweep == p.sweep {
		if old := &s.samples[i-1]; old.rate == lost && p.rate != lost {
			*old = p
			return true
		}
		return false
	}
	s.thin(w, room-1)
	i = min(i, len(s.samples))
	for i > 0 && w.before(p.sweep, s.samples[i-1].sweep) {
		i--
	}
	if len(s.samples) == cap(s.samples) {
		s.samples = append(make([]point, 0, min(max(4, 2*cap(s.samples)), room)), s.samples...)
	}
	s.samples = append(s.samples, point{})
	copy(s.samples[i+1:], s.samples[i:])
	s.samples[i] = p
	s.rebase--
	return true
}

// thin drops every second sample of the older half until most are left, so that the recent
// past is whole and the distant one is sampled ever more thinly.
func (s *series) thin(w *sweeps, most int) {
	for len(s.samples) > most {
		old := max(len(s.samples)/2, 2)
		keep := s.samples[:0]
		for i, p := range s.samples {
			if i >= old || i%2 == 0 && w.holds(p.sweep) {
				keep = append(keep, p)
			}
		}
		s.samples = keep
	}
	if cap(s.samples) > 2*most+2 {
		s.samples = append(make([]point, 0, most+1), s.samples...)
	}
}
