package evidence

import (
	"bytes"
	"fmt"
	"io"

	"busbar.dev/doctor/hang"
	"busbar.dev/input"
	"busbar.dev/internal/unpack"
)

// jobFile takes in what a live job wrote about itself for machines.
func (r *Reader) jobFile(name string, in io.Reader) error {
	data, done, err := unpack.Whole(r.Budget, in)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer done()
	r.set.Sources = append(r.set.Sources, name)
	r.set.Lines += bytes.Count(data, []byte("\n"))
	r.set.Bytes += int64(len(data))
	_, err = r.job().Add(name, data)
	return err
}

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
