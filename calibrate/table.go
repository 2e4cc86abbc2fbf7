package calibrate

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/sim"
)

// held are figures that the published sweeps say too little about: they come from
// the reference case, whose nodes send through host memory (docs/baskerville.md).
var held = []string{"bounce_rate", "bounce_shared"}

// Held tells whether a figure is not fitted to published sweeps.
func Held(name string) bool { return slices.Contains(held, name) }

// Published is the fit behind sim.Fitted: all figures but the held ones, from the
// prior, to all cases.
func Published(p *Problem) *Problem {
	q := *p
	q.Prior = Prior()
	q.Start = q.Prior
	q.Pull = Pull
	q.Weight = byMachine(p.Cases)
	for i := range q.Free {
		q.Free[i] = true
	}
	for _, name := range held {
		if i, err := sim.FigureByName(name); err == nil {
			q.Free[i] = false
		}
	}
	return &q
}

// Pull is the force of the prior in fits to published sweeps, chosen by leaving out publishers: 0.2 lets figures follow single
// machines too far.
var Pull = 1.5

// WriteGo writes the figures as the body of sim.Fitted.
func WriteGo(w io.Writer, f *sim.Figures) error {
	var b strings.Builder
	last := -2
	for i, v := range f {
		gen, _ := split(i)
		if gen != last {
			name := "common"
			if gen >= 0 {
				name = sim.Gen(gen).String()
			}
			if last != -2 {
				b.WriteString("\n")
			}
			fmt.Fprintf(&b, "\t\t// %s\n\t\t", name)
			last = gen
		} else {
			b.WriteString(" ")
		}
		b.WriteString(strconv.FormatFloat(v, 'g', 4, 64) + ",")
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, "\treturn &Figures{\n"+b.String()+"\t}\n")
	return err
}
