package doctor

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"busbar.dev/doctor/cause"
)

func prepared(t *testing.T, m *cause.Model, name string, early bool) (list []*cause.Thread, raw []Thread) {
	t.Helper()
	raw = threads(t, name)
	v := vocabulary()
	for i := range raw {
		x, err := raw[i].Prepare(v, m, early)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, x)
	}
	return list, raw
}

var users = flag.Bool("users", false, "simulate a user for every unread thread")

// asked is how often the true cause leads after so many questions.
type asked struct{ first, three, sure, wrong, answered int }

// walk answers questions as somebody would who knows what a thread observed, and no more: it begins with the symptom
// alone.
func walk(t *testing.T, m *cause.Model, raw Thread, full *cause.Thread, v func(Thread) *cause.Thread, score []asked) {
	t.Helper()
	raw.Observations, raw.Fragments = nil, nil
	user := v(raw)
	user.Accept, user.Answers = full.Accept, map[string]bool{}
	shown := map[string]bool{}
	for _, h := range m.WeighLeftOut(full) {
		if h.Cause != nil && len(h.Basis) > 0 {
			shown["test:"+h.ID] = true
		}
	}
	dunno := map[string]bool{}
	for n := range score {
		list := m.WeighLeftOut(user)
		list = slices.DeleteFunc(list, func(h cause.Hypothesis) bool { return h.Cause == nil })
		right := slices.IndexFunc(list, func(h cause.Hypothesis) bool { return slices.Contains(full.Accept, h.ID) })
		if right == 0 {
			score[n].first++
		}
		if right >= 0 && right < 3 {
			score[n].three++
		}
		if list[0].P >= cause.Sure {
			if score[n].sure++; right != 0 {
				score[n].wrong++
			}
		}
		score[n].answered += len(user.Answers)
		for _, q := range m.Ask(&user.Case, m.WeighLeftOut(user), 12) {
			if dunno[q.Name] {
				continue
			}
			if yes, known := full.Told.Answer(q.Name); known || shown[q.Name] {
				user.Answers[q.Name] = yes || shown[q.Name]
			} else {
				dunno[q.Name] = true
			}
			break
		}
	}
}

// Questions help: with answers by what a thread observed, the true cause leads more often than by its symptom alone.
func TestUsers(t *testing.T) {
	m, err := NewModel()
	if err != nil {
		t.Fatal(err)
	}
	v := vocabulary()
	score, n := make([]asked, 5), 0
	for _, name := range []string{"fit.jsonl", "fit-3.jsonl", "fit-4.jsonl"} {
		list, raw := prepared(t, m, name, false)
		for i, x := range list {
			if name == "fit.jsonl" && !raw[i].Unread() || !*users && i%16 != 0 {
				continue
			}
			n++
			walk(t, m, raw[i], x, func(r Thread) *cause.Thread {
				y, err := r.Prepare(v, m, false)
				if err != nil {
					t.Fatal(err)
				}
				return y
			}, score)
		}
	}
	var b strings.Builder
	for q, s := range score {
		fmt.Fprintf(&b, "| %d | %.1f | %d%% | %d%% | %d%% | %d%% |\n", q, float64(s.answered)/float64(n), 100*s.first/n,
			100*s.three/n, 100*s.sure/n, 100*s.wrong/n)
	}
	t.Logf("%d threads; questions, answered, first, three, sure, sure and wrong:\n%s", n, b.String())
	if score[4].three < score[0].three {
		t.Errorf("four questions make it worse: %v", score)
	}
}

// A walk opens with the observation that tells most, never with the question whether it is a cause.
func TestOpening(t *testing.T) {
	for text, want := range map[string]string{
		"it worked yesterday":                     "since-change",
		"it worked yesterday, now training hangs": "since-change",
		"training hangs":                          "",
		"all-reduce is slow on two nodes":         "",
		"ACS is disabled, iommu=pt is set":        "hangs",
	} {
		r := say(t, text)
		if len(r.Questions) < 2 || len(r.Questions) > 4 || want != "" && r.Questions[0].Name != want {
			t.Errorf("%q: %+v", text, r.Questions)
		}
		for i, q := range r.Questions {
			if strings.Contains(q.Ask, "the cause") || q.Command == "" || i == 0 && strings.HasPrefix(q.Name, "test:") {
				t.Errorf("%q asks %q", text, q.Ask)
			}
		}
	}
}
