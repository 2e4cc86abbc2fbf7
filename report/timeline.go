package report

import (
	"fmt"

	"busbar.dev/internal/svg"
	"busbar.dev/unit"
)

// maxTracks is how many rows of a timeline are drawn.
const maxTracks = 128

// barKinds are the kinds of bars of a step, by their letter.
var barKinds = []struct {
	kind       byte
	fill, name string
}{
	{'f', "#4c78a8", "forward"},
	{'b', "#72b7b2", "backward"},
	{'w', "#2f7f79", "weights' gradients"},
	{'e', "#9d7fb8", "encoding"},
	{'h', "#e8923c", "copies to the host"},
	{'t', "#e45756", "traffic"},
	{'u', "#b8a35a", "update"},
}

// barFill is the colour of a kind of bars.
func barFill(kind byte) string {
	for _, k := range barKinds {
		if k.kind == kind {
			return k.fill
		}
	}
	return inkSoft
}

// timeline draws the bars of a step and marks where it ends.
func timeline(title string, bars []bar, ends unit.Time) (*Picture, error) {
	const width, wide = 1230.0, 1060.0
	tracks, last := map[string]bool{}, unit.Time(0)
	for _, b := range bars {
		tracks[b.Group+" "+b.Track] = true
		last = max(last, b.To)
	}
	if last <= 0 {
		return nil, fmt.Errorf("nothing to draw")
	}
	if len(tracks) > maxTracks {
		return nil, fmt.Errorf("a picture of %d lines; at most %d can be drawn, write the trace", len(tracks), maxTracks)
	}
	c := &picture{}
	top := c.heading(width, title) + 26
	time, bottom := drawBars(c, top, wide, bars, ends)
	if ends > 0 {
		drawStepEnd(c, &time, ends, last, top, bottom)
	}
	var samples []Sample
	for _, k := range barKinds {
		samples = append(samples, fillSample(k.fill, k.name))
	}
	bottom = c.samples(edge, bottom+42, width-2*edge, c.noted(samples...))
	return c.Picture(title, width, bottom), nil
}

// drawStepEnd marks where the step ends, and says why the last bar ends elsewhere. Traffic behind the mark runs beside
// the next step's forward pass, and takes no time of its own.
func drawStepEnd(c *picture, time *svg.Axis, ends, last unit.Time, top, bottom float64) {
	x := time.At(float64(ends))
	c.Line(x, top-6, x, bottom+8, brush{Stroke: ink, Width: 1.5, Dash: "5 3"})
	text := fmt.Sprintf("step ends: %v", ends)
	switch gap := float64(last-ends) / float64(ends); {
	case gap > 0.01:
		text += "; what follows overlaps with the next step"
	case gap < -0.01:
		text += "; before it, the host's work between steps and estimated waiting, which have no bars"
	}
	c.Text(x, bottom+20, text, font{Size: 11, Fill: ink, Anchor: svg.End})
}
