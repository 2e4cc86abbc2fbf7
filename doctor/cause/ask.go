package cause

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
)

// Question is an observation that tells causes apart.
type Question struct {
	Name    string   `json:"name"`
	Ask     string   `json:"ask"`     // answered by yes or no
	Command string   `json:"command"` // that shows it
	Gain    float64  `json:"bits"`    // that it is expected to tell
	Tells   []string `json:"yes"`     // the causes that a yes speaks for

	yeses, noes []string  // areas, or names of causes, that predict each answer
	symptom     string    // instead: causes with this symptom predict a yes
	only        []string  // symptoms with which it makes sense; none: all
	told        [2][]sign // clauses that answer it by no and by yes
	test        *Cause    // it is this cause's own test
}

// How sure an answer is where a cause predicts it, where nothing is predicted, and of another cause's own test.
const (
	predicted = 0.85
	open      = 0.5
	chance    = 0.12
)

var questions = sync.OnceValue(func() []Question {
	var list []Question
	for _, v := range embedded("questions.yaml").Items {
		q := Question{Name: v.Key, Ask: v.Get("ask").Str(), Command: v.Get("command").Str(), symptom: v.Get("symptom").Str()}
		for _, x := range v.Get("only").List() {
			q.only = append(q.only, x.Str())
		}
		for _, x := range v.Get("yes").List() {
			q.yeses = append(q.yeses, x.Str())
		}
		for _, x := range v.Get("no").List() {
			q.noes = append(q.noes, x.Str())
		}
		for i, key := range []string{"told-no", "told-yes"} {
			for _, x := range v.Get(key).List() {
				s, err := parseSign(x.Str())
				if err != nil {
					panic(fmt.Sprint("questions.yaml: ", err))
				}
				q.told[i] = append(q.told[i], s)
			}
		}
		list = append(list, q)
	}
	return list
})

// testPrefix is in front of the name of a cause's own test.
const testPrefix = "test:"

// yes is how likely a cause answers a question by yes.
func (q *Question) yes(c *Cause) float64 {
	switch {
	case c == nil:
		return open
	case q.test != nil && q.test.ID == c.ID:
		return predicted
	case q.test != nil:
		return chance
	case q.symptom != "" && len(c.Symptoms) == 0:
		return open
	case q.symptom != "" && slices.Contains(c.Symptoms, q.symptom):
		return predicted
	case q.symptom != "":
		return 1 - predicted
	case slices.Contains(q.yeses, c.ID) || slices.Contains(q.yeses, c.Area) && !slices.Contains(q.noes, c.ID):
		return predicted
	case slices.Contains(q.noes, c.ID) || slices.Contains(q.noes, c.Area):
		return 1 - predicted
	}
	return open
}

// answered is what answers say of a cause, nil for an unknown one.
func answered(answers map[string]bool, c *Cause) float64 {
	sum := 0.0
	for name, yes := range answers {
		q := questionOf(name)
		if q == nil {
			continue
		}
		p := q.yes(c)
		// an unknown cause passes the test of another by chance, as a known one does; questions are chosen better without
		if c == nil && q.test != nil {
			p = chance
		}
		if !yes {
			p = 1 - p
		}
		sum += math.Log(p / open)
	}
	return sum
}

func questionOf(name string) *Question {
	if id, ok := strings.CutPrefix(name, testPrefix); ok {
		return &Question{test: &Cause{ID: id}}
	}
	list := questions()
	if i := slices.IndexFunc(list, func(q Question) bool { return q.Name == name }); i >= 0 {
		return &list[i]
	}
	return nil
}

// answersTold are those that a text gives by itself to questions: they need not be asked.
func (t *Told) answersTold() map[string]bool {
	list := map[string]bool{}
	for i := range questions() {
		q := &questions()[i]
		for yes, signs := range q.told {
			if slices.ContainsFunc(t.Observations, func(o Observation) bool { return anySign(signs, o.norm) }) {
				list[q.Name] = yes == 1
			}
		}
	}
	return list
}

// Answer is what a text answers to a question by itself.
func (t *Told) Answer(name string) (yes, known bool) {
	yes, known = t.answers[name]
	return yes, known
}

// Confirmed reports that the answer to a cause's own test was yes.
func (c *Case) Confirmed(id string) bool { return c.Answers[testPrefix+id] }

// settled reports a question whose answer is known, or that makes no sense with the symptoms that are told.
func (c *Case) settled(q *Question) bool {
	if slices.Contains(c.Skipped, q.Name) {
		return true
	}
	if _, done := c.Answers[q.Name]; done || c.Told == nil {
		return done
	}
	if _, done := c.Told.answers[q.Name]; done ||
		q.symptom != "" && (len(c.Told.symptoms) > 0 || len(c.Told.answers) > 0) {
		return true
	}
	return len(q.only) > 0 && len(c.Told.symptoms) > 0 &&
		!slices.ContainsFunc(q.only, func(s string) bool { return c.Told.symptoms[s] })
}

// leading is how many hypotheses questions are chosen for, tested how many have their own test among them.
const (
	leading = 40
	tested  = 8
)

// Ask chooses up to n questions that tell the leading hypotheses apart best, the first of them the best alone.
// What was answered, or is told, is not asked.
func (m *Model) Ask(c *Case, list []Hypothesis, n int) []Question {
	top := list[:min(len(list), leading)]
	candidates := slices.Clone(questions())
	for _, h := range top[:min(len(top), tested)] {
		if h.Cause != nil && h.Cause.Ask != "" {
			candidates = append(candidates, Question{Name: testPrefix + h.ID, Ask: h.Cause.Ask, Command: h.Test, test: h.Cause})
		}
	}
	var chosen []Question
	p := make([]float64, len(top))
	for i, h := range top { // as likely as the calibration makes the first one
		p[i] = math.Exp(m.slope * (h.score - top[0].score))
		if c.Told != nil && h.Cause != nil {
			p[i] *= math.Exp(answered(c.Told.answers, h.Cause))
		}
	}
	for len(chosen) < n {
		best := -1
		for i := range candidates {
			q := &candidates[i]
			if c.settled(q) || slices.ContainsFunc(chosen, func(c Question) bool { return c.Name == q.Name }) {
				continue
			}
			q.Gain = q.gain(top, p)
			if best < 0 || q.Gain > candidates[best].Gain {
				best = i
			}
		}
		if best < 0 || candidates[best].Gain < 0.005 {
			break
		}
		q := candidates[best]
		q.Gain, q.Tells = math.Round(100*q.Gain)/100, []string{}
		for _, h := range top {
			if h.Cause != nil && q.yes(h.Cause) > open {
				q.Tells = append(q.Tells, h.ID)
			}
		}
		chosen = append(chosen, q)
		// The next one should part what this one leaves together: what both answers leave likely counts less.
		for i, h := range top {
			y := q.yes(h.Cause)
			p[i] *= 1 - math.Abs(2*y-1)/2
		}
	}
	return chosen
}

// gain is the information that an answer is expected to give about the leading hypotheses, in bits.
func (q *Question) gain(top []Hypothesis, p []float64) float64 {
	sum, yes, split := 0.0, 0.0, 0.0
	for i, h := range top {
		sum += p[i]
		yes += float64(p[i] * q.yes(h.Cause))
	}
	if sum == 0 {
		return 0
	}
	for i, h := range top {
		split += float64(p[i] / sum * entropy(q.yes(h.Cause)))
	}
	return entropy(yes/sum) - split
}

// entropy is that of a coin, in bits.
func entropy(p float64) float64 {
	if p <= 0 || p >= 1 {
		return 0
	}
	return -p*math.Log2(p) - (1-p)*math.Log2(1-p)
}
