package check

import (
	"fmt"
	"math"

	"busbar.dev/internal/stats"
	"busbar.dev/unit"
)

// Point is a trial at one size: measured and predicted.
type Point struct {
	Scenario  string     `json:"scenario,omitempty"`
	Layout    string     `json:"layout"`
	Op        string     `json:"op"`
	Algo      string     `json:"algo"`
	Size      unit.Bytes `json:"size_bytes"`
	Measured  unit.Time  `json:"measured_us"`
	Predicted unit.Time  `json:"predicted_us"`
	Error     float64    `json:"error"` // (predicted − measured) / measured
	Noise     float64    `json:"noise"` // of the measurement: (median − lowest) / lowest
	Limit     string     `json:"limit"`
	// TooNoisy says that it does not count: its own runs differ too much.
	TooNoisy bool `json:"too_noisy,omitempty"`
}

// Score is how well predictions hold.
type Score struct {
	Points int     `json:"points"`
	Noisy  int     `json:"too_noisy"` // points that do not count
	Median float64 `json:"median_ape"`
	Worst  float64 `json:"worst_ape"`
	Where  string  `json:"worst_at,omitempty"`
	// Pairs is how often two algorithms that differ were compared, Wrong where the
	// prediction had the other one faster.
	Pairs int      `json:"pairs"`
	Wrong []string `json:"wrong_order"`
}

func (p *Point) name() string {
	s := p.Layout + " " + p.Algo + " " + p.Size.String()
	if p.Scenario != "" {
		s = p.Scenario + ": " + s
	}
	return s
}

// tie is the difference below which two predictions say that both take equally long;
// whether that is true their errors tell.
const tie = 0.02

// Rate scores points. Algorithms of one scenario, layout and size whose measured times
// differ by more than a share must be predicted in their order.
func rate(all []Point, differ float64) Score {
	var points []Point
	for i := range all {
		if !all[i].TooNoisy {
			points = append(points, all[i])
		}
	}
	s := Score{Points: len(points), Noisy: len(all) - len(points), Wrong: []string{}}
	var errs []float64
	for i := range points {
		e := math.Abs(points[i].Error)
		errs = append(errs, e)
		if e >= s.Worst {
			s.Worst, s.Where = e, points[i].name()
		}
	}
	if len(errs) == 0 {
		return s
	}
	s.Median = stats.Median(errs)
	for i := range points {
		for j := range points[:i] {
			a, b := &points[i], &points[j]
			if a.Scenario != b.Scenario || a.Layout != b.Layout || a.Size != b.Size || a.Op != b.Op {
				continue
			}
			if a.Measured > b.Measured {
				a, b = b, a
			}
			if float64(b.Measured) <= float64(a.Measured)*(1+differ) {
				continue
			}
			s.Pairs++
			if float64(a.Predicted) > float64(b.Predicted)*(1+tie) {
				s.Wrong = append(s.Wrong, fmt.Sprintf("%s is faster than %s, predicted slower", a.name(), b.Algo))
			}
		}
	}
	return s
}
