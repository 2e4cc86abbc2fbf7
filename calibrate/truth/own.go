package truth

import (
	"errors"
	"fmt"

	"busbar.dev/predict"
	"busbar.dev/result"
)

// ownClass is the class of hardware of points that were predicted where they were
// measured.
const ownClass = "lab"

// Own reports a sweep that carries its predictions: those of `busbar lab check`, whose
// network is gone with the lab and which no GPU describes.
func Own(s *result.Sweep) bool { return s.Published != nil && s.Published.Predictions > 0 }

// own are the rows of such a sweep.
func own(s *result.Sweep) (*Case, []Row, error) {
	c, err := newCase(s)
	if err != nil {
		return nil, nil, err
	}
	if s.Published.Predictions != len(s.Points) || len(c.Ops) != len(s.Points) {
		return nil, nil, fmt.Errorf("%d predicted_us and %d times for %d sizes_bytes; expected one of each for every size", s.Published.Predictions, len(c.Ops), len(s.Points))
	}
	c.Assumed, c.class = []string{"predicted where it was measured"}, ownClass
	c.Settings = make([]predict.Setting, len(c.Ops))
	var rows []Row
	for i, t := range c.Times {
		got := c.Points[i].Predicted
		if got <= 0 {
			return nil, nil, errors.New("a predicted_us that is no time")
		}
		d := float64(got-t) / float64(t)
		rows = append(rows, Row{Case: c, Index: i, Predicted: got, APE: max(d, -d)})
	}
	return c, rows, nil
}
