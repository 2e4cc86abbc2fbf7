package doctor

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/doctor/cause"
	"busbar.dev/doctor/evidence"
	"busbar.dev/internal/lines"
)

// Thread is a public report whose cause is known, as testdata/cases/README.md describes it.
type Thread struct {
	ID, Project, Source string
	Year                int
	Circumstances       struct {
		GPU, Fabric, Cloud, NCCL, Framework *string
		Nodes                               *json.RawMessage // a number, or a text such as 64+
		Container, VM                       *bool
	}
	Symptom      string
	Observations []struct{ What, Kind, Polarity, Scope string }
	Fragments    []string
	Cause        string
	CauseKey     string `json:"cause_key"`
	Fix          string
	ConfirmedBy  string `json:"confirmed_by"`
	Status       string
	Known        []string `json:"known_before_answer"`
}

// ReadThreads reads threads, one JSON object a line.
func ReadThreads(name string, r io.Reader) ([]Thread, error) {
	var list []Thread
	in := lines.New(r)
	for in.Next() {
		text := strings.TrimSpace(in.Text())
		if text == "" {
			continue
		}
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		var t Thread
		if err := d.Decode(&t); err != nil {
			return nil,
				fmt.Errorf("%s:%d: %w; expected a thread with id, symptom, observations and cause_key", name, in.Num(), err)
		}
		list = append(list, t)
	}
	return list, in.Err()
}

// said are the words by which a report would say an observation's polarity.
var said = map[string]string{
	"tried-helped": ": tried, it helped", "tried-no-effect": ": tried without effect",
	"stated-ok": ": stated to be in order",
}

// Text is what a report would say: never the cause, the fix or the key. Where early is set, only what it held before
// the diagnosis.
func (t *Thread) Text(early bool) string {
	var b strings.Builder
	b.WriteString(t.Symptom + "\n")
	var about []string
	for _, p := range []*string{
		t.Circumstances.GPU, t.Circumstances.Fabric, t.Circumstances.Cloud, t.Circumstances.Framework,
	} {
		if p != nil && *p != "" {
			about = append(about, *p)
		}
	}
	if p := t.Circumstances.NCCL; p != nil && *p != "" {
		about = append(about, "NCCL "+*p)
	}
	for _, p := range []struct {
		is   *bool
		name string
	}{{t.Circumstances.Container, "in a container"}, {t.Circumstances.VM, "in a VM"}} {
		if p.is != nil && *p.is {
			about = append(about, p.name)
		}
	}
	if len(about) > 0 {
		b.WriteString("This is on " + strings.Join(about, " and ") + "\n")
	}
	for _, o := range t.Observations {
		if !early || slices.Contains(t.Known, o.What) {
			b.WriteString(o.What + said[o.Polarity] + "\n")
		}
	}
	for _, f := range t.Fragments {
		b.WriteString(f + "\n")
	}
	return b.String()
}

// Unread reports a thread that nobody read while signs were written: a third of them, by a hash of the name. Weights
// are fitted on these.
func (t *Thread) Unread() bool {
	return sha256.Sum256([]byte(t.ID))[0]%3 == 0
}

// Prepare makes a thread ready to be weighed.
func (t *Thread) Prepare(v *evidence.Vocabulary, m *cause.Model, early bool) (*cause.Thread, error) {
	x := &cause.Thread{
		ID: t.ID, Project: t.Project, Pull: strings.Contains(t.Source, "/pull/"), Why: t.Cause + ". " + t.Fix,
	}
	if len(t.Observations) > 0 {
		x.Kind = t.Observations[0].Kind
	}
	for _, c := range m.Causes() {
		if slices.Contains(c.Answers, t.CauseKey) {
			x.Accept = append(x.Accept, c.ID)
		}
	}
	text := t.Text(early)
	r := v.NewReader()
	if err := r.Read(t.ID, strings.NewReader(text)); err != nil {
		return nil, err
	}
	set, err := r.Set()
	if err != nil {
		return nil, err
	}
	c := newCase(set)
	x.Case = c.differential(c.detect(m))
	return x, nil
}

// MatchThreads reports whether a text holds threads.
func MatchThreads(data []byte) bool {
	head := data[:min(len(data), 1<<14)]
	return bytes.Contains(head, []byte(`"cause_key"`)) && bytes.Contains(head, []byte(`"observations"`))
}

// maxSaid is how many causes an outcome lists.
const maxSaid = 5

// ScoreThreads weighs threads that the model has not learned from. Where early is set, it is shown what the report held
// before the diagnosis only.
func ScoreThreads(list []Thread, early bool) (cause.Score, []Outcome, error) {
	var score cause.Score
	m, err := model()
	if err != nil {
		return score, nil, err
	}
	v := evidence.NewVocabulary()
	outcomes := make([]Outcome, 0, len(list))
	for i := range list {
		x, err := list[i].Prepare(v, m, early)
		if err != nil {
			return score, nil, err
		}
		h := m.Weigh(&x.Case)
		inherit(m, h, x.Rules)
		score.Add(h, x.Accept)
		o := Outcome{ID: list[i].ID, Category: list[i].CauseKey, Wanted: append([]string{}, x.Accept...), Said: []string{}}
		for j := range h {
			if h[j].Cause == nil || len(o.Said) == maxSaid {
				continue
			}
			if o.Said = append(o.Said, h[j].ID); len(o.Said) == 1 {
				o.Confidence = h[j].P
			}
			if o.Place == 0 && slices.Contains(x.Accept, h[j].ID) {
				o.Place = len(o.Said)
			}
		}
		o.Hit = o.Place == 1
		outcomes = append(outcomes, o)
	}
	return score, outcomes, nil
}
