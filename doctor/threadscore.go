package doctor

import (
	"bytes"
	"slices"

	"busbar.dev/doctor/cause"
	"busbar.dev/doctor/evidence"
)

// ThreadOutcome is what the doctor says about a thread.
type ThreadOutcome struct {
	Thread     *Thread
	Wanted     []string // causes that answer it; none: no cause of the program is its
	Said       []string // the likeliest causes
	Confidence float64  // of the first
	Place      int      // of the first that is right, from 1; 0: none among those said
}

// MatchThreads reports whether a text holds threads.
func MatchThreads(data []byte) bool {
	head := data[:min(len(data), 1<<14)]
	return bytes.Contains(head, []byte(`"cause_key"`)) && bytes.Contains(head, []byte(`"observations"`))
}

// maxSaid is how many causes an outcome lists.
const maxSaid = 5

// ScoreThreads weighs threads that the model has not learned from. Where early is set, it is shown what the report held before the diagnosis only.
func ScoreThreads(list []Thread, early bool) (cause.Score, []ThreadOutcome, error) {
	var score cause.Score
	m, err := model()
	if err != nil {
		return score, nil, err
	}
	v := evidence.NewVocabulary()
	outcomes := make([]ThreadOutcome, 0, len(list))
	for i := range list {
		x, err := list[i].Prepare(v, m, early)
		if err != nil {
			return score, nil, err
		}
		h := m.Weigh(&x.Case)
		inherit(m, h, x.Rules)
		score.Add(h, x.Accept)
		o := ThreadOutcome{Thread: &list[i], Wanted: x.Accept}
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
		outcomes = append(outcomes, o)
	}
	return score, outcomes, nil
}
