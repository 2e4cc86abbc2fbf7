package cause

import (
	"math"
	"slices"
)

// recordRow is a row of records.csv: how often evidence showed a cause, and how often that was the cause.
type recordRow struct {
	Evidence string  `csv:"evidence"` // cause/grade
	Shown    float64 `csv:"shown"`
	Right    float64 `csv:"right"`
}

// record counts what evidence was worth. Trials, which evidence was written for, count for less than threads.
type record struct{ shown, right float64 }

func (r *record) addAnswers(by, right float64) {
	r.shown += by
	r.right += right
}

// few is how many threads' worth the grade counts in the record of one piece of evidence.
const few = 4.0

// gradeNames are the grades in records.csv.
var gradeNames = [...]string{
	None: "none", Hint: "hint", Says: "told", Suggests: "suggests", Agrees: "agrees", States: "states", Expects: "expects",
}

func recordName(id string, g Grade) string { return id + "/" + gradeNames[g] }

// trialWeight is how much a trial counts beside a thread.
const trialWeight = 0.25

// gradePrior is one thread's worth of record that each grade begins with.
const gradePrior = 0.5

// share is how often evidence of a grade was right: its own record, drawn towards that of all evidence of the grade.
func (m *Model) share(id string, g Grade, without *Thread) (own, grade float64) {
	r, all := m.records[recordName(id, g)], m.grades[g]
	if without != nil && without.Rules[id] == g {
		by, right := m.outcome(without, id)
		r.addAnswers(-by, -right)
		all.addAnswers(-by, -right)
	}
	grade = (all.right + gradePrior) / (all.shown + 2*gradePrior)
	return (max(r.right, 0) + float64(few*grade)) / (max(r.shown, 0) + few), grade
}

// Record is how often a finding was right that rests on evidence of a grade.
func (m *Model) Record(id string, g Grade) float64 {
	own, _ := m.share(id, g, nil)
	return own
}

// worth is by how much the odds of a piece of evidence exceed those of its grade. A poor record counts where it is
// long: in a short one the thread that is left out decides.
func (m *Model) worth(id string, g Grade, without *Thread) float64 {
	own, grade := m.share(id, g, without)
	w := math.Log(own/(1-own)) - math.Log(grade/(1-grade))
	if m.records[recordName(id, g)].shown < 2*few {
		return max(w, 0)
	}
	return w
}

// outcome is how much a thread counts in the record of a finding, and how much of that is right.
func (m *Model) outcome(t *Thread, id string) (by, right float64) {
	by = 1
	if t.Project == "" { // a trial
		by = trialWeight
	}
	for _, c := range m.causes {
		if c.Finds(id) && slices.Contains(t.Accept, c.ID) {
			return by, by
		}
	}
	return by, 0
}

// takeRecords replaces the records.
func (m *Model) takeRecords(rows []recordRow) {
	m.records, m.grades = map[string]record{}, [Expects + 1]record{}
	for _, r := range rows {
		m.records[r.Evidence] = record{r.Shown, r.Right}
		for g, name := range gradeNames {
			if len(r.Evidence) > len(name) && r.Evidence[len(r.Evidence)-len(name)-1:] == "/"+name {
				m.grades[g].addAnswers(r.Shown, r.Right)
			}
		}
	}
}
