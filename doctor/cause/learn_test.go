// Fitting is done by a test: the program ships what it wrote (weights.csv, signs.csv, threads.csv, records.csv).
package cause

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// first guesses of the weights, towards which the fit is pulled where threads say little. Their signs bind: a remedy
// without effect never speaks for its cause.
var guess = [features]float64{
	fStrong: 0.5, fSurprise: 0.7, fWeak: 0.3, fHelped: 1.5, fOtherHelped: -0.3, fNoEffect: -2, fInOrder: -7, fSymptom: 0.5,
	fNoSymptom: -0.5, fWhere: 0.3, fElsewhere: -1, fUntold: -0.3,
	fWords: 0.3, fFamily: 0.3, fNear: 2, fWhy: 2, fDoc: 2, fPrior: 0.5, fStates: 4, fAgrees: 2.5, fSuggests: 1, fTold: 1.5,
	fHint: 0.5, fExpects: 1.5, fRecord: 0.5, fUnknown: 3,
}

// binding are weights whose sign may not change.
var binding = [features]float64{
	fStrong: 1, fSurprise: 1, fWeak: 1, fHelped: 1, fOtherHelped: -1, fNoEffect: -1, fInOrder: -1, fSymptom: 1,
	fNoSymptom: -1, fWhere: 1, fElsewhere: -1, fUntold: -1, fWords: 1, fFamily: 1, fNear: 1, fWhy: 1, fDoc: 1, fPrior: 1,
	fStates: 1, fAgrees: 1, fSuggests: 1, fTold: 1, fHint: 1, fExpects: 1, fRecord: 1,
}

// least are weights of which something is known beyond the threads: what was tried in vain, or is in order, counts
// against.
var least = [features]float64{fNoEffect: 2, fInOrder: 7}

const (
	// pull is how strongly weights are held to the guess.
	pull = 1.0
	// strangers is the share of faults in the field whose cause is none of those known.
	strangers = 0.12
	// wrongCost is how much worse a wrong answer is than a right one is good: confidence errs to the low side, because the
	// misses of these threads were read when signs were written, and threads that nobody has seen are answered wrongly
	// more often.
	wrongCost = 3.5
)

func (m *Model) example(t *Thread, learnedFrom bool) example {
	var without *Thread
	if learnedFrom {
		without = t
	}
	e := example{weight: 1}
	l := m.memory.alike(t.Told, m.causes, without)
	for _, c := range m.causes {
		f := m.features(&t.Case, c, &l, without)
		e.x = append(e.x, sparsely(&f))
		e.right = append(e.right, slices.Contains(t.Accept, c.ID))
	}
	e.x = append(e.x, sparsely(&[features]float64{fUnknown: 1}))
	e.right = append(e.right, !slices.Contains(e.right, true))
	return e
}

// Ready computes the features of threads that the model has learned from, each left out of that.
func (m *Model) Ready(threads []*Thread) {
	for _, t := range threads {
		e := m.example(t, true)
		t.ready = &e
	}
}

// stranger is the same thread if nobody knew its cause.
func (e *example) stranger() example {
	s := example{weight: strangers}
	for i := range e.x {
		if !e.right[i] {
			s.x, s.right = append(s.x, e.x[i]), append(s.right, i == len(e.x)-1)
		}
	}
	return s
}

// Fit finds the weights under which the threads' causes are likeliest, each thread left out of what was counted. Trials
// are those that detectors were written for; they count for less.
func (m *Model) Fit(threads, trials []*Thread) {
	var list []example
	for i, t := range slices.Concat(threads, trials) {
		e := *t.ready
		e.weight = 1 - strangers
		s := e.stranger()
		if i >= len(threads) {
			e.weight *= trialWeight
			s.weight *= trialWeight
		}
		list = append(list, e, s)
	}
	m.weights = guess
	rate := 0.5 / float64(len(threads)+1)
	var speed [features]float64
	for range 250 {
		var g [features]float64
		for i := range list {
			list[i].gradient(&m.weights, &g)
		}
		for i := range g {
			g[i] -= pull * (m.weights[i] - guess[i])
			speed[i] = float64(0.9*speed[i]) + float64(rate*g[i])
			m.weights[i] += 0.3 * speed[i]
			if m.weights[i]*binding[i] < least[i] {
				m.weights[i], speed[i] = least[i]*binding[i], 0
			}
		}
	}
	m.temper(threads)
	m.platt(threads)
}

// platt fits offset and slope of the calibration by the answers to threads left out.
func (m *Model) platt(threads []*Thread) {
	m.offset, m.slope = 0, 0
	var odds []float64
	var right []bool
	for _, t := range threads {
		for _, h := range m.WeighLeftOut(t) {
			if h.Cause != nil {
				p := min(max(h.P, 1e-6), 1-1e-6)
				odds, right = append(odds, math.Log(p/(1-p))), append(right, slices.Contains(t.Accept, h.ID))
				break
			}
		}
	}
	a, b := 0.0, 1.0
	for range 2000 {
		ga, gb := -0.02*a, -2*(b-0.7) // towards a slope below one: signs and rules were written with some threads at hand
		for i, o := range odds {
			e := -1 / (1 + math.Exp(-a-float64(b*o)))
			if right[i] {
				e++
			} else {
				e *= wrongCost
			}
			ga += e
			gb += float64(e * o)
		}
		a += float64(0.01 * ga)
		b = max(0.2, b+float64(0.002*gb))
	}
	m.offset, m.slope = a, b
}

// temper scales all weights so that unread threads are likeliest: what trials and the guess make too sure is taken
// back.
func (m *Model) temper(threads []*Thread) {
	best, most, kept := 1.0, math.Inf(-1), m.weights
	for t := 0.4; t <= 1.21; t += 0.05 {
		for i := range m.weights {
			m.weights[i] = float64(kept[i] * t)
		}
		sum := 0.0
		for _, x := range threads {
			s := x.ready.stranger()
			sum += float64((1-strangers)*x.ready.logRight(&m.weights)) + float64(strangers*s.logRight(&m.weights))
		}
		if sum > most {
			best, most = t, sum
		}
	}
	for i := range m.weights {
		m.weights[i] = float64(kept[i] * best)
		if m.weights[i]*binding[i] < least[i] {
			m.weights[i] = least[i] * binding[i]
		}
	}
}

// logRight is the logarithm of the right hypotheses' probability.
func (e *example) logRight(w *[features]float64) float64 {
	all, right := 0.0, 0.0
	for i := range e.x {
		p := math.Exp(min(e.x[i].dot(w), 300))
		all += p
		if e.right[i] {
			right += p
		}
	}
	return math.Log(max(right/all, 1e-12))
}

// gradient adds that of the logarithm of the right hypotheses' probability.
func (e *example) gradient(w, g *[features]float64) {
	p := make([]float64, len(e.x))
	most := math.Inf(-1)
	for i := range e.x {
		p[i] = e.x[i].dot(w)
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
		for _, x := range e.x[i] {
			g[x.i] += float64(e.weight * by * x.v)
		}
	}
}

// Write writes what was learned as the files that New reads.
func (m *Model) Write(threads []*Thread, create func(name string) (io.WriteCloser, error)) error {
	rows := map[string][][]string{
		"weights.csv": {{"feature", "weight"}}, "threads.csv": {{"thread", "causes", "words", "why"}},
		"signs.csv": {{"sign", "threads"}}, "records.csv": {{"evidence", "shown", "right"}},
	}
	for i, name := range FeatureNames {
		rows["weights.csv"] = append(rows["weights.csv"], []string{name, strconv.FormatFloat(m.weights[i], 'f', 3, 64)})
	}
	rows["weights.csv"] = append(rows["weights.csv"], []string{
		"calibrate-offset", strconv.FormatFloat(m.offset, 'f', 3, 64),
	}, []string{"calibrate-slope", strconv.FormatFloat(m.slope, 'f', 3, 64)})
	for _, r := range rowsOf(threads) {
		rows["threads.csv"] = append(rows["threads.csv"], []string{r.Thread, strings.Join(r.Causes, "|"), r.Words, r.Why})
	}
	for _, r := range m.countSigns(threads) {
		rows["signs.csv"] = append(rows["signs.csv"], []string{r.Sign, strconv.FormatFloat(r.Threads, 'g', 4, 64)})
	}
	for _, r := range m.countRecords(threads) {
		rows["records.csv"] = append(rows["records.csv"], []string{
			r.Evidence, strconv.FormatFloat(r.Shown, 'g', 4, 64), strconv.FormatFloat(r.Right, 'g', 4, 64),
		})
	}
	for name, list := range rows {
		w, err := create(name)
		if err != nil {
			return err
		}
		c := csv.NewWriter(w)
		if err := c.WriteAll(list); err != nil {
			w.Close()
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
	}
	return nil
}

// Learn counts signs and keeps the words of threads.
func (m *Model) Learn(threads []*Thread) {
	m.takeRows(rowsOf(threads), m.countSigns(threads), m.countRecords(threads))
}

func rowsOf(threads []*Thread) (rows []threadRow) {
	for _, t := range threads {
		rows = append(rows, threadRow{t.ID, t.Accept, t.Told.stems, stemsOf(t.Why)})
	}
	return rows
}

func (m *Model) countSigns(threads []*Thread) (list []signRow) {
	for _, c := range m.causes {
		for _, kind := range []int{strong, weak} {
			for i := range c.signs[kind] {
				s := &c.signs[kind][i]
				k := 0.0
				for _, t := range threads {
					if !slices.Contains(t.Accept, c.ID) && t.shows(c, s) {
						k++
					}
				}
				name := signName(c, s)
				if k > 0 && !slices.ContainsFunc(list, func(r signRow) bool { return r.Sign == name }) {
					list = append(list, signRow{name, k})
				}
			}
		}
	}
	return list
}

// shows reports that a thread shows a sign of a cause, in one clause or over several.
func (t *Thread) shows(c *Cause, s *sign) bool {
	return s.in(t.Told.all) && (len(s.terms) > 1 ||
		slices.ContainsFunc(t.Told.Observations, func(o Observation) bool { return speaks(&o, c, s) }))
}

// countRecords counts what evidence showed in threads.
func (m *Model) countRecords(threads []*Thread) (rows []recordRow) {
	count := map[string]record{}
	for _, t := range threads {
		for id, g := range t.Rules {
			if g == None || m.Consequence(id) {
				continue
			}
			r := count[recordName(id, g)]
			r.addAnswers(m.outcome(t, id))
			count[recordName(id, g)] = r
		}
	}
	for name, r := range count {
		rows = append(rows, recordRow{name, r.shown, r.right})
	}
	slices.SortFunc(rows, func(a, b recordRow) int { return cmp.Compare(a.Evidence, b.Evidence) })
	return rows
}

// RecordTable says how often evidence of each grade was right.
func (m *Model) RecordTable() (text string) {
	for g, r := range m.grades {
		if r.shown > 0 {
			text += fmt.Sprintf("%-10s right in %.0f of %.0f: %.0f%%\n", gradeNames[g], r.right, r.shown, 100*r.right/r.shown)
		}
	}
	return text + fmt.Sprintf("%d pieces of evidence\n", len(slices.Collect(maps.Keys(m.records))))
}

// Score weighs threads. leftOut says that the model has learned from them, and that each is left out of that.
func (m *Model) Score(threads []*Thread, leftOut bool) (s Score) {
	for _, t := range threads {
		if leftOut {
			s.Add(m.WeighLeftOut(t), t.Accept)
		} else {
			s.Add(m.Weigh(&t.Case), t.Accept)
		}
	}
	return s
}

// Table prints the weights for review.
func (m *Model) Table() string {
	var b strings.Builder
	for i, name := range FeatureNames {
		fmt.Fprintf(&b, "%-14s %6.2f\n", name, m.weights[i])
	}
	fmt.Fprintf(&b, "%-14s %.2f + %.2f × log-odds\n", "calibration", m.offset, m.slope)
	return b.String()
}
