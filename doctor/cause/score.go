package cause

import (
	"fmt"
	"slices"
	"strings"
)

// Score is how good answers are.
type Score struct {
	Threads, First, Three int
	Sure, Wrong           int // said with half or more; wrong among them
	Unknown               int // answers below Threshold
	Bins                  [5]Bin
}

// Bin is a row of the reliability table: answers said with a confidence in a fifth of the scale.
type Bin struct {
	Said, Right int
	Confidence  float64 // sum
}

// Threshold is the confidence below which the answer is: unknown; from Sure on no further question is asked.
const (
	Threshold = 0.3
	Sure      = 0.7
)

// Add counts an answer: hypotheses in order, and the names of those that are right.
func (s *Score) Add(list []Hypothesis, accept []string) {
	s.Threads++
	place, n := 0, 0
	var top *Hypothesis
	for i := range list {
		if list[i].Cause == nil {
			continue
		}
		if n++; n == 1 {
			top = &list[i]
		}
		if slices.Contains(accept, list[i].ID) {
			place = n
			break
		}
	}
	if place == 1 {
		s.First++
	}
	if place >= 1 && place <= 3 {
		s.Three++
	}
	if top.P < Threshold {
		s.Unknown++
	}
	if top.P >= 0.5 {
		s.Sure++
		if place != 1 {
			s.Wrong++
		}
	}
	b := &s.Bins[min(len(s.Bins)-1, int(top.P*float64(len(s.Bins))))]
	b.Said++
	b.Confidence += top.P
	if place == 1 {
		b.Right++
	}
}

// String is one line with the shares, and the reliability.
func (s Score) String() string {
	var b strings.Builder
	n := float64(max(s.Threads, 1))
	fmt.Fprintf(&b, "%d threads: cause first %.1f%%, among the first three %.1f%%, wrong with confidence of 50%% or "+
		"more %.1f%%, unknown %.0f%%; reliability", s.Threads, 100*float64(s.First)/n, 100*float64(s.Three)/n,
		100*float64(s.Wrong)/n, 100*float64(s.Unknown)/n)
	for _, x := range s.Bins {
		if x.Said > 0 {
			fmt.Fprintf(&b, " %.0f→%.0f%%(%d)", 100*x.Confidence/float64(x.Said), 100*float64(x.Right)/float64(x.Said), x.Said)
		}
	}
	return b.String()
}

// example is a thread as the fit sees it: the features of all hypotheses, and which are right.
type example struct {
	x      []sparse // the last is unknown
	right  []bool
	weight float64
}

// sparse is features that are not zero: most are.
type sparse []struct {
	i int
	v float64
}

func sparsely(f *[features]float64) (list sparse) {
	for i, v := range f {
		if v != 0 {
			list = append(list, struct {
				i int
				v float64
			}{i, v})
		}
	}
	return list
}

func (f sparse) dot(w *[features]float64) float64 {
	s := 0.0
	for _, x := range f {
		s += float64(x.v * w[x.i])
	}
	return s
}
