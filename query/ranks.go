package query

import (
	"context"

	"busbar.dev/engine/ranks"
)

// Ranks is who measures, and how the process that asks is connected to them. With ranks.DefaultJob and nothing else, ranks of
// this process measure.
//
// Of a question that measures, RunOn returns a document in the process that is rank 0. In others it returns nil: another
// process, which has the same question, gives the answer.
type Ranks[D any] struct {
	Job     ranks.Job
	Process ranks.Process
	// Ready is asked before anything is started, in the process that the user started: could Keep keep what is left?
	Ready func() error
	// Keep takes what the rank that answers gives to the keep of Answer, in the process that the user started.
	Keep func(data []byte) error
	// Row is told, where rank 0 is, that the document has one more row.
	Row func(D) error
	// Answer is told the document while the ranks are still there; what it gives to keep reaches Keep.
	Answer func(d D, keep func(data []byte) error) error
}

// task has the functions that all measurements share.
func (r *Ranks[D]) task() ranks.Task { return ranks.Task{Ready: r.Ready, Keep: r.Keep} }

func (r *Ranks[D]) row(d D) error {
	if r.Row == nil {
		return nil
	}
	return r.Row(d)
}

func (r *Ranks[D]) answer(d D, keep func([]byte) error) error {
	if r.Answer == nil {
		return nil
	}
	return r.Answer(d, keep)
}

// run does the task. The document is that of the rank that answers, if it is in this process.
func (r *Ranks[D]) run(ctx context.Context, t ranks.Task) error {
	return r.Job.Run(ctx, r.Process, t)
}
