package query

import (
	"math"
	"slices"

	"busbar.dev/calibrate/truth"
	"busbar.dev/step"
	"busbar.dev/unit"
)

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
