package health

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Observation is one of the things that a History takes, as a line of JSON: exactly one
// field is set.
type Observation struct {
	Sample *Sample    `json:"sample,omitempty"`
	Beat   *Heartbeat `json:"beat,omitempty"`
	Link   *LinkState `json:"link,omitempty"`
	Count  *Count     `json:"count,omitempty"`
	Work   *Work      `json:"work,omitempty"`
	Node   *Member    `json:"node,omitempty"`
}

// Heartbeat says that a node was alive.
type Heartbeat struct {
	Node string    `json:"node"`
	Time time.Time `json:"time"`
}

// Member is a node that came, with its place, or that was taken out.
type Member struct {
	Name  string `json:"name"`
	Place Place  `json:"place"`
	Gone  bool   `json:"gone,omitempty"`
}

// mostLine bounds an observation's text.
const mostLine = 64 << 10

// Decode reads an observation.
func Decode(line []byte) (Observation, error) {
	var o Observation
	if len(line) > mostLine {
		return o, fmt.Errorf("observation: %d bytes; at most %d", len(line), mostLine)
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return o, fmt.Errorf("observation: %w; expected one of sample, beat, link, count, work, node", err)
	}
	if d.More() {
		return o, errors.New("observation: more than one on a line")
	}
	n := 0
	for _, set := range []bool{
		o.Sample != nil, o.Beat != nil, o.Link != nil, o.Count != nil, o.Work != nil, o.Node != nil,
	} {
		if set {
			n++
		}
	}
	if n != 1 {
		return o, fmt.Errorf("observation: %d of sample, beat, link, count, work, node are set; expected one", n)
	}
	return o, nil
}

// Observe takes an observation; false where it was known already or could not be kept.
func (h *History) Observe(o Observation) bool {
	switch {
	case o.Sample != nil:
		return h.Add(*o.Sample)
	case o.Beat != nil:
		return h.Beat(o.Beat.Node, o.Beat.Time)
	case o.Link != nil:
		return h.Link(*o.Link)
	case o.Count != nil:
		return h.Count(*o.Count)
	case o.Work != nil:
		return h.Work(*o.Work)
	case o.Node != nil && o.Node.Gone:
		h.Forget(o.Node.Name)
		return true
	case o.Node != nil:
		return h.SetPlace(o.Node.Name, o.Node.Place)
	}
	return false
}
