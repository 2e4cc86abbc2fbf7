package truth

import (
	"errors"
	"fmt"
	"math"

	"busbar.dev/predict"
	"busbar.dev/unit"
)

// ownClass is the class of hardware of points that were predicted where they were
// measured.
const ownClass = "lab"

// Own reports a group that carries its predictions: those of `busbar lab check`, whose
// network is gone with the lab and which no GPU describes.
func (g *Group) Own() bool { return len(g.Predicted) > 0 }

// own are the rows of such a group.
func (g *Group) own() (*Case, []Row, error) {
	pts, err := g.Points()
	if err != nil {
		return nil, nil, err
	}
	if len(g.Predicted) != len(g.Sizes) || len(pts) != len(g.Sizes) {
		return nil, nil, fmt.Errorf("%d predicted_us and %d times for %d sizes_bytes; expected one of each for every size", len(g.Predicted), len(pts), len(g.Sizes))
	}
	c := &Case{Group: g, Points: pts, Assumed: []string{"predicted where it was measured"}, machine: g.Machine(), class: ownClass}
	var rows []Row
	for i, p := range pts {
		us := g.Predicted[i]
		if us == nil || !(*us > 0) || *us > 1e12 {
			return nil, nil, errors.New("a predicted_us that is no time")
		}
		t := unit.Time(math.Round(*us * 1e6))
		d := float64(t-p.Time) / float64(p.Time)
		c.Settings, c.Ops = append(c.Settings, predict.Setting{}), append(c.Ops, p.Op)
		rows = append(rows, Row{Case: c, Index: i, Predicted: t, APE: max(d, -d)})
	}
	return c, rows, nil
}
