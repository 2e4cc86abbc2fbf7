package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/words"
)

// Validate asks how far off predictions of measured points are. Published points are predicted on the machine that
// their own description names, results of busbar and outputs of nccl-tests on a cluster that is given.
type Validate struct {
	Files     []string `arg:"" name:"file" names:"files" help:"Measured points, one JSON object per line; results of busbar bench gpu; with -c also nccl-tests output; - for standard input."`
	Cluster   string   `short:"c" names:"cluster" placeholder:"CLUSTER" help:"Cluster on which busbar's results and nccl-tests output were measured: a preset, or any file that map reads."`
	Layout    Layout   `short:"l" placeholder:"NxG" help:"Layout of the measured run, NODESxGPUS, when the files do not state it."`
	NCCL      string   `name:"nccl" placeholder:"VERSION" help:"NCCL release, when the files do not name it."`
	Devices   string   `placeholder:"LIST" help:"GPUs of every node that took part, by their numbers: 2,3 or 0-3 (default: the first)."`
	Class     string   `placeholder:"NAME" help:"Only points of this class (as the table shows it, with or without its size) or of this machine."`
	MaxMedian *float64 `placeholder:"SHARE" help:"Exit 1 when the median error exceeds this (0.12 is 12%), or nothing was predicted (default: no bound)."`
	MaxP90    *float64 `name:"max-p90" placeholder:"SHARE" help:"Exit 1 when the 90th percentile of the error exceeds this (0.4 is 40%), or nothing was predicted (default: no bound)."`
}

// Run reads, predicts and scores.
func (q Validate) Run(ctx context.Context, env Env) (doc *ValidateDoc, err error) {
	defer prepared(&q, &env, &doc, &err)()
	if err != nil {
		return nil, err
	}
	for _, x := range []*float64{q.MaxMedian, q.MaxP90} {
		if x != nil && !(*x >= 0) {
			return nil, fmt.Errorf("a threshold of %g; expected a share such as 0.12", *x)
		}
	}
	m := measurements{env: &env, cluster: q.Cluster, layout: string(q.Layout), nccl: q.NCCL}
	found, err := q.read(ctx, &m)
	if err != nil {
		return nil, err
	}
	rows, left, err := found.predict()
	if err != nil {
		return nil, err
	}
	if q.Class != "" {
		if rows, left, err = pickClass(q.Class, rows, left); err != nil {
			return nil, err
		}
	}
	d := newValidateDoc(rows, left)
	d.Notes = truth.Repeated(found.published)
	d.judge(&q)
	return d, nil
}

// measured is what files of measurements hold.
type measured struct {
	measuredFile               // of all files, but for what is placed
	cases        []*truth.Case // on a cluster that was given
}

// read reads the files, and puts what does not describe its machine on the cluster that was given, or on the one it
// names itself.
func (q *Validate) read(ctx context.Context, m *measurements) (*measured, error) {
	all := &measured{}
	release, err := m.env.parseNCCL(q.NCCL)
	if err != nil {
		return nil, err
	}
	devices, err := parseDevices(q.Devices)
	if err != nil {
		return nil, err
	}
	for _, file := range q.Files {
		f, err := m.read(file)
		if err != nil {
			return nil, err
		}
		all.published, all.left = append(all.published, f.published...), append(all.left, f.left...)
		for _, s := range f.sweeps {
			word := cmp.Or(q.Cluster, s.Cluster)
			if word == "" {
				all.left = append(all.left, truth.Left{
					ID: s.ID, Reason: "nothing says on which cluster it was measured; give it with -c CLUSTER", Points: len(s.Points),
					Gradable: true,
				})
				continue
			}
			cl, err := m.env.clusterOf(ctx, word, s.Nodes)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.ID, err)
			}
			s.Class = word
			x, err := truth.On(s, cl, release, devices)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.ID, err)
			}
			all.cases = append(all.cases, x)
		}
	}
	if len(devices) > 0 && len(all.cases) == 0 {
		return nil, fmt.Errorf("--devices %s: nothing here was measured on a cluster that -c gives; records of a machine "+
			"describe it themselves", q.Devices)
	}
	return all, nil
}

// predict predicts the points.
func (all *measured) predict() ([]truth.Row, []truth.Left, error) {
	rows, left := truth.Predicted(all.published)
	own, err := truth.Rows(all.cases, nil)
	return append(rows, own...), append(all.left, left...), err
}

// pickClass keeps the rows of a class: ours, the source's, or a machine.
func pickClass(class string, rows []truth.Row, left []truth.Left) ([]truth.Row, []truth.Left, error) {
	var kept []truth.Row
	names := map[string]bool{}
	for i := range rows {
		r := &rows[i]
		ours := truth.ByClass(r)
		names[ours[:strings.LastIndexByte(ours, '/')]] = true
		if isClass(class, ours) || isClass(class, truth.ByHardware(r)) || isClass(class, truth.ByMachine(r)) {
			kept = append(kept, *r)
		}
	}
	if len(kept) == 0 {
		return nil, nil,
			fmt.Errorf("--class %s: no points of that class; there are %s, each with /small, /middle or /large, "+
				"the hw_class of the file, and the machines of the table", class,
				strings.Join(slices.Sorted(maps.Keys(names)), ", "))
	}
	return kept, slices.DeleteFunc(left,
		func(l truth.Left) bool { return !isClass(class, l.Class) && !isClass(class, l.Machine) }), nil
}

// isClass compares a class with the name or a beginning of it that ends at a slash.
func isClass(want, name string) bool {
	return strings.HasPrefix(strings.ToLower(name)+"/", strings.ToLower(want)+"/")
}

// judge compares the score with the bounds. Where there is nothing to grade and no bound, that is an error.
func (d *ValidateDoc) judge(q *Validate) {
	if d.Points == 0 && q.MaxMedian == nil && q.MaxP90 == nil {
		d.nothing = d.nothingIn(q.Files)
		return
	}
	for _, x := range []struct {
		name string
		got  float64
		most *float64
	}{{"median error", d.Median, q.MaxMedian}, {"90th percentile", d.P90, q.MaxP90}} {
		switch {
		case x.most == nil || d.Points > 0 && x.got <= *x.most:
		case d.Points == 0:
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
	points := 0
	for _, l := range d.Skipped {
		points += max(l.Points, 1)
	}
	where := strings.Join(names, ", ")
	if points == 0 {
		return fmt.Errorf("%s: nothing to grade: no measured points in it", where)
	}
	return fmt.Errorf("%s: nothing to grade: %s left out, the first because: %s", where, words.Plural(points, "point"),
		d.Skipped[0].Reason)
}

// ValidateDoc is the answer to Validate.
type ValidateDoc struct {
	truth.Score
	Skipped   []truth.Left    `json:"skipped"` // that were not scored
	Gradable  int             `json:"gradable_points"`
	Predicted int             `json:"predicted"`
	Share     float64         `json:"predicted_share"` // of those that can be scored
	Halves    []truth.Part    `json:"by_mebibyte"`
	Files     []validatedFile `json:"files,omitempty"` // where there are several
	Classes   []truth.Part    `json:"classes"`
	Hardware  []truth.Part    `json:"hw_classes"` // as the source names them
	Who       []truth.Part    `json:"machines"`
	Rows      []truth.Point   `json:"rows"`
	Notes     []string        `json:"notes,omitempty"`
	Unused    []truth.Unused  `json:"unused_fields,omitempty"`
	Missed    []string        `json:"missed,omitempty"` // bounds that errors are greater than, in words

	nothing error
}

// validatedFile is the error of one file's points of some sizes.
type validatedFile struct {
	File  string `json:"file"`
	Sizes string `json:"sizes"`
	truth.Part
}

// Err is the reason where there was nothing to grade; the document is printed all the same.
func (d *ValidateDoc) Err() error { return d.nothing }

// Wrong reports that an error is greater than its bound.
func (d *ValidateDoc) Wrong() bool { return len(d.Missed) > 0 }

// newValidateDoc is the document of points.
func newValidateDoc(rows []truth.Row, left []truth.Left) *ValidateDoc {
	named := slices.DeleteFunc(slices.Clone(rows), func(r truth.Row) bool { return r.Case.Sweep.Class == "" })
	d := &ValidateDoc{
		Score: truth.Rate(rows), Halves: truth.Split(rows, truth.ByMiB), Classes: truth.Split(rows, truth.ByClass),
		Hardware: truth.Split(named, truth.ByHardware), Who: truth.Split(rows, truth.ByMachine), Files: validatedFiles(rows),
		Unused: truth.UnusedFields(rows), Skipped: orEmpty(left), Rows: []truth.Point{},
		Predicted: len(rows), Gradable: len(rows),
	}
	for i := range rows {
		d.Rows = append(d.Rows, rows[i].Point())
	}
	for _, l := range left {
		if l.Gradable {
			d.Gradable += l.Points
		}
	}
	if d.Gradable > 0 {
		d.Share = float64(d.Predicted) / float64(d.Gradable)
	}
	return d
}

// validatedFiles are the scores of every file, where there are several.
func validatedFiles(rows []truth.Row) (list []validatedFile) {
	all := truth.Split(rows, func(r *truth.Row) string { return r.Case.Sweep.File })
	if len(all) < 2 {
		return nil
	}
	for _, f := range all {
		parts := append([]truth.Part{{Name: "all", Score: f.Score}}, truth.Split(rows, func(r *truth.Row) string {
			if r.Case.Sweep.File != f.Name {
				return ""
			}
			return truth.ByMiB(r)
		})...)
		for _, p := range parts {
			list = append(list, validatedFile{f.Name, p.Name, p})
		}
	}
	return list
}

// inputName is what errors call an input.
func inputName(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}

// measuredText reads a file of measurements.
func (e *Env) measuredText(name string) ([]byte, error) {
	if info, err := fs.Stat(e.files(), name); name != "-" && err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s: a folder; expected a file of measured points", name)
	}
	return e.readWhole(name, measuredPoints)
}

// measuredPoints are what a file of measurements should have.
const measuredPoints = "what nccl-tests printed, or measured points as JSON lines"

// mostWhole bounds a file that is read at once.
const mostWhole = 256 << 20

// readWhole reads a file, or standard input, that should have what was expected.
func (e *Env) readWhole(name, expected string) ([]byte, error) {
	if name == "" {
		return nil, fmt.Errorf("no file given; expected %s", expected)
	}
	in := e.stdin()
	if name != "-" {
		f, err := e.files().Open(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, missing{fmt.Errorf("%s: no such file; expected %s", name, expected)}
		case err != nil:
			return nil, failure.Cannot(err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, mostWhole+1))
	if err != nil {
		return nil, failure.Cannot(fmt.Errorf("%s: %w", name, err))
	}
	if len(data) > mostWhole {
		return nil, fmt.Errorf("%s: more than %d MiB; expected %s", name, mostWhole>>20, expected)
	}
	return data, nil
}
