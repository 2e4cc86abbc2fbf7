package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/sim"
)

// by says which points belong together, so that they are left out of a fit together: a machine's, or a publisher's.
type by func(*truth.Case) string

// publisherEnd is what numbers several publications of one publisher: aic2, ociv3, nccl2409.
var publisherEnd = regexp.MustCompile(`v?\d+$`)

// publisher is who published a sweep, as far as one can tell by the first word of its id. Threads of one
// project's issues count as one.
func publisher(c *truth.Case) string {
	who, _, _ := strings.Cut(c.Sweep.ID, "-")
	if short := publisherEnd.ReplaceAllString(who, ""); short != "" {
		return short
	}
	return who
}

// cross is cross-validation: every machine (or all machines of a publisher) is predicted by
// figures that were fitted without any of its points. full are figures fitted on
// all cases. Figures that the points left out depend on begin again from the
// prior, so that nothing of them is left; the others, which do not
// matter to those points, keep their values.
func cross(cases []*truth.Case, full *sim.Figures, of by) ([]truth.Row, error) {
	fits, err := folds(cases, full, of)
	if err != nil {
		return nil, err
	}
	return predictedBy(cases, fits, of)
}

// folds are the figures that were fitted without each name.
func folds(cases []*truth.Case, full *sim.Figures, of by) (map[string]*sim.Figures, error) {
	fits := map[string]*sim.Figures{}
	for _, name := range names(cases, of) {
		var err error
		if fits[name], _, err = without(cases, name, full, of); err != nil {
			return nil, err
		}
	}
	return fits, nil
}

// predictedBy predicts every case by the figures of its name.
func predictedBy(cases []*truth.Case, fits map[string]*sim.Figures, of by) ([]truth.Row, error) {
	var all []truth.Row
	for _, c := range cases {
		rows, err := c.Predict(fits[of(c)])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Sweep.ID, err)
		}
		all = append(all, rows...)
	}
	return all, nil
}

// names are the different names of cases, in order.
func names(cases []*truth.Case, of by) []string {
	var list []string
	for _, c := range cases {
		list = append(list, of(c))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// without are figures fitted without the cases of a name, and those cases.
func without(cases []*truth.Case, name string, full *sim.Figures, of by) (*sim.Figures, []*truth.Case, error) {
	var in, out []*truth.Case
	for _, c := range cases {
		if of(c) == name {
			out = append(out, c)
		} else {
			in = append(in, c)
		}
	}
	s := published(in)
	s.quick, s.f = true, *full
	touched, err := touches(out, usual()) // by figures that know nothing of them
	for i := range s.f {
		if s.free[i] = s.free[i] && touched[i]; s.free[i] {
			s.f[i] = usual()[i]
		}
	}
	if err == nil {
		err = s.run()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("without %s: %w", name, err)
	}
	return &s.f, out, nil
}
