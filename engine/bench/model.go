package bench

import (
	"errors"
	"fmt"
	"math"
	"time"

	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Compute is how long a rank computes in a step.
type Compute struct {
	// Batch sequences of Seq tokens (0: the model's) take the model's operations at Speed TFLOPS.
	Batch, Seq int64
	Speed      float64
	// Time is the time itself, instead; 0 is none.
	Time time.Duration
}

// SetModel fills in the gradients of a model, of the plan's type, and when they come: the backward pass has two thirds
// of a step's operations, and each tensor its part's share of them.
func (p *StepPlan) SetModel(m *workload.Model, c Compute) error {
	seq := c.Seq
	if seq == 0 {
		seq = m.Seq
	}
	if seq < 1 || seq > 1<<24 || c.Batch < 1 || c.Batch > 1<<20 || !(c.Speed > 0) {
		return fmt.Errorf("%d sequences of %d tokens at %g TFLOPS; expected more than 0", c.Batch, seq, c.Speed)
	}
	total := 3 * m.Forward(seq) * float64(c.Batch)
	seconds := total / (c.Speed * 1e12)
	switch {
	case c.Time < 0:
		return errors.New("--compute: expected a time, e.g. 200ms")
	case c.Time > 0:
		seconds = c.Time.Seconds()
	}
	if seconds > 3600 {
		return fmt.Errorf("a step would compute for %.0f s; give --compute, a smaller --batch or --seq", seconds)
	}
	perOperation := seconds / total
	if total == 0 {
		perOperation = 0
	}
	p.Forward = time.Duration(math.Round(m.Forward(seq) * float64(c.Batch) * perOperation * 1e9))
	size := int64(p.Type.Size())
	var owed float64 // of parts without tensors, which the next tensor before them waits for
	for i := range m.Blocks {
		for _, part := range m.Blocks[i].Parts {
			owed += 2 * part.Forward(seq) * float64(c.Batch) * perOperation
			tensors := part.Tensors()
			for k, t := range tensors {
				g := Grad{Bytes: unit.Bytes(t.Count() * size)}
				if k == len(tensors)-1 { // comes first in the backward pass
					g.After = time.Duration(math.Round(owed * 1e9))
					owed = 0
				}
				p.Grads = append(p.Grads, g)
			}
		}
	}
	if n := len(p.Grads); n > 0 { // a tied head is computed before the first gradient
		p.Grads[n-1].After += time.Duration(math.Round(owed * 1e9))
	}
	return nil
}
