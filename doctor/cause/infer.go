package cause

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Features of a cause in a case; the names are those of weights.csv.
const (
	fStrong      = iota // a strong sign is matched
	fSurprise           // how seldom other causes' threads match those, halved for each further one
	fWeak               // likewise of weak signs, and of strong ones whose words stand apart
	fHelped             // its remedy helped
	fOtherHelped        // another's remedy helped, and not its own
	fNoEffect           // its remedy had no effect
	fInOrder            // it is stated to be in order
	fSymptom            // its symptom is told of
	fNoSymptom          // only others are
	fWhere              // its circumstances are told of
	fElsewhere          // circumstances that exclude its own
	fUntold             // none of its circumstances is told of
	fWords              // words of its threads and its description
	fFamily             // words of threads of all causes of its area
	fNear               // its threads resemble what is told
	fWhy                // what was said of their cause and fix does
	fDoc                // its description does
	fPrior              // how often it was the cause
	fStates             // a detector: a printed line states it
	fAgrees             // a detector: two printed lines agree
	fSuggests           // a detector: printed lines suggest it among others
	fTold               // a detector: sentences speak for it
	fHint               // a detector: sentences suggest it among others
	fExpects            // a detector: nothing is wrong, this is expected
	fRecord             // by how much its evidence was right more often than other evidence of the grade
	fUnknown            // the bias of the hypothesis that it is none of these
	features
)

// FeatureNames are the names in weights.csv.
var FeatureNames = [features]string{
	"strong", "surprise", "weak", "helped", "other-helped", "no-effect", "in-order", "symptom", "other-symptom", "where",
	"elsewhere", "untold", "words", "family", "near", "why", "description", "prior",
	"states", "agrees", "suggests", "told", "hint", "expects", "record", "unknown",
}

// Grade is how a detector of package doctor knows what it says.
type Grade uint8

// Grades of detectors.
const (
	None     Grade = iota
	Hint           // sentences suggest it, among other things
	Says           // sentences speak for it
	Suggests       // printed lines suggest it, among other things
	Agrees         // two independent lines agree
	States         // a line states it
	Expects        // it is as it should be
)

// Case is what is known of one fault.
type Case struct {
	Told  *Told
	Rules map[string]Grade // what detectors found
	// Against are causes that figures rule out.
	Against []string
	// Answers are those to questions, by the question's name.
	Answers map[string]bool
	// Skipped are questions that nobody can answer.
	Skipped []string
}

// Hypothesis is a cause with how likely it is.
type Hypothesis struct {
	*Cause         // nil: none of those known
	P      float64 // of this one alone being the cause
	// Alone is how likely it is against unknown only: several lines of a log may state
	// several faults.
	Alone float64
	Basis []Observation // what speaks for it
	score float64
	named bool // a strong sign of it is there
}

// Model weighs causes.
type Model struct {
	causes   []*Cause
	detected []*Cause          // those that evidence can show, roots before what follows from them
	records  map[string]record // of evidence, by cause and grade
	grades   [Expects + 1]record
	weights  [features]float64
	counts   map[string]float64 // threads of other causes that match a sign
	memory   *memory
	// remedies are causes that something is known to help against.
	remedies []*Cause
	// offset and slope turn the odds of the first cause into those that it is right.
	offset, slope float64
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
	m := &Model{detected: rootsFirst(byID)}
	others := map[string]bool{} // whose evidence speaks for another cause
	for _, c := range byID {
		for _, r := range c.Rules {
			others[r] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		if c := byID[id]; !c.Consequence && (len(c.signs[strong]) > 0 || !others[id]) {
			m.causes = append(m.causes, c)
		}
	}
	if err := m.learned(); err != nil {
		return nil, err
	}
	return m, nil
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

// Detected are the causes that evidence can show, each before what follows from it.
func (m *Model) Detected() []*Cause { return m.detected }

// Consequence reports a finding that says what happened and not why.
func (m *Model) Consequence(id string) bool {
	return m != nil && slices.ContainsFunc(m.detected, func(c *Cause) bool { return c.ID == id && c.Consequence })
}

// Causes are those the model weighs, in the order of their names.
func (m *Model) Causes() []*Cause { return m.causes }

// Weigh gives all hypotheses, the likeliest first; among them the one that it is none of the known causes.
func (m *Model) Weigh(c *Case) []Hypothesis { return m.weigh(c, nil) }

// WeighLeftOut is Weigh for a thread that the model has learned from, as if it had not.
func (m *Model) WeighLeftOut(t *Thread) []Hypothesis { return m.weigh(&t.Case, t) }

// Name is the cause's, or unknown.
func (h *Hypothesis) Name() string {
	if h.Cause == nil {
		return "unknown"
	}
	return h.ID
}

func (m *Model) weigh(c *Case, without *Thread) []Hypothesis {
	list := make([]Hypothesis, 0, len(m.causes)+1)
	unknown := m.weights[fUnknown] + answered(c.Answers, nil)
	var l likeness
	if c.Told != nil && (without == nil || without.ready == nil) {
		l = m.memory.alike(c.Told, m.causes, without)
	}
	for i, x := range m.causes {
		h := Hypothesis{Cause: x, score: answered(c.Answers, x)}
		var f sparse
		if without != nil && without.ready != nil {
			f = without.ready.x[i]
		} else {
			dense := m.features(c, x, &l, without)
			f = sparsely(&dense)
		}
		h.score += f.dot(&m.weights)
		h.named = len(f) > 0 && f[0].i == fStrong
		list = append(list, h)
	}
	consequences(list)
	list = append(list, Hypothesis{score: unknown})
	most := slices.MaxFunc(list, func(a, b Hypothesis) int { return cmp.Compare(a.score, b.score) }).score
	sum := 0.0
	for i := range list {
		list[i].P = math.Exp(list[i].score - most)
		sum += list[i].P
		list[i].Alone = 1 / (1 + math.Exp(unknown-list[i].score))
	}
	for i := range list {
		list[i].P /= sum
	}
	slices.SortStableFunc(list, func(a, b Hypothesis) int { return cmp.Compare(b.score, a.score) })
	m.calibrate(list)
	for i := range list[:min(len(list), 10)] {
		if list[i].Cause != nil {
			list[i].Basis = basis(c, list[i].Cause)
		}
	}
	return list
}

// consequences puts a cause that is named before what it explains.
func consequences(list []Hypothesis) {
	for i := range list {
		h := &list[i]
		if h.Cause == nil || !h.named {
			continue
		}
		for _, id := range h.Explains {
			if j := slices.IndexFunc(list, func(o Hypothesis) bool { return o.Cause != nil && o.ID == id }); j >= 0 &&
				list[j].score > h.score {
				h.score, list[j].score = list[j].score, h.score
			}
		}
	}
}

// surest is the greatest confidence: of the answers that were surest, one in twenty was wrong.
const surest = 0.95

// calibrate replaces the likelihood of the first cause by how often such an answer was right in threads left out. None
// of the others is above it.
func (m *Model) calibrate(list []Hypothesis) {
	first := slices.IndexFunc(list, func(h Hypothesis) bool { return h.Cause != nil })
	if first < 0 || m.slope == 0 {
		return
	}
	p := min(max(list[first].P, 1e-6), 1-1e-6)
	list[first].P = min(surest, 1/(1+math.Exp(-m.offset-float64(m.slope*math.Log(p/(1-p))))))
	for i := first + 1; i < len(list); i++ {
		list[i].P = min(list[i].P, list[first].P)
	}
}

// features are those of one cause. without is a thread to leave out of what was learned; nil: none.
func (m *Model) features(c *Case, x *Cause, l *likeness, without *Thread) (f [features]float64) {
	m.signFeatures(&f, c.Told, x, without)
	if c.Told != nil {
		v := wordList()
		if len(x.Symptoms) > 0 && len(c.Told.symptoms) > 0 {
			if slices.ContainsFunc(x.Symptoms, func(s string) bool { return c.Told.symptoms[s] }) {
				f[fSymptom] = 1
			} else {
				f[fNoSymptom] = 1
			}
		}
		if slices.ContainsFunc(x.Where, func(s string) bool { return c.Told.tags[s] }) {
			f[fWhere] = 1
		} else if len(x.Where) > 0 {
			f[fUntold] = 1
		}
		for _, group := range v.exclusive {
			if excluded(group, x.Where, c.Told.tags) {
				f[fElsewhere] = 1
			}
		}
		f[fWords], f[fFamily] = l.likely[x.ID], l.family[x.Area]
		for k, i := range [kindsOfText]int{fNear, fWhy, fDoc} {
			f[i] = l.text[k][x.ID]
		}
	}
	f[fPrior] = m.memory.prior(x, without)
	found := false
	for rule, g := range c.Rules {
		if g != None && x.Finds(rule) {
			f[[...]int{0, fHint, fTold, fSuggests, fAgrees, fStates, fExpects}[g]] = 1
			if w := m.worth(rule, g, without); !found || w > f[fRecord] {
				f[fRecord] = w
			}
			found = true
		}
	}
	if slices.Contains(c.Against, x.ID) {
		f[fInOrder] = 1
	}
	if f[fInOrder] == 1 { // detectors of sentences know no polarity
		f[fStates], f[fAgrees], f[fSuggests] = 0, 0, 0
	}
	if f[fInOrder] == 1 || f[fNoEffect] == 1 {
		f[fTold], f[fHint], f[fRecord] = 0, 0, 0
	}
	if len(x.signs[strong]) == 0 { // a detector's own: nothing but the detector speaks for it
		for _, i := range []int{fWords, fFamily, fNear, fWhy, fDoc, fPrior} {
			f[i] = 0
		}
		if !found {
			f[fPrior] = never
		}
	}
	return f
}

// never is the prior of a detector's own cause where it finds nothing.
const never = -9

// excluded reports that a cause happens in circumstances of a group, and only others of it are told of.
func excluded(group, where []string, tags map[string]bool) bool {
	needs, other := false, false
	for _, g := range group {
		if slices.Contains(where, g) {
			if tags[g] {
				return false
			}
			needs = true
		} else if tags[g] {
			other = true
		}
	}
	return needs && other
}

func (m *Model) signFeatures(f *[features]float64, t *Told, x *Cause, without *Thread) {
	if t == nil {
		return
	}
	var found, faint []float64
	for i := range x.signs[strong] {
		s := &x.signs[strong][i]
		switch {
		case !s.in(t.all):
		case slices.ContainsFunc(t.Observations, func(o Observation) bool { return speaks(&o, x, s) }):
			f[fStrong] = 1
			found = append(found, m.surprise(x, s, without))
		default:
			faint = append(faint, m.surprise(x, s, without)/2)
		}
	}
	for i := range x.signs[weak] {
		s := &x.signs[weak][i]
		if s.in(t.all) && slices.ContainsFunc(t.Observations, func(o Observation) bool { return speaks(&o, x, s) }) {
			faint = append(faint, m.surprise(x, s, without))
		}
	}
	f[fSurprise], f[fWeak] = halving(found), halving(faint)
	helped := false
	for i := range t.Observations {
		o := &t.Observations[i]
		helped = helped || o.Polarity == Helped
		switch {
		case o.Polarity == Helped && anySign(x.signs[helps], o.norm):
			f[fHelped] = max(f[fHelped], m.narrow(o))
		case o.Polarity == NoEffect && anySign(x.signs[helps], o.norm):
			f[fNoEffect] = 1
		case anySign(x.signs[inOrder], o.norm), o.Polarity == InOrder && anySign(x.signs[strong], o.norm):
			f[fInOrder] = 1
		}
	}
	if helped && f[fHelped] == 0 {
		f[fOtherHelped] = 1
	}
}

// narrow is how few causes a remedy that helped speaks for: 1 for a single one, near 0 for all.
func (m *Model) narrow(o *Observation) float64 {
	if o.narrow == 0 {
		n := 1.0
		for _, c := range m.remedies {
			if anySign(c.signs[helps], o.norm) {
				n++
			}
		}
		o.narrow = max(0.05, 1-math.Log(n/2)/math.Log(float64(len(m.remedies)+1)))
	}
	return o.narrow
}

// speaks reports a clause that shows a sign: not one that says the cause is in order, and none of a remedy without
// effect.
func speaks(o *Observation, x *Cause, s *sign) bool {
	return (o.Polarity == Seen || o.Polarity == Helped) && s.in(o.norm) && !anySign(x.signs[inOrder], o.norm)
}

func anySign(list []sign, norm string) bool {
	return slices.ContainsFunc(list, func(s sign) bool { return s.in(norm) })
}

// halving adds values, the greatest in full and each further one half of the one before: signs of one cause depend on
// each other.
func halving(list []float64) float64 {
	slices.SortFunc(list, func(a, b float64) int { return cmp.Compare(b, a) })
	sum, part := 0.0, 1.0
	for _, v := range list {
		sum += float64(part * v)
		part /= 2
	}
	return sum
}

// surprise is how little a sign is expected with another cause, in nats.
func (m *Model) surprise(x *Cause, s *sign, without *Thread) float64 {
	k, all := m.counts[signName(x, s)], m.memory.all
	if without != nil {
		all--
		if k > 0 && !slices.Contains(without.Accept, x.ID) {
			k--
		}
	}
	return -math.Log((k + 1) / (all + 2))
}

// basis are the clauses that speak for a cause.
func basis(c *Case, x *Cause) []Observation {
	if c.Told == nil {
		return nil
	}
	var list []Observation
	for _, o := range c.Told.Observations {
		named := o.Polarity == Helped && anySign(x.signs[helps], o.norm)
		for _, k := range []int{strong, weak} {
			named = named || slices.ContainsFunc(x.signs[k], func(s sign) bool { return speaks(&o, x, &s) })
		}
		if named {
			list = append(list, o)
		}
	}
	return list
}
