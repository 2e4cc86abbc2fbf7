package pipeline

import (
	"fmt"
	"strings"
)

// Schedule is the order in which ranks of a pipeline take micro-batches.
type Schedule string

// Schedules.
const (
	// GPipe does all forward passes, then all backward passes (Huang et al. 2019, GPipe).
	GPipe Schedule = "gpipe"
	// Alternate is 1F1B: one forward and one backward pass in turn (Narayanan et al. 2019,
	// PipeDream; its flushing form in Megatron-LM).
	Alternate Schedule = "1f1b"
	// Interleaved gives a rank several stages, which follow each other round the ranks
	// (Narayanan et al. 2021, section 2.2).
	Interleaved Schedule = "interleaved"
	// ZeroBubble is ZB-H1: the backward pass is cut into gradients of inputs, which the stage
	// before waits for, and gradients of weights, which fill what is idle; memory as of 1F1B (Qi
	// et al. 2023, Zero Bubble Pipeline Parallelism, section 2.1).
	ZeroBubble Schedule = "zero-bubble"
	// ZeroBubble2 is ZB-H2: nothing is idle when all three passes take as long, for about twice
	// the memory (the same, section 2.2).
	ZeroBubble2 Schedule = "zb-h2"
	// ZeroBubbleV is ZB-V: a rank has a stage of the first half and, on the way back, one of the
	// second; the memory is that of 1F1B (Qi et al. 2024, Pipeline Parallelism with Controllable
	// Memory, section 4).
	ZeroBubbleV Schedule = "zb-v"
)

// Schedules lists them.
func Schedules() []Schedule {
	return []Schedule{GPipe, Alternate, Interleaved, ZeroBubble, ZeroBubble2, ZeroBubbleV}
}

// Splits reports whether gradients of weights are computed apart from those of inputs.
func (s Schedule) Splits() bool { return s == ZeroBubble || s == ZeroBubble2 || s == ZeroBubbleV }

// Blocks reports whether ranks wait while their messages travel. Megatron-LM's 1F1B does: it sends
// and receives between passes. The others send beside the next pass.
func (s Schedule) Blocks() bool { return s == Alternate }

// Shape is a pipeline.
type Shape struct {
	Schedule Schedule
	Ranks    int // stages; with chunks a rank has several
	Chunks   int // stages of a rank
	Micros   int // micro-batches of a step
}

// Check reports a pipeline that cannot be, in the words of the command line.
func (s Shape) Check() error {
	switch {
	case s.Ranks < 1 || s.Micros < 1 || s.Chunks < 1:
		return fmt.Errorf("a pipeline of %d ranks with %d chunks and %d micro-batches; expected at least 1 each", s.Ranks,
			s.Chunks, s.Micros)
	case s.Schedule == Interleaved && s.Chunks < 2:
		return fmt.Errorf("the %s schedule gives a rank several stages; say how many with vpp=2 or more", s.Schedule)
	case s.Schedule == Interleaved && s.Micros%s.Ranks != 0:
		return fmt.Errorf("the %s schedule takes micro-batches in groups of pp=%d, and %d are not a multiple of it; change "+
			"the global batch or the micro-batch", s.Schedule, s.Ranks, s.Micros)
	case s.Schedule == ZeroBubbleV && s.Chunks != 2:
		return fmt.Errorf("the %s schedule gives a rank two stages; vpp=%d should be 2 or left out", s.Schedule, s.Chunks)
	case s.Schedule != Interleaved && s.Schedule != ZeroBubbleV && s.Chunks > 1:
		return fmt.Errorf("vpp=%d is for the %s schedule; the %s schedule gives a rank one stage", s.Chunks, Interleaved,
			s.Schedule)
	}
	for _, known := range Schedules() {
		if s.Schedule == known {
			return nil
		}
	}
	return fmt.Errorf("schedule %q; expected one of %s", s.Schedule, names())
}

func names() string {
	var list []string
	for _, s := range Schedules() {
		list = append(list, string(s))
	}
	return strings.Join(list, ", ")
}

// Place is where in the model a chunk of a rank stands, of Ranks × Chunks places.
func (s Shape) Place(rank, chunk int) int {
	if s.Schedule == ZeroBubbleV && chunk == 1 {
		return 2*s.Ranks - 1 - rank
	}
	return chunk*s.Ranks + rank
}

// Owner is the rank and chunk at a place.
func (s Shape) Owner(place int) (rank, chunk int) {
	if s.Schedule == ZeroBubbleV && place >= s.Ranks {
		return 2*s.Ranks - 1 - place, 1
	}
	return place % s.Ranks, place / s.Ranks
}

// Held is how many micro-batches a rank holds the activations of, at most, counted in parts of a rank's layers: a chunk
// of three counts a third. Where the backward pass is cut, a micro-batch is held until its gradients of weights are
// computed.
func (s Shape) Held(rank int) float64 {
	behind, v, all := s.Ranks-1-rank, s.Chunks, s.Micros*s.Chunks
	most := behind + 1
	switch s.Schedule {
	case GPipe:
		most = all
	case Interleaved:
		most = 2*behind + (v-1)*s.Ranks + 1
	case ZeroBubble:
		most = s.Ranks
	case ZeroBubble2:
		most = 2*s.Ranks - 1
	case ZeroBubbleV:
		most = 2 * s.Ranks
	}
	return float64(min(most, all)) / float64(v)
}
