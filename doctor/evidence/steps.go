package evidence

import (
	"strconv"

	"busbar.dev/finding"
)

// Steps are the times of one rank's training steps.
type Steps struct {
	N          int
	Sum        float64 // seconds
	First      finding.Quote
	Rank       int
	Last, Peak float64
}

// Mean is the time of a step in seconds.
func (s *Steps) Mean() float64 { return s.Sum / float64(max(s.N, 1)) }

// maxStepRanks bounds how many ranks' steps are kept.
const maxStepRanks = 1 << 16

// stepTime finds "rank 3 … step time 1.24 s" and the like: rank, time, unit.
const stepTime = `(?i)\brank[ _=:]*(\d+)\b.{0,120}?\b(?:step|iter(?:ation)?|batch)[ _]?(?:time|duration|ms)?\b[^0-9]{0,24}?(?:\d+[,:/ ].{0,24}?(?:time|took|elapsed|duration)[^0-9]{0,10})?(\d+(?:\.\d+)?) ?(ms|s|sec|seconds)\b`

// stepWords are the words by which such lines are found.
const stepWords = "step time|step_time|iteration time|iter time|iter_time|batch time|step took|batch_time|steptime"

// step files the time of a step.
func (s *Set) step(m []string, q finding.Quote) bool {
	rank := atoi(m[0])
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil || v <= 0 || rank < 0 {
		return false
	}
	if m[2] == "ms" {
		v /= 1000
	}
	t := s.Steps[rank]
	if t == nil {
		if len(s.Steps) >= maxStepRanks {
			return true
		}
		t = &Steps{Rank: rank, First: short(q)}
		s.Steps[rank] = t
	}
	t.N++
	t.Sum += v
	t.Last, t.Peak = v, max(t.Peak, v)
	return true
}
