package evidence

import (
	"busbar.dev/doctor/hang"
	"busbar.dev/input"
)

// jobLog gives the text at hand to the judge of live jobs as `busbar hang` would.
func (r *Reader) jobLog() {
	if r.size < 0 {
		return
	}
	r.job().AddLog(r.events.Log())
	_, _ = r.job().AddOf(input.State, r.name, r.kept.Bytes()) // a text is no error: it was read as one
}

func (r *Reader) job() *hang.Case {
	if r.set.Job == nil {
		r.set.Job = hang.NewCase()
	}
	return r.set.Job
}
