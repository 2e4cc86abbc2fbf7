package query

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/doctor"
	"busbar.dev/input/nccltests"
	"busbar.dev/internal/words"
	"busbar.dev/result"
)

// Validate asks how far off predictions of measured points are. Published points are predicted on the machine that
// their own description names, results of busbar and outputs of nccl-tests on a cluster that is given.
type Validate struct {
	Files     []string `arg:"" name:"file" names:"files" help:"Measured points, one JSON object per line; results of busbar bench gpu; with -c also nccl-tests output; - for standard input."`
	Cluster   string   `short:"c" names:"cluster" placeholder:"CLUSTER" help:"Cluster on which busbar's results and nccl-tests output were measured: a preset, or any file that map reads."`
	Layout    Layout   `short:"l" placeholder:"NxG" help:"Layout of the measured run, NODESxGPUS, when the files do not state it."`
	NCCL      string   `name:"nccl" placeholder:"VERSION" help:"NCCL release, when the files do not name it."`
	Class     string   `placeholder:"NAME" help:"Only points of this class (as the table shows it, with or without its size) or of this machine."`
	MaxMedian *float64 `placeholder:"SHARE" help:"Exit 1 when the median error exceeds this (0.12 is 12%), or nothing was predicted (default: no bound)."`
	MaxP90    *float64 `name:"max-p90" placeholder:"SHARE" help:"Exit 1 when the 90th percentile of the error exceeds this (0.4 is 40%), or nothing was predicted (default: no bound)."`
}

// ErrFaults is the error of a file that holds faults with their causes, which are ValidateDoctor's to grade.
var ErrFaults = errors.New("faults with their causes, not measured points")

// Run reads, predicts and scores.
func (q Validate) Run(ctx context.Context, env Env) (doc *ValidateDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := prepare(&q); err != nil {
		return nil, err
	}
	for _, x := range []*float64{q.MaxMedian, q.MaxP90} {
		if x != nil && !(*x >= 0) {
			return nil, fmt.Errorf("a threshold of %g; expected a share such as 0.12", *x)
		}
	}
	if err := q.refuseFaults(&env); err != nil {
		return nil, err
	}
	m := measurements{env: &env, layout: string(q.Layout), nccl: q.NCCL}
	found, err := q.read(ctx, &m)
	if err != nil {
		return nil, err
	}
	runs := found.predictRuns(q.Class)
	points, err := found.predict()
	if err != nil {
		return nil, err
	}
	if q.Class != "" && (runs == nil || len(runs.Rows) == 0) {
		if err := points.pick(q.Class); err != nil {
			return nil, err
		}
	}
	d := newValidateDoc(points.score(), runs)
	d.judge(&q)
	return d, nil
}

// refuseFaults refuses a file of faults. Standard input is not looked at, for it can be read only once.
func (q *Validate) refuseFaults(env *Env) error {
	if len(q.Files) != 1 || q.Files[0] == "-" {
		return nil
	}
	data, err := env.measuredText(q.Files[0])
	if err == nil && (doctor.MatchTrials(data) || doctor.MatchThreads(data)) {
		err = fmt.Errorf("%s: %w", q.Files[0], ErrFaults)
	}
	return err
}

// measured is what files of measurements hold.
type measured struct {
	sweeps result.Sweeps // published
	cases  []*truth.Case // on a cluster that was given
	runs   []*truth.Training
	left   []truth.Left
}

// read reads the files.
func (q *Validate) read(ctx context.Context, m *measurements) (*measured, error) {
	all := &measured{}
	for _, file := range q.Files {
		data, err := m.env.measuredText(file)
		if err != nil {
			return nil, err
		}
		name := inputName(file)
		switch {
		case result.Match(data):
			err = q.stored(ctx, m, all, name, data)
		case nccltests.Match(data):
			err = q.tables(ctx, m, all, name, data)
		default:
			if err = notCollective(name, data); err == nil {
				err = all.published(name, data)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// published adds the points of a file that describe their own machines.
func (all *measured) published(name string, data []byte) error {
	sweeps, left, err := truth.Read(name, bytes.NewReader(data))
	if err != nil {
		return err
	}
	runs, err := truth.Runs(name, bytes.NewReader(data))
	if err != nil {
		return err
	}
	left = slices.DeleteFunc(left, func(x truth.Left) bool {
		return slices.ContainsFunc(runs, func(t *truth.Training) bool { return t.ID == x.ID })
	})
	all.sweeps, all.runs, all.left = append(all.sweeps, sweeps...), append(all.runs, runs...), append(all.left, left...)
	return nil
}

// stored adds kept results, each sweep on its cluster.
func (q *Validate) stored(ctx context.Context, m *measurements, all *measured, name string, data []byte) error {
	list, err := result.Read(name, bytes.NewReader(data))
	if err != nil {
		return err
	}
	sweeps, left, err := truth.Kept(list, string(q.Layout))
	if err != nil {
		return err
	}
	all.left = append(all.left, left...)
	for _, s := range sweeps {
		if q.Cluster == "" && s.Cluster == "" {
			all.left = append(all.left, truth.Left{
				ID: s.ID, Reason: "nothing says on which cluster it was measured; give it with -c CLUSTER", Points: len(s.Points),
			})
			continue
		}
		if err := q.place(ctx, m, all, s, s.Cluster); err != nil {
			return err
		}
	}
	return nil
}

// tables adds nccl-tests' tables, on the cluster that was given.
func (q *Validate) tables(ctx context.Context, m *measurements, all *measured, name string, data []byte) error {
	if q.Cluster == "" {
		return fmt.Errorf("%s is an output of nccl-tests, which does not say what the cluster is; give it with -c CLUSTER",
			name)
	}
	sweeps, err := m.tables(name, data)
	if err != nil {
		return err
	}
	for _, s := range sweeps {
		if err := q.place(ctx, m, all, s, ""); err != nil {
			return err
		}
	}
	return nil
}

// place adds a sweep on the cluster that was given, or on the one it names itself.
func (q *Validate) place(ctx context.Context, m *measurements, all *measured, s *result.Sweep, named string) error {
	release, err := m.env.parseNCCL(q.NCCL)
	if err != nil {
		return err
	}
	word := cmp.Or(q.Cluster, named)
	cl, err := m.env.clusterOf(ctx, word, s.Nodes)
	if err != nil {
		return fmt.Errorf("%s: %w", s.ID, err)
	}
	s.Class = word
	x, err := truth.On(s, cl, release)
	if err != nil {
		return fmt.Errorf("%s: %w", s.ID, err)
	}
	all.cases = append(all.cases, x)
	return nil
}

// predict predicts the points.
func (all *measured) predict() (*ValidatePoints, error) {
	rows, left := truth.Predicted(all.sweeps, nil)
	own, err := truth.Rows(all.cases, nil)
	if err != nil {
		return nil, err
	}
	return &ValidatePoints{Rows: append(rows, own...), Left: append(all.left, left...), Notes: truth.Repeated(all.sweeps)},
		nil
}

// pick keeps the rows of a class: ours, the source's, or a machine.
func (p *ValidatePoints) pick(class string) error {
	var kept []truth.Row
	names := map[string]bool{}
	for i := range p.Rows {
		r := &p.Rows[i]
		ours := truth.ByClass(r)
		names[ours[:strings.LastIndexByte(ours, '/')]] = true
		if isClass(class, ours) || isClass(class, truth.ByHardware(r)) || isClass(class, truth.ByMachine(r)) {
			kept = append(kept, *r)
		}
	}
	if len(kept) == 0 {
		return fmt.Errorf("--class %s: no points of that class; there are %s, each with /small, /middle or /large, the "+
			"hw_class of the file, and the machines of the table", class, strings.Join(slices.Sorted(maps.Keys(names)), ", "))
	}
	p.Rows = kept
	p.Left = slices.DeleteFunc(p.Left,
		func(l truth.Left) bool { return !isClass(class, l.Class) && !isClass(class, l.Machine) })
	return nil
}

// isClass compares a class with the name or a beginning of it that ends at a slash.
func isClass(want, name string) bool {
	if len(want) > len(name) || !strings.EqualFold(want, name[:len(want)]) {
		return false
	}
	return len(want) == len(name) || name[len(want)] == '/'
}

// judge compares the score with the bounds. Where there is nothing to grade and no bound, that is an error.
func (d *ValidateDoc) judge(q *Validate) {
	all, runs := d.Collectives.Score, d.Training
	none := len(d.Collectives.Rows) == 0
	if none && (runs == nil || len(runs.Rows) == 0) && q.MaxMedian == nil && q.MaxP90 == nil {
		d.nothing = d.nothingIn(q.Files)
		return
	}
	if none && runs != nil {
		all = truth.Score{Points: runs.Score.Points, Median: runs.Score.Median, P90: runs.Score.P90}
	}
	for _, x := range []struct {
		name string
		got  float64
		most *float64
	}{{"median error", all.Median, q.MaxMedian}, {"90th percentile", all.P90, q.MaxP90}} {
		switch {
		case x.most == nil || all.Points > 0 && x.got <= *x.most:
		case all.Points == 0:
			d.Missed = append(d.Missed,
				fmt.Sprintf("%s: no point was predicted, so none is known to be within %.1f%%", x.name, 100**x.most))
		default:
			d.Missed = append(d.Missed, fmt.Sprintf("%s %.1f%%, more than %.1f%%", x.name, 100*x.got, 100**x.most))
		}
	}
}

// nothingIn is the error of files in which there is nothing to grade, with the first reason.
func (d *ValidateDoc) nothingIn(files []string) error {
	var names []string
	for _, f := range files {
		names = append(names, inputName(f))
	}
	left := d.Collectives.Left
	if d.Training != nil {
		left = append(slices.Clip(left), d.Training.Left...)
	}
	points := 0
	for _, l := range left {
		points += max(l.Points, 1)
	}
	where := strings.Join(names, ", ")
	if points == 0 {
		return fmt.Errorf("%s: nothing to grade: no measured points in it", where)
	}
	return fmt.Errorf("%s: nothing to grade: %s left out, the first because: %s", where, words.Plural(points, "point"),
		left[0].Reason)
}
