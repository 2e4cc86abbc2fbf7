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
	Node   *Member    `json:"node,omitempty"`
}

// LinkState is what a port of a NIC was at a time.
type LinkState struct {
	Node string    `json:"node"`
	Port string    `json:"port"`
	Up   bool      `json:"up"`
	Time time.Time `json:"time"`
}

// Count is a counter of a port as it was read.
type Count struct {
	Node  string    `json:"node"`
	Port  string    `json:"port"`
	Name  string    `json:"name"`
	Value uint64    `json:"value"`
	Time  time.Time `json:"time"`
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
		return o, fmt.Errorf("observation: %w; expected one of sample, beat, link, count, node", err)
	}
	if d.More() {
		return o, errors.New("observation: more than one on a line")
	}
	n := 0
	for _, set := range []bool{
		o.Sample != nil, o.Beat != nil, o.Link != nil, o.Count != nil, o.Node != nil,
	} {
		if set {
			n++
		}
	}
	if n != 1 {
		return o, fmt.Errorf("observation: %d of sample, beat, link, count, node are set; expected one", n)
	}
	return o, nil
}

// Observe takes an observation.
func (h *History) Observe(o Observation) {
	switch {
	case o.Sample != nil:
		h.Add(*o.Sample)
	case o.Beat != nil:
		h.Beat(o.Beat.Node, o.Beat.Time)
	case o.Link != nil:
		h.Link(o.Link.Node, o.Link.Port, o.Link.Up, o.Link.Time)
	case o.Count != nil:
		h.Count(o.Count.Node, o.Count.Port, o.Count.Name, o.Count.Value, o.Count.Time)
	case o.Node != nil && o.Node.Gone:
		h.Forget(o.Node.Name)
	case o.Node != nil:
		h.SetPlace(o.Node.Name, o.Node.Place)
	}
}
