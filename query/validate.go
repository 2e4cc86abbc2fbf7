package query

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/doctor"
	"busbar.dev/doctor/evidence"
	"busbar.dev/input/nccltests"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/words"
	"busbar.dev/result"
	"busbar.dev/step"
	"busbar.dev/unit"
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

// ValidateDoc is the answer to Validate: errors are |predicted − measured| / measured.
type ValidateDoc struct {
	Points    int              `json:"points"`  // that were scored
	Skipped   []ValidateSkip   `json:"skipped"` // that were not
	Median    float64          `json:"median_ape"`
	P90       float64          `json:"p90_ape"`
	Worst     float64          `json:"worst_ape"`
	Coverage  float64          `json:"coverage"` // share of points that were measured inside the error bar
	Gradable  int              `json:"gradable_points"`
	Predicted int              `json:"predicted"`
	Share     float64          `json:"predicted_share"` // of those that can be scored
	Machines  ValidateMachines `json:"machine_mean"`
	Halves    []ValidateScore  `json:"by_mebibyte"`
	Files     []ValidateFile   `json:"files,omitempty"` // where there are several
	Classes   []ValidateScore  `json:"classes"`
	Hardware  []ValidateScore  `json:"hw_classes"` // as the source names them
	Who       []ValidateScore  `json:"machines"`
	Rows      []ValidateRow    `json:"rows"`
	Notes     []string         `json:"notes,omitempty"`
	Unused    []ValidateUnused `json:"unused_fields,omitempty"`
	// Choices is about training runs of one job in several ways.
	Choices *ValidateChoices `json:"choices,omitempty"`
	Missed  []string         `json:"missed,omitempty"` // bounds that errors are greater than, in words

	Collectives *ValidatePoints `json:"-"`
	Training    *ValidateRuns   `json:"-"` // nil where there are no training runs
	nothing     error
}

// ValidateMachines is the error of single machines, averaged over machines: a source with many points counts once.
type ValidateMachines struct {
	Count  int     `json:"count"`
	Median float64 `json:"median_ape"`
	P90    float64 `json:"p90_ape"`
	// Coverage is the share of points inside the error bar.
	Coverage float64 `json:"coverage"`
}

// ValidateFile is the error of one file's points of some sizes.
type ValidateFile struct {
	File  string `json:"file"`
	Sizes string `json:"sizes"`
	ValidateScore
	Machines ValidateMachines `json:"machine_mean"`
}

// ValidateUnused is what sources state about a measurement and a prediction cannot use.
type ValidateUnused struct {
	Field  string `json:"field"`
	Groups int    `json:"groups"`
	ID     string `json:"id"` // the first of them
}

// ValidateScore is the error of points that have something in common.
type ValidateScore struct {
	Class    string  `json:"class"`
	Points   int     `json:"points"`
	Median   float64 `json:"median_ape"`
	P90      float64 `json:"p90_ape"`
	Worst    float64 `json:"worst_ape"`
	Bias     float64 `json:"median_ratio"` // of predicted over measured
	Coverage float64 `json:"coverage"`
}

// ValidateRow is one point, measured and predicted.
type ValidateRow struct {
	ID        string     `json:"id"`
	Size      unit.Bytes `json:"size_bytes"`
	Measured  float64    `json:"measured"`
	Predicted float64    `json:"predicted"`
	Unit      string     `json:"unit"`
	APE       float64    `json:"ape"`
	Margin    float64    `json:"margin"` // measured is expected within predicted/margin and predicted×margin
	Class     string     `json:"class"`
	Machine   string     `json:"machine"`
	Algo      string     `json:"algo"`
	Proto     string     `json:"proto"`
	Channels  int        `json:"channels"`
	Limit     string     `json:"bottleneck"`
	Assumed   []string   `json:"assumed,omitempty"`
}

// ValidateSkip is what was read and not scored.
type ValidateSkip struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
	Points int    `json:"points"`
	Scored bool   `json:"gradable"` // it would count, had it been predicted
}

// ValidateChoices is how well settings of one job are told apart.
type ValidateChoices struct {
	Jobs     int     `json:"jobs"`
	Pairs    int     `json:"pairs"` // of settings whose times differ
	Right    int     `json:"pairs_in_order"`
	Far      int     `json:"far_pairs"`
	FarRight int     `json:"far_pairs_in_order"`
	Within   int     `json:"first_within"` // jobs whose setting that is predicted fastest is as good as the fastest measured
	Lost     float64 `json:"first_slower_median"`
	Worst    float64 `json:"first_slower_worst"`
}

// ValidatePoints is the score of collectives.
type ValidatePoints struct {
	Rows                               []truth.Row
	Left                               []truth.Left
	Notes                              []string
	Unused                             []ValidateUnused
	Score                              truth.Score
	Halves, Classes, Hardware, Machine []truth.Part
	Gradable                           int
}

// ValidateRuns is the score of training runs.
type ValidateRuns struct {
	Rows  []*truth.RunRow
	Left  []truth.Left
	Score truth.RunScore
}

// Err is the reason where there was nothing to grade; the document is printed all the same.
func (d *ValidateDoc) Err() error { return d.nothing }

// Wrong reports that an error is greater than its bound.
func (d *ValidateDoc) Wrong() bool { return len(d.Missed) > 0 }

// score rates the rows.
func (p *ValidatePoints) score() *ValidatePoints {
	p.Score, p.Gradable = truth.Rate(p.Rows), len(p.Rows)
	for _, l := range p.Left {
		if !l.Fair {
			p.Gradable += l.Points
		}
	}
	p.Unused = unusedFields(p.Rows)
	p.Halves = truth.Split(p.Rows, truth.ByMiB)
	p.Classes = truth.Split(p.Rows, truth.ByClass)
	named := slices.DeleteFunc(slices.Clone(p.Rows), func(r truth.Row) bool { return r.Case.Sweep.Class == "" })
	p.Hardware = truth.Split(named, truth.ByHardware)
	p.Machine = truth.Split(p.Rows, truth.ByMachine)
	return p
}

// files are the scores of every file, where there are several.
func (p *ValidatePoints) files() []ValidateFile {
	all := truth.Split(p.Rows, func(r *truth.Row) string { return r.Case.Sweep.File })
	if len(all) < 2 {
		return nil
	}
	var list []ValidateFile
	for _, f := range all {
		parts := append([]truth.Part{{Name: "all", Score: f.Score}}, truth.Split(p.Rows, func(r *truth.Row) string {
			if r.Case.Sweep.File != f.Name {
				return ""
			}
			return truth.ByMiB(r)
		})...)
		for i, x := range validateScores(parts) {
			s := &parts[i].Score
			list = append(list, ValidateFile{
				f.Name, parts[i].Name, x, ValidateMachines{s.Machines, s.MachineMedian, s.MachineP90, s.MachineCovered},
			})
		}
	}
	return list
}

// unusedFields are what the sources of rows state and predictions cannot use, the most frequent first.
func unusedFields(rows []truth.Row) []ValidateUnused {
	var list []ValidateUnused
	at := map[string]int{}
	var last *truth.Case
	for i := range rows {
		c := rows[i].Case
		if c == last {
			continue
		}
		last = c
		for _, field := range c.Unused {
			k, ok := at[field]
			if !ok {
				k = len(list)
				at[field] = k
				list = append(list, ValidateUnused{Field: field, ID: c.Sweep.ID})
			}
			list[k].Groups++
		}
	}
	slices.SortStableFunc(list, func(a, b ValidateUnused) int { return b.Groups - a.Groups })
	return list
}

// predictRuns predicts training runs; nil where there are none.
func (all *measured) predictRuns(class string) *ValidateRuns {
	runs := all.runs
	if len(runs) == 0 {
		return nil
	}
	if class != "" {
		runs = slices.DeleteFunc(runs,
			func(t *truth.Training) bool { return !isClass(class, t.Class) && !isClass(class, t.Cluster) })
	}
	rows, left := truth.PredictRuns(runs, step.Default())
	return &ValidateRuns{Rows: rows, Left: left, Score: truth.RateRuns("all runs", rows)}
}

// newValidateDoc is the document of points, and of runs where there are any.
func newValidateDoc(p *ValidatePoints, runs *ValidateRuns) *ValidateDoc {
	s := &p.Score
	d := &ValidateDoc{
		Points: len(p.Rows), Median: s.Median, P90: s.P90, Worst: s.Worst, Coverage: s.Covered, Gradable: p.Gradable,
		Predicted: len(p.Rows),
		Machines:  ValidateMachines{s.Machines, s.MachineMedian, s.MachineP90, s.MachineCovered}, Skipped: []ValidateSkip{},
		Rows: []ValidateRow{}, Notes: p.Notes,
		Halves: validateScores(p.Halves), Classes: validateScores(p.Classes), Hardware: validateScores(p.Hardware),
		Who:    validateScores(p.Machine),
		Unused: p.Unused, Collectives: p, Training: runs,
	}
	if p.Gradable > 0 {
		d.Share = float64(len(p.Rows)) / float64(p.Gradable)
	}
	d.Files = p.files()
	d.skip(p.Left)
	for i := range p.Rows {
		r := &p.Rows[i]
		x := r.Case.Settings[r.Index]
		d.Rows = append(d.Rows, ValidateRow{
			r.Case.Sweep.ID, r.Size(), validateMicros(r.Measured()), validateMicros(r.Predicted), "us", r.APE, r.Margin,
			truth.ByClass(r), truth.ByMachine(r),
			x.Algo, x.Proto, x.Channels, r.Limit.Text, r.Case.Assumed,
		})
	}
	if runs != nil {
		d.addRuns(runs)
	}
	return d
}

// addRuns adds training runs: as the subject of the document where it has no other.
func (d *ValidateDoc) addRuns(t *ValidateRuns) {
	gradable := len(t.Rows)
	for _, l := range t.Left {
		if !l.Fair {
			gradable++
		}
	}
	d.skip(t.Left)
	if d.Points == 0 {
		d.Median, d.P90, d.Worst = t.Score.Median, t.Score.P90, t.Score.Worst
		d.Machines, d.Coverage = ValidateMachines{
			t.Score.Clusters, t.Score.ClusterMedian, t.Score.ClusterP90, t.Score.ClusterCovered,
		}, t.Score.Covered
		if gradable > 0 {
			d.Share = float64(len(t.Rows)) / float64(gradable)
		}
	}
	if c := truth.RateChoices(t.Rows); c.Jobs > 0 {
		d.Choices = &ValidateChoices{c.Jobs, c.Pairs, c.Right, c.Far, c.FarRight, c.Within, c.Lost, c.Worst}
	}
	d.Points += len(t.Rows)
	d.Predicted += len(t.Rows)
	d.Gradable += gradable
	for _, p := range truth.SplitRuns(t.Rows, func(r *truth.RunRow) string { return r.Class }) {
		d.Classes = append(d.Classes, runScore(p))
	}
	for _, p := range truth.SplitRuns(t.Rows, func(r *truth.RunRow) string { return r.Cluster }) {
		d.Who = append(d.Who, runScore(p))
	}
	for _, r := range t.Rows {
		d.Rows = append(d.Rows, ValidateRow{
			ID: r.ID, Measured: r.Seconds(), Predicted: r.Predicted, Unit: "s", APE: r.APE, Margin: r.Margin, Class: r.Class,
			Machine: r.Cluster, Limit: r.Limit(), Assumed: r.Assumed,
		})
	}
}

func (d *ValidateDoc) skip(left []truth.Left) {
	for _, l := range left {
		d.Skipped = append(d.Skipped, ValidateSkip{l.ID, l.Reason, l.Points, !l.Fair})
	}
}

func validateScores(list []truth.Part) []ValidateScore {
	out := make([]ValidateScore, 0, len(list))
	for _, p := range list {
		out = append(out, ValidateScore{p.Name, p.Points, p.Median, p.P90, p.Worst, p.Bias, p.Covered})
	}
	return out
}

func runScore(p truth.RunScore) ValidateScore {
	return ValidateScore{
		Class: p.Name, Points: p.Points, Median: p.Median, P90: p.P90, Worst: p.Worst, Bias: p.Bias, Coverage: p.Covered,
	}
}

// validateMicros is a time in µs with three digits.
func validateMicros(t unit.Time) float64 { return math.Round(float64(t)/1e3) / 1e3 }

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
	return e.readWhole(name)
}

// maxMeasured bounds a file of measurements.
const maxMeasured = 256 << 20

// readWhole reads a file of measurements, or standard input.
func (e *Env) readWhole(name string) ([]byte, error) {
	if name == "" {
		return nil, errors.New("no file given; expected what nccl-tests printed, or measured points as JSON lines")
	}
	in := e.stdin()
	if name != "-" {
		f, err := e.files().Open(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil,
				missing{fmt.Errorf("%s: no such file; expected what nccl-tests printed, or measured points as JSON lines", name)}
		case err != nil:
			return nil, failure.Cannot(err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxMeasured+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxMeasured {
		return nil, fmt.Errorf("%s: more than %d MiB of measurements", name, maxMeasured>>20)
	}
	return data, nil
}

// ValidateDoctor asks how often the doctor finds the cause of faults whose cause is known.
type ValidateDoctor struct {
	File  string `arg:"" name:"file" names:"file" help:"Faults with evidence and cause, one JSON object per line; - for standard input."`
	Class string `placeholder:"NAME" help:"Only faults of this category."`
}

// ValidateDoctorDoc is the answer to ValidateDoctor.
type ValidateDoctorDoc struct {
	Cases     int                 `json:"cases"`
	Decidable int                 `json:"decidable"` // from their evidence
	Hits      int                 `json:"hits"`      // decidable cases whose cause is among the first two findings
	Rows      []ValidateDoctorRow `json:"rows"`
	Share     float64             `json:"share"` // of hits in the decidable ones
	First     int                 `json:"first"` // decidable cases whose cause is the first finding
	Three     int                 `json:"three"` // among the first three

	// Of threads, whose cause is known by name: how sure the doctor was, and how often that was right.
	Threads *ThreadsDoc `json:"threads,omitempty"`

	Outcomes []doctor.Outcome `json:"-"`
}

// ThreadsDoc is how well the causes of threads are named.
type ThreadsDoc struct {
	Wrong       int              `json:"wrong_but_sure"` // wrong with a confidence of half or more
	Unknown     int              `json:"unknown"`        // answered by: unknown
	Nameless    int              `json:"nameless"`       // whose cause is none of the program's
	Reliability []ReliabilityRow `json:"reliability"`
	// Early is the same with what reports held before the diagnosis only.
	EarlyFirst int `json:"early_first"`
	EarlyThree int `json:"early_three"`
	EarlyWrong int `json:"early_wrong_but_sure"`

	Outcomes []doctor.ThreadOutcome `json:"-"`
}

// ReliabilityRow is a fifth of the scale of confidence.
type ReliabilityRow struct {
	Said       int     `json:"said"`
	Confidence float64 `json:"confidence"` // mean
	Right      float64 `json:"right"`      // share
}

// ValidateDoctorRow is one fault.
type ValidateDoctorRow struct {
	ID          string   `json:"id"`
	Category    string   `json:"category"`
	Wanted      []string `json:"wanted"` // findings that state the cause
	Said        []string `json:"said"`   // the first findings
	Hit         bool     `json:"hit"`
	Undecidable string   `json:"undecidable,omitempty"` // why the evidence alone cannot tell
}

// Run examines every fault and compares the findings with the cause.
func (q ValidateDoctor) Run(ctx context.Context, env Env) (doc *ValidateDoctorDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := prepare(&q); err != nil {
		return nil, err
	}
	data, err := env.measuredText(q.File)
	if err != nil {
		return nil, err
	}
	if doctor.MatchThreads(data) {
		return validateThreads(inputName(q.File), data)
	}
	list, err := doctor.ReadTrials(inputName(q.File), bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	d := &ValidateDoctorDoc{Rows: []ValidateDoctorRow{}}
	vocabulary := evidence.NewVocabulary()
	for i := range list {
		if q.Class != "" && q.Class != list[i].Category {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		o, err := doctor.Try(vocabulary, &list[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", list[i].ID, err)
		}
		d.add(o)
	}
	if d.Cases == 0 {
		return nil, fmt.Errorf("%s: no cases of class %q in it", inputName(q.File), q.Class)
	}
	d.Share = float64(d.Hits) / float64(max(d.Decidable, 1))
	return d, nil
}

func (d *ValidateDoctorDoc) add(o doctor.Outcome) {
	d.Cases++
	if o.Undecidable == "" {
		d.Decidable++
		if o.Hit {
			d.Hits++
		}
		if o.Place == 1 {
			d.First++
		}
		if o.Place >= 1 && o.Place <= 3 {
			d.Three++
		}
	}
	d.Outcomes = append(d.Outcomes, o)
	d.Rows = append(d.Rows, ValidateDoctorRow{
		o.Trial.ID, o.Trial.Category, orEmpty(o.Wanted), orEmpty(o.Said), o.Hit, o.Undecidable,
	})
}

// validateThreads scores threads by the cause they name.
func validateThreads(name string, data []byte) (*ValidateDoctorDoc, error) {
	list, err := doctor.ReadThreads(name, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	score, outcomes, err := doctor.ScoreThreads(list, false)
	if err != nil {
		return nil, err
	}
	early, _, err := doctor.ScoreThreads(list, true)
	if err != nil {
		return nil, err
	}
	t := &ThreadsDoc{
		Wrong: score.Wrong, Unknown: score.Unknown, EarlyFirst: early.First, EarlyThree: early.Three, EarlyWrong: early.Wrong,
		Outcomes: outcomes,
	}
	d := &ValidateDoctorDoc{
		Cases: score.Threads, Decidable: score.Threads, First: score.First, Three: score.Three, Rows: []ValidateDoctorRow{},
		Threads: t,
	}
	for _, b := range score.Bins {
		if b.Said > 0 {
			t.Reliability = append(t.Reliability, ReliabilityRow{
				b.Said, b.Confidence / float64(b.Said), float64(b.Right) / float64(b.Said),
			})
		}
	}
	for i := range outcomes {
		o := &outcomes[i]
		if len(o.Wanted) == 0 {
			t.Nameless++
		}
		if o.Place == 1 || o.Place == 2 {
			d.Hits++
		}
		d.Rows = append(d.Rows, ValidateDoctorRow{
			o.Thread.ID, o.Thread.CauseKey, orEmpty(o.Wanted), orEmpty(o.Said), o.Place == 1, "",
		})
	}
	d.Share = float64(d.Hits) / float64(max(d.Cases, 1))
	return d, nil
}
