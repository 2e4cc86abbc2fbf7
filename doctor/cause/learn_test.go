// Fitting is done by a test: the program ships what it wrote (weights.csv, threads.csv).
package cause

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Thread is a case whose cause is known.
type Thread struct {
	*Case
	Row
}

// RowOf is a thread as it is remembered.
func RowOf(id string, causes []string, c *Case, why string) Row {
	return Row{id, causes, wordsOf(c.Told), Words(why), c.lines()}
}

// guess are the weights towards which the fit is pulled where threads say little.
var guess = [features]float64{
	fNear: 3, fWhy: 2, fDoc: 3, fSaid: 2, fTexts: 1, fOften: 0.2, fSuggests: 1, fAgrees: 2.5, fStates: 4, fExpects: 1.5,
	fHelped:  1.5,
	fOther:   -0.3,
	fVain:    -12,
	fUnknown: 3,
}

// binding are weights whose sign may not change.
var binding = [features]float64{
	fNear: 1, fWhy: 1, fDoc: 1, fSaid: 1, fTexts: 1, fOften: 1, fSuggests: 1, fAgrees: 1, fStates: 1, fExpects: 1,
	fHelped: 1,
	fOther:  -1,
}

const (
	pull      = 1.0  // towards the guess
	strangers = 0.12 // the share of faults in the field whose cause is none of those known
	wrongCost = 3.0  // how much worse a wrong answer is than a right one is good
)

// example is a thread with its features, ready to be fitted.
type example struct {
	x      [][features]float64
	right  []bool
	weight float64
}

// Remember replaces what was learned.
func (m *Model) Remember(threads []Thread) {
	var rows []Row
	for _, t := range threads {
		rows = append(rows, t.Row)
	}
	m.memory = newMemory(rows, m.memory.said, m.Causes)
}

func (m *Model) example(t *Thread) example {
	c := *t.Case
	c.Without = t.Row.Thread
	e := example{weight: 1 - strangers}
	for _, h := range m.features(&c) {
		e.x, e.right = append(e.x, h.x), append(e.right, slices.Contains(t.Causes, h.ID))
	}
	unknown := [features]float64{fUnknown: 1}
	e.x, e.right = append(e.x, unknown), append(e.right, !slices.Contains(e.right, true))
	return e
}

// stranger is the same thread if nobody knew its cause.
func (e *example) stranger() example {
	s := example{weight: strangers}
	for i := range e.x {
		if !e.right[i] || i == len(e.x)-1 {
			s.x, s.right = append(s.x, e.x[i]), append(s.right, i == len(e.x)-1)
		}
	}
	return s
}

// gradient adds that of the logarithm of the right hypotheses' probability.
func (e *example) gradient(w, g *[features]float64) {
	p := make([]float64, len(e.x))
	most := math.Inf(-1)
	for i := range e.x {
		for k := range w {
			p[i] += w[k] * e.x[i][k]
		}
		most = max(most, p[i])
	}
	all, right := 0.0, 0.0
	for i := range p {
		p[i] = math.Exp(p[i] - most)
		all += p[i]
		if e.right[i] {
			right += p[i]
		}
	}
	for i := range p {
		by := -p[i] / all
		if e.right[i] {
			by += p[i] / right
		}
		if by *= e.weight; math.Abs(by) < 1e-7 {
			continue
		}
		for k := range g {
			g[k] += by * e.x[i][k]
		}
	}
}

// Fit finds the weights under which the threads' causes are likeliest, each thread left out of what is remembered.
func (m *Model) Fit(threads []Thread) {
	var list []example
	for i := range threads {
		e := m.example(&threads[i])
		list = append(list, e, e.stranger())
	}
	m.weights = guess
	rate := 0.5 / float64(len(threads)+1)
	var speed [features]float64
	for range 120 {
		var g [features]float64
		for i := range list {
			list[i].gradient(&m.weights, &g)
		}
		g[fVain] = 0 // threads say that who tries a remedy is near its cause; that it did not help is believed all the same
		for i := range g {
			g[i] -= pull * (m.weights[i] - guess[i])
			speed[i] = 0.9*speed[i] + rate*g[i]
			m.weights[i] += 0.3 * speed[i]
			if m.weights[i]*binding[i] < 0 {
				m.weights[i], speed[i] = 0, 0
			}
		}
	}
}

// Platt fits offset and slope of the calibration by the first answers to cases that the model has not learned from.
func (m *Model) Platt(cases []Thread) {
	m.weights[fOffset], m.weights[fSlope] = 0, 0
	var odds []float64
	var right []bool
	for i := range cases {
		c := *cases[i].Case
		c.Without = cases[i].Row.Thread
		for _, h := range m.Weigh(&c) {
			if h.Cause != nil {
				p := min(max(h.P, 1e-6), 1-1e-6)
				odds, right = append(odds, math.Log(p/(1-p))), append(right, slices.Contains(cases[i].Causes, h.ID))
				break
			}
		}
	}
	a, b := 0.0, 1.0
	for range 4000 {
		ga, gb := -0.02*a, -2*(b-0.8)
		for i, o := range odds {
			e := -1 / (1 + math.Exp(-a-b*o))
			if right[i] {
				e++
			} else {
				e *= wrongCost
			}
			ga, gb = ga+e, gb+e*o
		}
		rate := 1 / float64(len(odds))
		a, b = a+0.3*rate*ga, max(0.2, b+0.03*rate*gb)
	}
	m.weights[fOffset], m.weights[fSlope] = a, b
}

// Write writes what was learned as the files that New reads.
func (m *Model) Write(threads []Thread, create func(name string) (io.WriteCloser, error)) error {
	weights := [][]string{{"feature", "weight"}}
	for i, name := range featureNames {
		weights = append(weights, []string{name, strconv.FormatFloat(m.weights[i], 'f', 3, 64)})
	}
	rows := [][]string{{"words", "causes", "why", "shown"}}
	for _, t := range threads {
		if t.Words != "" {
			rows = append(rows, []string{t.Words, strings.Join(t.Causes, "|"), t.Why, strings.Join(t.Row.Shown, "|")})
		}
	}
	for name, list := range map[string][][]string{"weights.csv": weights, "threads.csv": rows} {
		w, err := create(name)
		if err != nil {
			return err
		}
		if err := csv.NewWriter(w).WriteAll(list); err != nil {
			w.Close()
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
	}
	return nil
}

// Table prints the weights for review.
func (m *Model) Table() string {
	var b strings.Builder
	for i, name := range featureNames {
		fmt.Fprintf(&b, "%-14s %6.2f\n", name, m.weights[i])
	}
	return b.String()
}
