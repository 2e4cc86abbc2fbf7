package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"busbar.dev/calibrate"
	"busbar.dev/calibrate/truth"
	"busbar.dev/cluster"
	"busbar.dev/sim"
	"busbar.dev/unit"
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
	var all []truth.Row
	for _, name := range names(cases, of) {
		f, out, err := without(cases, name, full, of)
		if err != nil {
			return nil, err
		}
		rows, err := truth.Rows(out, f)
		if err != nil {
			return nil, fmt.Errorf("without %s: %w", name, err)
		}
		all = append(all, rows...)
	}
	return all, nil
}

const (
	// sweepsEach bounds the sweeps of a machine that crossCalibrated calibrates with, one at a time.
	sweepsEach = 3
	// leastLeft is how many points a calibration must leave until they are scored: the median of fewer is chance, not a
	// machine's error.
	leastLeft = 5
)

// crossCalibrated is cross where every machine is then calibrated with a few points of one sweep, those that
// calibrate.Suggest takes, and all its other points are predicted: by figures as they were before, and by what the
// calibration keeps. Machines without a sweep of more points, and those with fewer than leastLeft others, are left out.
func crossCalibrated(cases []*truth.Case, full *sim.Figures, of by, points int) (before, after []truth.Row, err error) {
	for _, name := range names(cases, of) {
		f, out, err := without(cases, name, full, of)
		if err != nil {
			return nil, nil, err
		}
		tried := map[string]int{}
		for _, c := range out {
			if len(c.Ops) <= points || tried[c.Machine()] == sweepsEach {
				continue
			}
			tried[c.Machine()]++
			in, rest, err := suggested(c, out, f, points)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", c.Sweep.ID, err)
			}
			left := 0
			for _, r := range rest {
				left += len(r.Ops)
			}
			if left < leastLeft {
				continue
			}
			was, is, err := calibrated(in, rest, f)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", c.Sweep.ID, err)
			}
			before, after = append(before, was...), append(after, is...)
		}
	}
	return before, after, nil
}

// calibrated predicts cases before and after a calibration with a case of the same machine; one that is no better
// changes nothing.
func calibrated(in *truth.Case, out []*truth.Case, start *sim.Figures) (before, after []truth.Row, err error) {
	site, err := calibrate.Cluster([]*truth.Case{in}, start)
	if err != nil {
		return nil, nil, err
	}
	if before, err = truth.Rows(out, start); err != nil {
		return nil, nil, err
	}
	f, kept := *start, &cluster.Calibration{}
	if site.Better() {
		kept.Residuals = site.Calibration(nil, "").Residuals
		for _, m := range site.Moved {
			i, err := sim.FigureByName(m.Name)
			if err != nil {
				return nil, nil, err
			}
			f[i] = m.Value
		}
	}
	for _, c := range out { // published machines have no calibration of their own
		c.Predictor.Cluster.Calibration = kept
	}
	after, err = truth.Rows(out, &f)
	for _, c := range out {
		c.Predictor.Cluster.Calibration = nil
	}
	return before, after, err
}

// suggested are the points of a sweep that calibrate.Suggest takes, and all other points of its machine.
func suggested(c *truth.Case, cases []*truth.Case, f *sim.Figures,
	points int,
) (in *truth.Case, rest []*truth.Case, err error) {
	var sizes []unit.Bytes
	for _, op := range c.Ops {
		sizes = append(sizes, op.Bytes)
	}
	c.Predictor.Figures = f
	list, err := calibrate.Suggest(c.Predictor, c.Ops[0].Kind, sizes, points)
	if err != nil {
		return nil, nil, err
	}
	picked := map[unit.Bytes]bool{}
	for _, x := range list {
		picked[x.Size] = true
	}
	if other := c.Pick(func(i int) bool { return !picked[sizes[i]] }); len(other.Ops) > 0 {
		rest = append(rest, other)
	}
	for _, o := range cases {
		if o != c && o.Machine() == c.Machine() {
			rest = append(rest, o)
		}
	}
	return c.Pick(func(i int) bool { return picked[sizes[i]] }), rest, nil
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
	touched, err := touches(out, full)
	for i := range s.f {
		if s.free[i] = s.free[i] && touched[i]; s.free[i] {
			s.f[i] = s.prior[i]
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
