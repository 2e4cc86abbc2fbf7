package query

import (
	"errors"
	"fmt"

	"busbar.dev/unit"
)

// Feeding is how a job gets its samples: sequences, or pictures.
type Feeding struct {
	Loader float64 `name:"loader" least:"1e-9" placeholder:"N" help:"Samples per second that the data loaders of one node deliver (default: data is never late)."`
	Sample string  `name:"sample-size" placeholder:"SIZE" help:"With --read-rate: what is read from storage for a sample: 110KB for an ImageNet picture, 16KiB for 4,096 tokens of 4 bytes."`
	Read   string  `name:"read-rate" placeholder:"RATE" help:"With --sample-size: read rate of the storage for all nodes together: 10GB/s."`
}

// feed is the time in which the samples of a step come, and what they wait for.
func (q *Feeding) feed(batch int64, nodes int) (unit.Span, string, error) {
	var data unit.Span
	text := ""
	if q.Loader > 0 {
		data = unit.Span(float64(batch) / (q.Loader * float64(nodes)))
		text = fmt.Sprintf("the data loaders of a node deliver %.4g samples/s", q.Loader)
	}
	switch {
	case q.Sample == "" && q.Read == "":
		return data, text, nil
	case q.Sample == "" || q.Read == "":
		return 0, "", errors.New("--sample-size and --read-rate belong together: what a sample takes, and what the storage gives")
	}
	size, err := unit.ParseBytes(q.Sample)
	if err != nil || size < 1 {
		return 0, "", fmt.Errorf("--sample-size %q; expected a size, such as 110KB", q.Sample)
	}
	rate, err := unit.ParseRate(q.Read)
	if err != nil || rate <= 0 {
		return 0, "", fmt.Errorf("--read-rate %q; expected a rate, such as 10GB/s", q.Read)
	}
	if read := unit.Span(float64(size) * float64(batch) / float64(rate)); read > data {
		data, text = read, fmt.Sprintf("the storage reads %v, %d samples of %v are a step", rate, batch, size)
	}
	return data, text, nil
}
