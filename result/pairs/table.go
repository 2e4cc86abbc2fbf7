package pairs

import (
	"math"
	"slices"

	"busbar.dev/internal/stats"
	"busbar.dev/unit"
)

// Measure is what one direction of a pair showed.
type Measure struct {
	From    int       `json:"from"`
	To      int       `json:"to"`
	Rate    unit.Rate `json:"bandwidth_GBps"` // of a large message, alone; 0 unknown
	Both    unit.Rate `json:"both_GBps"`      // with the other direction at the same time; 0 unknown
	Latency unit.Time `json:"latency_s"`      // of a small message one way; 0 unknown
	// Segments of TCP that were sent, how many of them were lost, and the bytes that one may carry; 0 unknown.
	Segments int64  `json:"segments,omitzero"`
	Lost     int64  `json:"lost,omitzero"`
	MSS      int    `json:"mss_bytes,omitzero"`
	Failed   string `json:"failed,omitempty"` // why the pair was not measured to its end
}

// Table is a measured fleet: names of the ranks, and what their pairs showed.
type Table struct {
	Names []string
	// Hosts are where the ranks are, nil where every rank has one of its own. Pairs within a
	// host are compared with each other only, for they use no network.
	Hosts []string
	Cells []Measure
	// Scatter is how far two measurements of one pair are apart, in the middle, as a logarithm: of rate, both and latency.
	// 0 where none was measured twice.
	Scatter [3]float64
}

// together tells whether two ranks share a host.
func (t *Table) together(a, b int) bool {
	return a >= 0 && b >= 0 && a < len(t.Hosts) && b < len(t.Hosts) && t.Hosts[a] == t.Hosts[b]
}

// parts are the tables of pairs across hosts and of those within them, without the empty one.
func (t *Table) parts() []*Table {
	across, within := &Table{Names: t.Names, Hosts: t.Hosts, Scatter: t.Scatter},
		&Table{Names: t.Names, Scatter: t.Scatter}
	for _, c := range t.Cells {
		if t.together(c.From, c.To) {
			within.Cells = append(within.Cells, c)
		} else {
			across.Cells = append(across.Cells, c)
		}
	}
	var list []*Table
	for _, p := range []*Table{across, within} {
		if len(p.Cells) > 0 {
			list = append(list, p)
		}
	}
	return list
}

// value is one figure of a cell.
type value func(Measure) float64

// The figures that are looked at. All are made so that more is better, for an
// effect is a factor: latency counts by its inverse.
func rate(m Measure) float64 { return float64(m.Rate) }
func both(m Measure) float64 { return float64(m.Both) }
func speed(m Measure) float64 {
	if m.Latency <= 0 {
		return 0
	}
	return 1 / float64(m.Latency)
}

// effects are the parts of a table in logarithms: what is common to all pairs,
// what a rank adds as sender and as receiver, and what is left for the pair.
type effects struct {
	all     float64
	out, in []float64
	rest    map[[2]int]float64
}

// polish takes a table apart by medians (Tukey's median polish), which a few bad
// cells do not move.
func (t *Table) polish(of value) (effects, bool) {
	n := len(t.Names)
	e := effects{out: make([]float64, n), in: make([]float64, n), rest: map[[2]int]float64{}}
	for _, c := range t.Cells {
		if v := of(c); v > 0 && !math.IsInf(v, 0) && c.From >= 0 && c.To >= 0 && c.From < n && c.To < n && c.From != c.To {
			e.rest[[2]int{c.From, c.To}] = math.Log(v)
		}
	}
	if len(e.rest) < 2 {
		return e, false
	}
	type cell struct {
		at [2]int
		v  float64
	}
	cells := make([]cell, 0, len(e.rest)) // which are gone through much faster
	for k, v := range e.rest {
		cells = append(cells, cell{k, v})
	}
	rows, cols := make([][]float64, n), make([][]float64, n)
	for range 8 {
		for side, effect := range [][]float64{e.out, e.in} {
			lists := rows
			if side == 1 {
				lists = cols
			}
			for i := range lists {
				lists[i] = lists[i][:0]
			}
			for _, c := range cells {
				lists[c.at[side]] = append(lists[c.at[side]], c.v)
			}
			shift := make([]float64, n)
			for i := range lists {
				if len(lists[i]) > 0 {
					shift[i] = stats.Median(lists[i])
				}
			}
			for i := range cells {
				cells[i].v -= shift[cells[i].at[side]]
			}
			// Of who has no figure nothing is known, and nothing follows for the others.
			var known []float64
			for i := range effect {
				effect[i] += shift[i]
				if len(lists[i]) > 0 {
					known = append(known, effect[i])
				}
			}
			m := stats.Median(known)
			for i := range effect {
				if len(lists[i]) > 0 {
					effect[i] -= m
				}
			}
			e.all += m
		}
	}
	for _, c := range cells {
		e.rest[c.at] = c.v
	}
	return e, true
}

// spread is the robust deviation of a list around 0: 1.48 times the median of the
// absolute values.
func spread(list []float64) float64 {
	abs := make([]float64, len(list))
	for i, v := range list {
		abs[i] = math.Abs(v)
	}
	return 1.4826 * stats.Median(abs)
}

// Keep drops what is not of some rounds.
func (t *Table) Keep(rounds [][][2]int) {
	in := map[[2]int]bool{}
	for _, round := range rounds {
		for _, p := range round {
			in[p] = true
		}
	}
	t.Cells = slices.DeleteFunc(t.Cells, func(m Measure) bool { return !in[[2]int{min(m.From, m.To), max(m.From, m.To)}] })
}

// Better takes what another measurement of the same direction showed better, and what it counted.
func (m *Measure) Better(o Measure) {
	m.Rate, m.Both = max(m.Rate, o.Rate), max(m.Both, o.Both)
	m.Segments, m.Lost, m.MSS = m.Segments+o.Segments, m.Lost+o.Lost, max(m.MSS, o.MSS)
	if o.Failed == "" {
		m.Failed = ""
	}
	if m.Latency <= 0 || o.Latency > 0 && o.Latency < m.Latency {
		m.Latency = o.Latency
	}
}

// Better takes of every pair what it showed best, here or in another table of the same ranks: a fault is there every
// time, and what keeps a processor elsewhere is not.
func (t *Table) Better(other *Table) {
	at := map[[2]int]int{}
	for i, c := range t.Cells {
		at[[2]int{c.From, c.To}] = i
	}
	var apart [3][]float64
	for _, o := range other.Cells {
		i, ok := at[[2]int{o.From, o.To}]
		if !ok {
			t.Cells = append(t.Cells, o)
			continue
		}
		c := &t.Cells[i]
		for k, of := range []value{rate, both, speed} {
			if a, b := of(*c), of(o); a > 0 && b > 0 {
				apart[k] = append(apart[k], math.Abs(math.Log(a/b)))
			}
		}
		c.Better(o)
	}
	for k, list := range apart {
		if 2*len(list) > len(t.Cells) { // of a few, chosen because they stand out, nothing follows for the others
			t.Scatter[k] = max(t.Scatter[k], stats.Median(list))
		}
	}
}
