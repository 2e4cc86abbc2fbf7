package cause

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"busbar.dev/doctor/told"
	"busbar.dev/internal/csvtable"
)

// Grade is how evidence shows a cause.
type Grade uint8

// Grades of evidence.
const (
	None     Grade = iota
	Suggests       // printed facts suggest it among other causes
	Agrees         // two independent facts agree on it
	States         // a printed line states it
	Expects        // nothing is wrong: it is as it should be
	Excludes       // what the cause needs is not there
)

// gradeNames are the grades in files.
var gradeNames = strings.Fields("nothing suggests agrees states expects excludes")

// usual is how often evidence of a grade names the cause where nobody tells anything: the default confidence of a
// cause, a user's own among them.
var usual = [...]float64{None: 0.5, Suggests: 0.5, Agrees: 0.7, States: 0.85, Expects: 0.5, Excludes: 0}

// Confidence is that of a finding that rests on printed facts alone.
func (g Grade) Confidence() float64 { return usual[g] }

// Features of a cause in a case; the names are those of weights.csv.
const (
	fNear     = iota // threads with this cause resemble what is told
	fWhy             // what was said of their cause and fix does
	fDoc             // the cause's own text does
	fSaid            // how people describe it does
	fTexts           // all of these together make its words likely
	fOften           // it was the cause of threads
	fSuggests        // printed facts, by grade
	fAgrees
	fStates
	fExpects
	fHelped  // its remedy worked
	fOther   // another's did, and not its own
	fVain    // its own was tried in vain, or was so before
	fUnknown // the bias of the hypothesis that it is none of these
	fOffset  // no features of a cause: with the slope they turn the odds of the first one into those that it is right
	fSlope
	features
)

var featureNames = strings.Fields("near why text said texts often suggests agrees states expects helped other-helped " +
	"in-vain unknown calibrate-offset calibrate-slope")

// Case is what is known of one fault.
type Case struct {
	Told    []told.Clause
	Shown   map[string]Grade // what detectors found
	Without string           // a thread to leave out of what was learned
}

// Hypothesis is a cause with how likely it is.
type Hypothesis struct {
	*Cause         // nil: none of those known
	P      float64 // of this one being the cause
	Tried  Tried
	Basis  *told.Clause // what the ledger rests on; nil: nothing
	score  float64
	x      [features]float64
}

// Model weighs causes.
type Model struct {
	Causes   []*Cause // those the model weighs, in the order of their names
	Detected []*Cause // those that evidence can show, each before what follows from it
	memory   *memory
	weights  [features]float64
}

// weightRow is a row of weights.csv.
type weightRow struct {
	Feature string  `csv:"feature"`
	Weight  float64 `csv:"weight"`
}

// New makes a model of the built-in causes and more of a user's, which replace those of the same name.
func New(more ...*Cause) (*Model, error) {
	list, err := builtin()
	if err != nil {
		return nil, err
	}
	byID := map[string]*Cause{}
	for _, c := range slices.Concat(list, more) {
		byID[c.ID] = c
	}
	m := &Model{Detected: rootsFirst(byID)}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		if c := byID[id]; !c.Consequence {
			m.Causes = append(m.Causes, c)
		}
	}
	weights, err := readTable[weightRow]("weights.csv")
	if err != nil {
		return nil, err
	}
	for _, r := range weights {
		i := slices.Index(featureNames, r.Feature)
		if i < 0 {
			return nil, fmt.Errorf("weights.csv: no feature %q", r.Feature)
		}
		m.weights[i] = r.Weight
	}
	rows, err := readTable[Row]("threads.csv")
	if err != nil {
		return nil, err
	}
	said, err := readTable[Row]("described.csv")
	if err != nil {
		return nil, err
	}
	m.memory = newMemory(rows, said, m.Causes)
	return m, nil
}

func readTable[T any](name string) ([]T, error) {
	text, err := data.ReadFile(name)
	if err != nil {
		return nil, err
	}
	rows, err := csvtable.Read[T](string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return rows, nil
}

// rootsFirst are the causes that evidence can show, each before what follows from it.
func rootsFirst(byID map[string]*Cause) (list []*Cause) {
	done := map[string]bool{}
	var visit func(id string)
	visit = func(id string) {
		c := byID[id]
		if c == nil || done[id] || len(c.Found) == 0 {
			return
		}
		done[id] = true
		for _, f := range slices.Sorted(slices.Values(c.Follows)) {
			visit(f)
		}
		list = append(list, c)
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		visit(id)
	}
	slices.Reverse(list)
	return list
}

// Consequence reports a finding that says what happened and not why.
func (m *Model) Consequence(id string) bool {
	return slices.ContainsFunc(m.Detected, func(c *Cause) bool { return c.ID == id && c.Consequence })
}

// Threshold is the confidence below which the cause is not known.
const Threshold = 0.3

// surest is the greatest confidence of a cause that nobody printed.
const surest = 0.95

// Weigh gives all hypotheses, the likeliest first; among them the one that it is none of the known causes.
func (m *Model) Weigh(c *Case) []Hypothesis {
	unknown := Hypothesis{}
	unknown.x[fUnknown] = 1
	list := append(m.features(c), unknown)
	most := math.Inf(-1)
	for i := range list {
		for k, w := range m.weights {
			list[i].score += float64(w * list[i].x[k])
		}
		most = max(most, list[i].score)
	}
	sum := 0.0
	for i := range list {
		list[i].P = math.Exp(list[i].score - most)
		sum += list[i].P
	}
	for i := range list {
		list[i].P /= sum
	}
	slices.SortStableFunc(list, func(a, b Hypothesis) int { return cmp.Compare(b.score, a.score) })
	m.calibrate(list)
	return list
}

// calibrate replaces the likelihood of the first cause by how often such an answer was right in threads left out. None
// of the others is above it.
func (m *Model) calibrate(list []Hypothesis) {
	first := slices.IndexFunc(list, func(h Hypothesis) bool { return h.Cause != nil })
	if first < 0 || m.weights[fSlope] == 0 {
		return
	}
	p := min(max(list[first].P, 1e-6), 1-1e-6)
	list[first].P = min(surest, 1/(1+math.Exp(-m.weights[fOffset]-float64(m.weights[fSlope]*math.Log(p/(1-p))))))
	for i := first + 1; i < len(list); i++ {
		list[i].P = min(list[i].P, list[first].P)
	}
}

func (m *Model) features(c *Case) []Hypothesis {
	list := make([]Hypothesis, 0, len(m.Causes)+1)
	near := m.memory.likeness(wordsOf(c.Told), c.Without)
	helped := false
	for _, x := range m.Causes {
		if x.Test == "" && !c.shows(x) || c.Shown[x.ID] == Excludes { // only printed facts can show it
			continue
		}
		list = append(list, Hypothesis{Cause: x})
		h := &list[len(list)-1]
		for k := range near {
			h.x[k] = near[k][x.ID]
		}
		h.Tried, h.Basis = x.ledger(c)
		switch h.Tried {
		case Helped:
			h.x[fHelped], helped = 1, true
		case InVain:
			h.x[fVain] = 1
		}
		for rule, g := range c.Shown {
			if g != None && g != Excludes && x.Finds(rule) {
				h.x[fSuggests+int(g-Suggests)] = 1
			}
		}
	}
	for i := range list {
		if helped && list[i].Tried != Helped {
			list[i].x[fOther] = 1
		}
	}
	return list
}

// LinePatterns are what causes look for in every line.
func (m *Model) LinePatterns() (list []*regexp.Regexp) {
	for _, x := range m.Detected {
		for i := range x.Found {
			for _, a := range x.Found[i].When.Atoms() {
				if a.Name == "line" && a.pattern != nil {
					list = append(list, a.pattern)
				}
			}
		}
	}
	return list
}

// rowsOfGrade is how many threads what is usual of a grade counts as.
const rowsOfGrade = 2

// Share is how often what shows a cause did so rightly among threads; of few, it is near what is usual of its grade.
func (m *Model) Share(c *Case, id string) float64 {
	line, n, right := id+" "+gradeNames[c.Shown[id]], float64(rowsOfGrade), rowsOfGrade*c.Shown[id].Confidence()
	for i := range m.memory.rows {
		if r := &m.memory.rows[i]; slices.Contains(r.Shown, line) && (c.Without == "" || r.Thread != c.Without) {
			n++
			if slices.Contains(r.Causes, id) {
				right++
			}
		}
	}
	return right / n
}
