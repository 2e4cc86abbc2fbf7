package health

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"busbar.dev/finding"
	"busbar.dev/unit"
)

// Sample is what one direction of a pair showed in one sweep. The transport, the sweep, both nodes and the
// rail are its identity: a second one is ignored, but a figure replaces a failure.
type Sample struct {
	Sweep   string    `json:"sweep"` // all samples of one round of measuring
	Time    time.Time `json:"time"`
	From    string    `json:"from"`
	To      string    `json:"to"`
	By      string    `json:"by,omitempty"`        // the transport: rdma, nccl; empty is TCP
	Rail    string    `json:"rail,omitempty"`      // the NIC or plane; empty where unknown
	Rate    unit.Rate `json:"rate_GBps,omitempty"` // 0 unknown
	Latency unit.Time `json:"latency_s,omitempty"` // 0 unknown
	Error   string    `json:"error,omitempty"`     // why the measurement failed
	// Setup is how the sweep was measured (the size of messages, bounds of the rate): sweeps with
	// the same words are compared with each other.
	Setup string `json:"setup,omitempty"`
}

// table is what is known of pairs over one transport.
type table struct {
	*History
	rails   names
	series  []series
	index   map[pairKey]int32
	sweeps  sweeps
	classed [2]int // how many series and which version of places the classes are of
	stale   bool   // samples came since the last answer
	active  map[string]*raised
	whole   *finding.Finding // that the fleet became slower, as of the last answer
}

// pairKey is a pair in one direction over one rail.
type pairKey struct {
	from, to int32
	rail     int32
}

// series is the samples of a pair in one direction over one rail, in the order of their sweeps.
type series struct {
	pairKey
	class   int16 // see classify
	samples []point
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

// log is the logarithm of a sample's rate; ok is false where it is unknown or the measurement failed.
func (p point) log() (v float64, ok bool) { return logOf(p.rate), p.rate != 0 && p.rate != lost }

const (
	leastSamples = 16 // that a pair keeps even where there are too many pairs
	mostRails    = 64 // names of NICs, which are the same on all nodes
)

// room is how many samples a pair may have now.
func (t *table) room() int {
	return max(leastSamples, min(mostMemory/8/len(t.series), t.most.samples))
}

// Add takes a sample of a pair. It is false for one that was known already, or that could
// not be kept: without sweep, time or names, beyond the bounds, or older than all that is kept.
func (h *History) Add(s Sample) bool {
	t := h.over(s.By)
	from, ok1 := h.nodeOf(s.From)
	to, ok2 := h.nodeOf(s.To)
	if t == nil || !ok1 || !ok2 || from == to || s.Sweep == "" || !isTime(s.Time) ||
		max(len(s.Rail), len(s.Sweep), len(s.Setup)) > longest {
		return false
	}
	p := point{rate: code(float64(s.Rate)), latency: code(float64(s.Latency))}
	if s.Error != "" {
		p = point{rate: lost}
	}
	rail := t.rails.of(s.Rail, mostRails)
	if rail < 0 || p == (point{}) {
		return false
	}
	key := pairKey{from, to, rail}
	i, ok := t.index[key]
	if !ok {
		if len(t.series) >= t.most.series {
			return false
		}
		i = int32(len(t.series))
		t.series, t.index[key] = append(t.series, series{pairKey: key}), i
	}
	if p.sweep, ok = t.sweepOf(s); !ok || !t.series[i].insert(&t.sweeps, p, t.room()) {
		return false
	}
	if s.Error != "" {
		why := s.From + " to " + s.To + ": " + s.Error[:min(len(s.Error), 200)]
		h.node[from].failure, h.node[to].failure = why, why
	}
	t.sweeps.at(p.sweep).dirty, t.stale = true, true
	return true
}

// insert puts a sample in its place; false where it is there already.
func (s *series) insert(w *sweeps, p point, room int) bool {
	s.thin(room - 1)
	i := len(s.samples)
	for i > 0 && w.compare(p, s.samples[i-1]) < 0 {
		i--
	}
	if i > 0 && s.samples[i-1].sweep == p.sweep {
		better := s.samples[i-1].rate == lost && p.rate != lost
		if better {
			s.samples[i-1] = p
		}
		return better
	}
	s.samples = slices.Insert(s.samples, i, p)
	return true
}

// thin drops every second sample of the older half until most are left, so that the recent
// past is whole and the distant one is sampled ever more thinly.
func (s *series) thin(most int) {
	for len(s.samples) > most {
		old := max(len(s.samples)/2, 2)
		keep := s.samples[:0]
		for i, p := range s.samples {
			if i >= old || i%2 == 0 {
				keep = append(keep, p)
			}
		}
		s.samples = keep
	}
	if cap(s.samples) > 2*most+2 {
		s.samples = append(make([]point, 0, most+1), s.samples...)
	}
}

// sweep is one round of measuring pairs.
type sweep struct {
	id    string
	at    int64  // the time of its first sample, in ns
	order int32  // its place in time among those kept
	dirty bool   // samples came since the levels were computed
	setup string // how it was measured, of its first sample
	// level is the logarithm that a class shows in this sweep, by class; NaN where it was not measured. See levels.
	level  []float32
	expect []float32 // what pairs of a class should show, see expect
}

// sweeps are numbered as they come; those before base are forgotten.
type sweeps struct {
	list   []*sweep
	base   uint32
	byID   map[string]uint32
	oldest int64    // nothing older is taken back
	order  []*sweep // all in the order of time, see settle
}

func (w *sweeps) at(i uint32) *sweep { return w.list[i-w.base] }

// last are the newest n.
func (w *sweeps) last(n int) []*sweep { return w.order[max(0, len(w.order)-n):] }

// compare orders the sweeps of samples by time, and those of one time as they came.
func (w *sweeps) compare(a, b point) int {
	return cmp.Or(cmp.Compare(w.at(a.sweep).at, w.at(b.sweep).at), cmp.Compare(a.sweep, b.sweep))
}

// sweepOf is the number of a sample's sweep, which is made where it is new.
func (t *table) sweepOf(s Sample) (i uint32, ok bool) {
	w, at := &t.sweeps, s.Time.UnixNano()
	if i, ok = w.byID[s.Sweep]; ok {
		return i, true
	}
	if at <= w.oldest && w.base > 0 {
		return 0, false
	}
	if n := max(t.most.sweeps/4, 1); len(w.list) >= t.most.sweeps { // those that came first are forgotten
		for _, old := range w.list[:n] {
			delete(w.byID, old.id)
			w.oldest = max(w.oldest, old.at)
		}
		w.list = slices.Delete(w.list, 0, n)
		w.base += uint32(n)
		for k := range t.series {
			r := &t.series[k]
			r.samples = slices.DeleteFunc(r.samples, func(p point) bool { return p.sweep < w.base })
		}
	}
	i = w.base + uint32(len(w.list))
	w.list = append(w.list, &sweep{id: s.Sweep, at: at, setup: s.Setup})
	w.byID[s.Sweep] = i
	return i, true
}

// settle brings sweeps in the order of time.
func (t *table) settle() {
	t.sweeps.order = slices.Clone(t.sweeps.list)
	slices.SortStableFunc(t.sweeps.order, func(a, b *sweep) int { return cmp.Compare(a.at, b.at) })
	for k, s := range t.sweeps.order {
		s.order = int32(k)
	}
}

// Point is a kept sample of a pair, to the nearest 0.05 %, with the time of its sweep.
type Point struct {
	Sweep   string    `json:"sweep"`
	Time    time.Time `json:"at"`
	Rate    unit.Rate `json:"rate_GBps,omitzero"`
	Latency unit.Time `json:"latency_s,omitzero"`
	Failed  bool      `json:"failed,omitempty"`
	Setup   string    `json:"setup,omitempty"` // how its sweep was measured
}

// Way is a transport and a rail over which a pair was measured.
type Way struct {
	By   string `json:"by,omitempty"`   // empty: TCP
	Rail string `json:"rail,omitempty"` // empty: not told
}

// Ways are those of a pair in one direction, in a fixed order.
func (h *History) Ways(from, to string) (list []Way) {
	for _, by := range slices.Sorted(maps.Keys(h.tables)) {
		for _, rail := range slices.Sorted(slices.Values(h.tables[by].rails.list)) {
			if way := (Way{by, rail}); h.find(from, to, way) != nil {
				list = append(list, way)
			}
		}
	}
	return list
}

// find is a series that has samples, else nil.
func (h *History) find(from, to string, over Way) *series {
	t := h.tables[over.By]
	if t == nil {
		return nil
	}
	a, ok1 := h.nodes.num[from]
	b, ok2 := h.nodes.num[to]
	r, ok3 := t.rails.num[over.Rail]
	i, ok4 := t.index[pairKey{a, b, r}]
	if !ok1 || !ok2 || !ok3 || !ok4 || len(t.series[i].samples) == 0 {
		return nil
	}
	return &t.series[i]
}

// Pair is what is kept of a pair in one direction, oldest first.
func (h *History) Pair(from, to string, over Way) (list []Point) {
	s := h.find(from, to, over)
	if s == nil {
		return []Point{}
	}
	for _, p := range s.samples {
		w := h.tables[over.By].sweeps.at(p.sweep)
		out := Point{Sweep: w.id, Time: stamp(w.at), Failed: p.rate == lost, Setup: w.setup}
		if v, ok := p.log(); ok {
			out.Rate = unit.Rate(math.Exp(v))
		}
		if p.latency != 0 {
			out.Latency = unit.Time(math.Exp(logOf(p.latency)))
		}
		list = append(list, out)
	}
	return list
}

func stamp(ns int64) time.Time { return time.Unix(0, ns).UTC() }
