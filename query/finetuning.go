package query

import (
	"fmt"

	"busbar.dev/workload"
)

// FineTuning is how a model is trained otherwise than by its next token alone: adapters, packed documents, pairs of answers, tokens further on.
type FineTuning struct {
	LoRA   string `name:"lora" placeholder:"rank=16,…" help:"LoRA adapters on frozen weights: rank=16, optionally targets=attention (default: all) and bits=4 for quantised frozen weights (QLoRA)."`
	Packed int64  `least:"1" most:"16777216" placeholder:"N" help:"Packed sequences: documents of N tokens each fill a sequence, and tokens attend to their own document only (default: one document per sequence)."`
	Method string `enum:",dpo,dpo-precomputed" default:"" placeholder:"NAME" help:"Training method: dpo (batches count pairs of answers, and a frozen reference model computes them too), dpo-precomputed (pairs, the reference computed before) (default: next-token prediction, as pretraining and SFT)."`
	MTP    int64  `name:"mtp" most:"16" placeholder:"N" help:"Multi-token prediction: N further layers that each predict one more token, with a loss of their own; DeepSeek-V3 trains with 1 (default: none)."`
}

// pairs is how many sequences a unit of the batch has.
func (q *FineTuning) pairs() int64 {
	if q.Method != "" {
		return 2
	}
	return 1
}

// apply gives a job what the fields say; its batches are of pairs before and of sequences after.
func (q *FineTuning) apply(j *workload.Job) error {
	if q.LoRA != "" {
		var err error
		if j.LoRA, err = workload.ParseLoRA(q.LoRA); err != nil {
			return fmt.Errorf("--lora: %w", err)
		}
	}
	if q.MTP < 0 {
		return fmt.Errorf("--mtp %d; expected 0 to 16", q.MTP)
	}
	j.Model = j.Model.Predicting(q.MTP)
	j.Packed, j.Reference = q.Packed, q.Method == "dpo"
	if q.Method != "" {
		j.MicroBatch = max(1, j.MicroBatch) * 2
		j.GlobalBatch *= 2
	}
	return nil
}

// checkModel refuses fields that have no meaning for a model, and sequences of pictures.
func (q *FineTuning) checkModel(m *workload.Model, seq int64) error {
	switch {
	case m.Pictures() && seq > 1:
		return fmt.Errorf("--seq %d: %s is trained on pictures, which are no sequences of tokens; leave --seq out", seq, m.Name)
	case m.Replicated() && q.MTP > 0:
		return fmt.Errorf("--mtp %d: %s has no layers that predict further tokens; leave --mtp out", q.MTP, m.Name)
	case m.Pictures() && q.Method != "":
		return fmt.Errorf("--method %s: %s is trained on pictures, which are no pairs of answers; leave --method out", q.Method, m.Name)
	}
	return nil
}

// words are the fields as flags of a command.
func (q *FineTuning) words() string {
	text := ""
	if q.LoRA != "" {
		text += " --lora " + shellWord(q.LoRA)
	}
	if q.Packed > 0 {
		text += fmt.Sprintf(" --packed %d", q.Packed)
	}
	if q.Method != "" {
		text += " --method " + q.Method
	}
	if q.MTP > 0 {
		text += fmt.Sprintf(" --mtp %d", q.MTP)
	}
	return text
}
