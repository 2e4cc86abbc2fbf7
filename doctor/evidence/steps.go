package evidence

import (
	"busbar.dev/finding"
	"busbar.dev/input/trainlog"
)

// Steps are the times of one rank's training steps.
type Steps struct {
	N     int
	Sum   float64 // seconds
	First finding.Quote
}

// Mean is the time of a step in seconds.
func (s *Steps) Mean() float64 { return s.Sum / float64(max(s.N, 1)) }

// maxStepRanks bounds how many ranks' steps are kept.
const maxStepRanks = 1 << 16

// Training is how fast a training went, by one log.
type Training struct {
	File string `json:"file"`
	*trainlog.Run
}

// step files what a line says of the steps of a training, and of one rank where it names it.
func (r *Reader) step(text string, q finding.Quote) bool {
	l, took := r.trained.Take(text)
	if l.Rank < 0 || l.Seconds == 0 {
		return took
	}
	t := r.set.Steps[l.Rank]
	if t == nil {
		if len(r.set.Steps) >= maxStepRanks {
			return true
		}
		t = &Steps{First: short(q)}
		r.set.Steps[l.Rank] = t
	}
	t.N++
	t.Sum += l.Seconds
	return true
}

// training keeps what the source at hand says of a training, where it says more than those before, and counts 1 where
// it is the log of one.
func (r *Reader) training() (logs int) {
	if run := r.trained.Run(); run != nil {
		if logs = 1; r.set.Training == nil || run.Lines > r.set.Training.Lines {
			r.set.Training = &Training{r.name, run}
		}
	}
	r.trained = trainlog.Log{}
	return logs
}
