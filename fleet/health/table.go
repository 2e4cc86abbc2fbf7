package health

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
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
	By      string    `json:"by,omitempty"`         // the transport: rdma, nccl; empty is TCP
	Rail    string    `json:"rail,omitempty"`       // the NIC or plane; empty where unknown
	Rate    unit.Rate `json:"rate_GBps,omitempty"`  // 0 unknown
	Latency unit.Time `json:"latency_us,omitempty"` // 0 unknown
	Error   string    `json:"error,omitempty"`      // why the measurement failed
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
	errors  map[int32]string // the last error of a series
	sweeps  sweeps
	classed [2]int // how many series and which version of places the classes are of
	stale   bool   // samples came since the last answer
	active  map[string]*raised
	whole   *finding.Finding // that the fleet became slower, as of the last answer
	daily   dailies
}

// pairKey is a pair in one direction over one rail.
type pairKey struct {
	from, to int32
	rail     int32
}

// series is the samples of a pair in one direction over one rail, in the order of their sweeps.
type series struct {
	pairKey
	base    [figures]float32 // see rebase
	rebase  int16            // samples to come before base is computed anew
	class   int16            // see classify
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
	switch {
	case p.rate == lost:
		return 0, false
	case f == latency:
		return -logOf(p.latency), p.latency != 0
	}
	return logOf(p.rate), p.rate != 0
}

const (
	leastSamples = 16 // that a pair keeps even where there are too many pairs
	mostRails    = 64 // names of NICs, which are the same on all nodes
	mostErrors   = 4096
)

// room is how many samples a pair may have now: a power of two.
func (t *table) room() int {
	n := min(int(t.opt.Memory)/8/max(len(t.series), 1), t.opt.Samples)
	room := leastSamples
	for room*2 <= n {
		room *= 2
	}
	return room
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
	i, ok := t.seriesOf(pairKey{from, to, rail})
	if !ok {
		return false
	}
	if p.sweep, ok = t.sweeps.of(s, t.opt.Sweeps); !ok || !t.series[i].insert(&t.sweeps, p, t.room()) {
		return false
	}
	if s.Error != "" && (len(t.errors) < mostErrors || t.errors[i] != "") {
		t.errors[i] = s.Error[:min(len(s.Error), 200)]
	}
	t.sweeps.at(p.sweep).dirty, t.stale = true, true
	return true
}

// seriesOf is the number of a series, which is made where it is new.
func (t *table) seriesOf(key pairKey) (i int32, ok bool) {
	i, ok = t.index[key]
	if !ok && len(t.series) < t.opt.Series {
		i, ok = int32(len(t.series)), true
		t.series = append(t.series, series{pairKey: key})
		t.index[key] = i
	}
	return i, ok
}

// insert puts a sample in its place; false where it is there already.
func (s *series) insert(w *sweeps, p point, room int) bool {
	place := func() int {
		i := len(s.samples)
		for i > 0 && w.compare(p, s.samples[i-1]) < 0 {
			i--
		}
		return i
	}
	if i := place() - 1; i >= 0 && s.samples[i].sweep == p.sweep {
		better := s.samples[i].rate == lost && p.rate != lost
		if better {
			s.samples[i] = p
		}
		return better
	}
	s.thin(room - 1)
	s.samples = slices.Insert(s.samples, place(), p)
	s.rebase--
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
	at    int64  // the earliest time of its samples, in ns
	order int32  // its place in time among those kept
	dirty bool   // samples came since the levels were computed
	setup string // how it was measured, of its first sample
	// level is the logarithm that a class shows in this sweep, by figure and class; NaN
	// where it was not measured. See levels.
	level  [figures][]float32
	expect [figures][]float32 // what pairs of a class should show, see expect
	pairs  []int32            // that have a rate, by class
}

// sweeps are numbered as they come; those before base are forgotten.
type sweeps struct {
	list   []*sweep
	base   uint32
	byID   map[string]uint32
	oldest int64    // nothing older is taken back
	moved  bool     // sweeps changed places or were forgotten: samples are to be sorted again
	order  []*sweep // all in the order of time, see settle
}

func (w *sweeps) at(i uint32) *sweep { return w.list[i-w.base] }

func (w *sweep) compare(o *sweep) int {
	return cmp.Or(cmp.Compare(w.at, o.at), strings.Compare(w.id, o.id))
}

// compare orders the sweeps of samples by time; what is forgotten came first.
func (w *sweeps) compare(a, b point) int {
	if min(a.sweep, b.sweep) < w.base {
		return cmp.Compare(a.sweep, b.sweep)
	}
	return w.at(a.sweep).compare(w.at(b.sweep))
}

// of is the number of a sample's sweep, which is made where it is new.
func (w *sweeps) of(s Sample, most int) (i uint32, ok bool) {
	at := s.Time.UnixNano()
	if i, ok = w.byID[s.Sweep]; ok {
		if old := w.at(i); at < old.at {
			old.at, w.moved = at, true
		}
		return i, true
	}
	if at <= w.oldest && w.base > 0 {
		return 0, false
	}
	if n := max(most/4, 1); len(w.list) >= most { // those that came first are forgotten
		for _, old := range w.list[:n] {
			delete(w.byID, old.id)
			w.oldest = max(w.oldest, old.at)
		}
		w.list = slices.Delete(w.list, 0, n)
		w.base, w.moved = w.base+uint32(n), true
	}
	i = w.base + uint32(len(w.list))
	w.list = append(w.list, &sweep{id: s.Sweep, at: at, setup: s.Setup})
	w.byID[s.Sweep] = i
	return i, true
}

// settle brings sweeps in the order of time, and samples in that of their sweeps.
func (t *table) settle() {
	w := &t.sweeps
	w.order = slices.SortedFunc(slices.Values(w.list), (*sweep).compare)
	for k, s := range w.order {
		s.order = int32(k)
	}
	for i := 0; w.moved && i < len(t.series); i++ {
		r := &t.series[i]
		r.samples = slices.DeleteFunc(r.samples, func(p point) bool { return p.sweep < w.base })
		slices.SortStableFunc(r.samples, w.compare)
	}
	w.moved = false
}

// Point is a kept sample of a pair, to the nearest 0.05 %, with the time of its sweep.
type Point struct {
	Sweep   string    `json:"sweep"`
	Time    time.Time `json:"at"`
	Rate    unit.Rate `json:"rate_GBps,omitempty"`
	Latency unit.Time `json:"latency_us,omitempty"`
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
func (h *History) Pair(from, to string, over Way) []Point {
	s := h.find(from, to, over)
	if s == nil {
		return nil
	}
	t := h.tables[over.By]
	t.settle()
	return t.points(s)
}

// points are the samples of a series as others see them.
func (t *table) points(s *series) (list []Point) {
	for _, p := range s.samples {
		w := t.sweeps.at(p.sweep)
		out := Point{Sweep: w.id, Time: stamp(w.at), Failed: p.rate == lost, Setup: w.setup}
		if v, ok := p.of(rate); ok {
			out.Rate = unit.Rate(math.Exp(v))
		}
		if v, ok := p.of(latency); ok {
			out.Latency = unit.Time(math.Exp(-v))
		}
		list = append(list, out)
	}
	return list
}

func stamp(ns int64) time.Time { return time.Unix(0, ns).UTC() }
