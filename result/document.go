package result

import (
	"encoding/json"
	"fmt"

	"busbar.dev/coll"
	"busbar.dev/unit"
)

// document is what `busbar bench --json` prints, as far as it is a sweep.
type document struct {
	Op        string   `json:"op"`
	Ranks     int      `json:"ranks"`
	Transport string   `json:"transport"`
	Dtype     string   `json:"dtype"`
	Hosts     []string `json:"hosts"`
	Rows      []struct {
		Size    int64  `json:"size_bytes"`
		Time    Times  `json:"time_s"`
		Wrong   *int64 `json:"wrong"`
		InPlace *struct {
			Time Times `json:"time_s"`
		} `json:"in_place"`
	} `json:"rows"`
}

// ReadDocument reads the document of `busbar bench --json`. The sweep has no collective where the
// document names none that is known; it is nil where the document has no rows and so is another one.
func ReadDocument(name string, data []byte) (*Sweep, error) {
	var d document
	if err := json.Unmarshal(unit.InSeconds(data), &d); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(d.Rows) == 0 {
		return nil, nil
	}
	s := &Sweep{
		Source: Measured, Ranks: d.Ranks, Transport: d.Transport, Dtype: d.Dtype, File: name, OpFrom: "its document",
		LayoutFrom: "its document",
	}
	if n := len(d.Hosts); n > 0 && d.Ranks%n == 0 {
		s.Nodes, s.PerNode = n, d.Ranks/n
	}
	if op, err := coll.ParseKind(d.Op); err == nil {
		s.Op = op
	}
	for _, r := range d.Rows {
		p := Point{Size: unit.Bytes(r.Size), Out: &Timing{Time: r.Time, Wrong: r.Wrong}}
		if r.InPlace != nil {
			p.In = &Timing{Time: r.InPlace.Time}
		}
		s.Points = append(s.Points, p)
	}
	return s, nil
}
