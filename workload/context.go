package workload

import "fmt"

// Context is how ranks that share a sequence let every token see the others.
type Context string

// Contexts.
const (
	// Ring sends blocks of keys and values round while attention is computed with those that are
	// there (Liu et al. 2023, Ring Attention).
	Ring Context = "ring"
	// Gather has every rank gather all keys and values before attention, and divides their
	// gradients after it (Grattafiori et al. 2024, The Llama 3 Herd of Models, section 3.3.2).
	Gather Context = "gather"
	// Ulysses exchanges sequences for heads before attention and back after it, by all-to-all
	// (Jacobs et al. 2023, DeepSpeed Ulysses).
	Ulysses Context = "ulysses"
)

// checkContext reports a way that the split does not allow.
func (j *Job) checkContext() error {
	s := j.Split.filled()
	d := j.Model.Dims.filled()
	switch {
	case j.Context != "" && j.Context != Ring && j.Context != Gather && j.Context != Ulysses:
		return fmt.Errorf("context %q; expected ring, gather or ulysses", j.Context)
	case j.Context != "" && s.CP == 1:
		return fmt.Errorf("context %s without ranks that share sequences; give cp=2 or more", j.Context)
	case j.Context == Ulysses && d.KVHeads%int64(s.CP*s.TP) != 0:
		return fmt.Errorf("context ulysses divides heads among cp × tp = %d ranks, and %s has %d of keys and values",
			s.CP*s.TP, j.Model.Name, d.KVHeads)
	case s.SeqParallel && s.TP == 1:
		return fmt.Errorf("sp=1 divides what lies between tensor-parallel products; give tp=2 or more")
	}
	return nil
}
