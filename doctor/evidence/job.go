package evidence

import (
	"bytes"
	"fmt"
	"io"

	"busbar.dev/doctor/hang"
)

// maxJob bounds an answer of NCCL's RAS service, or a dump of PyTorch's flight recorder.
const maxJob = 256 << 20

// jobFile takes in what a live job wrote about itself for machines.
func (r *Reader) jobFile(name string, in io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(in, maxJob+1))
	if err != nil {
		return err
	}
	if len(data) > maxJob {
		return fmt.Errorf("%s: more than %d MiB; give the dumps of a few ranks", name, maxJob>>20)
	}
	r.set.Sources = append(r.set.Sources, name)
	r.set.Lines += bytes.Count(data, []byte("\n"))
	r.set.Bytes += int64(len(data))
	if _, err := r.job().Add(name, data); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// watchdog are words of a log that says how far each rank came, and of stacks.
var watchdog = [][]byte{[]byte("Watchdog caught collective operation timeout"), []byte("last enqueued NCCL work"), []byte("(most recent call first):\n"), []byte("\nPython v")}

// jobLog takes in a text at hand in which ranks tell where they are.
func (r *Reader) jobLog(data []byte) {
	for _, w := range watchdog {
		if bytes.Contains(data, w) {
			_, _ = r.job().Add(r.name, data) // a text is no error: it was read as one
			return
		}
	}
}

func (r *Reader) job() *hang.Case {
	if r.set.Job == nil {
		r.set.Job = hang.NewCase()
	}
	return r.set.Job
}
