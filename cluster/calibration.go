package cluster

import (
	"fmt"
	"math"
	"strings"
	"unicode"
)

// Calibration is what was fitted to measurements on this cluster: figures of the
// models of packages sim and step, by name, that a spec sheet cannot give. Predictions use them
// in place of the usual ones and say so.
type Calibration struct {
	Figures []Calibrated `json:"figures" yaml:"figures"`
	Points  int          `json:"points,omitempty" yaml:"points,omitempty"`
	// Median and P90 are what is left of the error on those points, as a share.
	Median float64 `json:"median_ape,omitempty" yaml:"median_ape,omitempty"`
	P90    float64 `json:"p90_ape,omitempty" yaml:"p90_ape,omitempty"`
	// Residuals are what the figures leave, each for what it was measured on alone. Predictions of anything else keep the
	// error bar that they would have without a calibration.
	Residuals []Residual `json:"residuals,omitempty" yaml:"residuals,omitempty"`
}

// Calibrated is one figure: rdma_share, hopper.launch.
type Calibrated struct {
	Name  string  `json:"name" yaml:"name"`
	Value float64 `json:"value" yaml:"value"`
	Unit  string  `json:"unit,omitempty" yaml:"unit,omitempty"`
	// Low and High are how far it may move before the points fit visibly worse.
	Low    float64 `json:"low,omitempty" yaml:"low,omitempty"`
	High   float64 `json:"high,omitempty" yaml:"high,omitempty"`
	Source string  `json:"source,omitempty" yaml:"source,omitempty"` // what was measured
}

// StepFigure begins the names of figures that are of training steps on the cluster's GPUs, not of collectives.
const StepFigure = "step."

// maxCalibrated bounds the list; the model has fewer figures.
const maxCalibrated = 1000

// Check says what is wrong with a calibration, whatever figures there are.
func (c *Calibration) Check() error {
	if c == nil {
		return nil
	}
	if len(c.Figures) > maxCalibrated {
		return fmt.Errorf("figures: %d of them; the model has fewer", len(c.Figures))
	}
	if c.Points < 0 || !share(c.Median) || !share(c.P90) {
		return fmt.Errorf("%d points, errors of %g and %g; expected numbers from zero on", c.Points, c.Median, c.P90)
	}
	if len(c.Residuals) > maxResiduals {
		return fmt.Errorf("residuals: %d of them; expected at most %d", len(c.Residuals), maxResiduals)
	}
	for i := range c.Residuals {
		if err := c.Residuals[i].check(); err != nil {
			return fmt.Errorf("residuals[%d]: %w", i, err)
		}
	}
	seen := map[string]bool{}
	for i, f := range c.Figures {
		switch {
		case f.Name == "":
			return fmt.Errorf("figures[%d]: no name; expected a figure such as rdma_share", i)
		case len(f.Name+f.Unit) > maxFigureText || strings.ContainsFunc(f.Name+f.Unit+f.Source, unicode.IsControl):
			return fmt.Errorf("figures[%d]: %.40q: expected texts of one line, and a name of at most %d bytes", i, f.Name,
				maxFigureText)
		case seen[f.Name]:
			return fmt.Errorf("figures[%d]: %s is there twice", i, f.Name)
		case f.Low > f.High && f.High != 0:
			return fmt.Errorf("figures[%d]: %s: low %g and high %g; expected the lesser first", i, f.Name, f.Low, f.High)
		case math.IsNaN(f.Value) || math.IsInf(f.Value, 0) || f.Value < 0:
			return fmt.Errorf("figures[%d]: %s: value %g; expected a number from zero on", i, f.Name, f.Value)
		}
		seen[f.Name] = true
	}
	return nil
}

// maxFigureText bounds the name and the unit of a figure, which answers print.
const maxFigureText = 1000

func share(x float64) bool { return x >= 0 && x < 1e6 }

// calibration keeps the first calibration; a second one is of other measurements.
func (j *joiner) calibration(f *Fragment) {
	switch {
	case f.Calibration == nil:
	case j.out.Calibration == nil:
		j.out.Calibration = f.Calibration
	default:
		j.out.Warnings = append(j.out.Warnings, Warning{
			Source: f.title(), Text: "a second calibration; the first one is kept",
		})
	}
}
