package evidence

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"busbar.dev/doctor/hang"
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
	r.set.Waits = true
	_, err = r.job().Add(name, data)
	return err
}

// waits are words of a log in which ranks say that they wait, and of stacks. What NCCL's log alone says of ranks that
// did not come is the rules' business: half of a log, or one of many hosts, looks the same.
var waits = [][]byte{
	[]byte("Watchdog caught collective operation timeout"), []byte("last enqueued NCCL work"),
	[]byte("(most recent call first):\n"), []byte("\nPython v"),
}

// jobLog gives the text at hand to the judge of live jobs as `busbar hang` would: with NCCL's records.
func (r *Reader) jobLog() {
	if data := r.raw.Bytes(); len(data) > 0 && r.size >= 0 {
		_, _ = r.job().Add(r.name, data) // a text is no error: it was read as one
		r.set.Waits = r.set.Waits || slices.ContainsFunc(waits, func(w []byte) bool { return bytes.Contains(data, w) })
	}
	r.raw.Reset()
}

func (r *Reader) job() *hang.Case {
	if r.set.Job == nil {
		r.set.Job = hang.NewCase()
	}
	return r.set.Job
}
