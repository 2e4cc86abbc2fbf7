// Fit fits the built-in figures of busbar's model to published measurements, and says how far off predictions are of
// machines, publishers and training clusters that the fit has not seen, with all mechanisms of the model and without
// some. Files hold measured points as docs/manual/calibrate.md describes them; where they have no collectives, training
// runs.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"busbar.dev/calibrate/truth"
	"busbar.dev/result"
	"busbar.dev/sim"
	"busbar.dev/step"
)

// question is what the command line asks.
type question struct {
	cross, figures, publishers, ablation bool
	points                               int
	without                              string
	files                                []file
	out                                  io.Writer
}

// file is what one of the files holds.
type file struct {
	name   string
	sweeps result.Sweeps
	runs   []*truth.Training
}

func main() {
	log.SetFlags(0)
	q := question{out: os.Stdout}
	flag.BoolVar(&q.cross, "cross", false, "predict every machine by figures fitted on the others; with -figures: print "+
		"error bars as Go")
	flag.BoolVar(&q.figures, "figures", false, "fit all figures and print them as Go")
	flag.BoolVar(&q.publishers, "publishers", false,
		"with -cross: leave out all that one publisher measured, not one machine")
	flag.BoolVar(&q.ablation, "ablation", false, "the left-out error without each mechanism of the model; many minutes")
	flag.IntVar(&q.points, "points", 0,
		"with -cross: calibrate every machine with `N` points of one sweep, and score its others")
	flag.StringVar(&q.without, "without", "", "with -cross: leave out these mechanisms, `NAMES` with commas between them")
	flag.Parse()
	err := q.read(flag.Args())
	if err == nil {
		err = q.run()
	}
	if err != nil {
		log.Fatal(err)
	}
}

func (q *question) read(names []string) error {
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f := file{name: name}
		if f.sweeps, f.runs, _, err = truth.Read(name, bytes.NewReader(data)); err != nil {
			return err
		}
		q.files = append(q.files, f)
	}
	return nil
}

// run answers.
func (q *question) run() error {
	var sweeps result.Sweeps
	var runs []*truth.Training
	for _, f := range q.files {
		sweeps, runs = append(sweeps, f.sweeps...), append(runs, f.runs...)
	}
	steps := len(sweeps) == 0
	switch {
	case len(sweeps)+len(runs) == 0:
		return errors.New("no measured collectives and no training runs; expected files of them")
	case q.ablation && steps:
		return q.ablateSteps(runs)
	case q.ablation:
		return q.ablate(sweeps)
	case q.cross && steps:
		return q.crossSteps(runs)
	case q.cross:
		return q.crossCollectives(sweeps)
	case q.figures && steps:
		return q.stepFigures(runs)
	case q.figures:
		return q.fit(sweeps)
	}
	return errors.New("expected -figures, -cross or -ablation, and files")
}

func gather(sweeps result.Sweeps, without sim.Mechanisms) ([]*truth.Case, error) {
	cases, _ := truth.Gather(sweeps, without)
	if len(cases) == 0 {
		return nil, errors.New("no measured collective that can be predicted")
	}
	return cases, nil
}

// fit prints the figures of collectives, who informs them, and sim.Fitted.
func (q *question) fit(sweeps result.Sweeps) error {
	cases, err := gather(sweeps, 0)
	if err != nil {
		return err
	}
	s := published(cases)
	if err := s.run(); err != nil {
		return err
	}
	rows, err := truth.Rows(cases, &s.f)
	if err != nil {
		return err
	}
	var felt which
	for i := range felt {
		felt[i] = len(s.touch[i]) > 0
	}
	machines, publishers, err := informed(cases, &s.f, &felt)
	if err != nil {
		return err
	}
	var list [][]string
	for i, v := range s.f {
		unit, _, _ := sim.FigureRange(i)
		note := ""
		if held[sim.FigureName(i)] {
			note = "from the reference case (docs/baskerville.md), not fitted here"
		} else if s.points[i] == 0 {
			note = "no point depends on it: from its neighbours or a typical value"
		}
		list = append(list, []string{
			sim.FigureName(i), fmt.Sprintf("%.4g", v), unit, fmt.Sprint(s.points[i]), fmt.Sprint(machines[i]),
			fmt.Sprint(publishers[i]), note,
		})
	}
	q.table([]string{"figure", "value", "unit", "points", "machines", "publishers", ""}, list)
	r := truth.Rate(rows)
	fmt.Fprintf(q.out, "%d points: median %s, 90th percentile %s\n\n", r.Points, percent(r.Median), percent(r.P90))
	return writeGo(q.out, &s.f)
}

// writeGo writes the figures as the body of sim.Fitted.
func writeGo(w io.Writer, f *sim.Figures) error {
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
	_, err := io.WriteString(w, "\treturn &Figures{\n"+b.String()+"\n\t}\n")
	return err
}

// stepFigures prints the figures of training steps.
func (q *question) stepFigures(runs []*truth.Training) error {
	rows, _ := truth.PredictRuns(runs, step.Guess())
	fit, err := fitSteps(rows, step.Guess())
	if err != nil {
		return err
	}
	for i, v := range fit.Figures {
		unit, _, _ := step.Range(i)
		fmt.Fprintf(q.out, "%-22s %8.4g %s\n", step.Name(i), v, unit)
	}
	if err := fit.predict(); err != nil {
		return err
	}
	s := truth.RateRuns("", rows)
	_, err = fmt.Fprintf(q.out, "%d runs: median %s, 90th percentile %s\n", s.Points, percent(s.Median), percent(s.P90))
	return err
}

// crossCollectives predicts every machine by figures fitted to the others.
func (q *question) crossCollectives(sweeps result.Sweeps) error {
	mechanisms, err := sim.ParseMechanisms(q.without)
	if err != nil {
		return err
	}
	cases, err := gather(sweeps, mechanisms)
	if err != nil {
		return err
	}
	of := by((*truth.Case).Machine)
	if q.publishers {
		of = publisher
	}
	s := published(cases)
	if err := s.run(); err != nil {
		return err
	}
	var before, rows []truth.Row
	if q.points > 0 {
		before, rows, err = crossCalibrated(cases, &s.f, of, q.points)
	} else if rows, err = cross(cases, &s.f, of); err == nil {
		refit(rows, of)
	}
	switch {
	case err != nil:
		return err
	case len(rows) == 0:
		return fmt.Errorf("no sweep of more than %d points; give a smaller -points", q.points)
	case q.figures:
		return writeMargins(q.out, margins(rows))
	}
	fmt.Fprint(q.out, "Every machine is predicted by figures that were fitted without its points.\n\n")
	q.collectives(rows)
	if q.points > 0 {
		s := truth.Rate(before)
		fmt.Fprintf(q.out, "Every machine was calibrated with %d points of one sweep, and all its other points are scored; "+
			"without calibration "+
			"their median is %s, averaged over machines %s.\n", q.points, percent(s.Median), percent(s.MachineMedian))
	}
	return nil
}

// crossSteps predicts training runs by figures fitted without their cluster, their publisher and their GPU.
func (q *question) crossSteps(runs []*truth.Training) (err error) {
	if q.without != "" {
		if runs, err = runsWithout(runs, q.without); err != nil {
			return err
		}
	}
	rows, _ := truth.PredictRuns(runs, step.Guess())
	fit, err := fitSteps(rows, step.Guess())
	if err != nil {
		return err
	}
	if err := fit.predict(); err != nil {
		return err
	}
	scores := q.stepScores("nothing", rows)
	order := []struct {
		what string
		of   func(*truth.RunRow) string
	}{{"gpus", ofGPU}, {"publishers", ofPublisher}, {"clusters", ofCluster}}
	if q.publishers {
		order[1], order[2] = order[2], order[1]
	}
	for _, x := range order { // the last one's predictions are what the other tables and the bars are about
		if err := fit.cross(x.of); err != nil {
			return err
		}
		scores = append(scores, q.stepScores(x.what, rows)...)
	}
	if q.figures {
		return writeStepGo(q.out, &fit.Figures, newStepMargins(rows))
	}
	q.table([]string{
		"file", "left out", "runs", "median", "90%", "averaged over clusters", "in the bar", "averaged", "pairs in order",
	}, scores)
	fmt.Fprintf(q.out, "The following is with %s left out.\n\n", order[2].what)
	q.runs(rows)
	return nil
}

// nothing is the row of an ablation that leaves nothing out.
const nothing = "nothing: all mechanisms"

// ablate prints the left-out error of the last file's points, without each mechanism of the model.
func (q *question) ablate(sweeps result.Sweeps) error {
	scored, publishers := map[*result.Sweep]bool{}, map[string]bool{}
	for _, s := range q.files[len(q.files)-1].sweeps {
		scored[s] = true
	}
	cases, err := gather(sweeps, 0)
	if err != nil {
		return err
	}
	x, err := fold(cases, publisher)
	if err != nil {
		return err
	}
	rows, err := x.rows()
	if err != nil {
		return err
	}
	for i := range rows {
		if scored[rows[i].Case.Sweep] {
			publishers[publisher(rows[i].Case)] = true
		}
	}
	list := [][]string{ablated(nothing, rows, scored)}
	for i, name := range sim.MechanismNames() {
		if cases, err = gather(sweeps, 1<<i); err != nil {
			return err
		}
		rows, refits, err := x.again(cases, func(name string) bool { return publishers[name] })
		if err != nil {
			return err
		}
		list = append(list, ablated(name, rows, scored))
		log.Printf("without %s: %d publishers fitted anew", name, refits)
	}
	fmt.Fprint(q.out, "Every point is predicted by parameters fitted without any point of its publisher.\n\n")
	q.table([]string{"without", "points", "from 1 MiB", "90%", "below", "machines' median", "machines' 90%", "in the bar"},
		list)
	return nil
}

// ablated is one row.
func ablated(name string, rows []truth.Row, scored map[*result.Sweep]bool) []string {
	refit(rows, publisher)
	rows = slices.DeleteFunc(slices.Clone(rows), func(r truth.Row) bool { return !scored[r.Case.Sweep] })
	s := truth.Rate(rows)
	var large, small truth.Part
	for _, half := range truth.Split(rows, truth.ByMiB) {
		if half.Name == "from 1 MiB" {
			large = half
		} else {
			small = half
		}
	}
	return []string{
		name, fmt.Sprint(s.Points), percent(large.Median), percent(large.P90), percent(small.Median),
		percent(s.MachineMedian), percent(s.MachineP90), percent(s.MachineCovered),
	}
}

// collectives prints scores of points.
func (q *question) collectives(rows []truth.Row) {
	s := truth.Rate(rows)
	q.scores("", append([]truth.Part{{Name: "all points", Score: s}}, truth.Split(rows, truth.ByMiB)...))
	fmt.Fprintf(q.out, "averaged over %d machines: median %s, 90th percentile %s, in the bar %s\n\n",
		s.Machines, percent(s.MachineMedian), percent(s.MachineP90), percent(s.MachineCovered))
	if len(q.files) > 1 {
		q.fileScores(rows)
	}
	q.scores("class (small < 64 KiB, large > 16 MiB)", truth.Split(rows, truth.ByClass))
	q.scores("hw_class of the source (small ≤ 256 KiB, large ≥ 64 MiB)", truth.Split(rows, func(r *truth.Row) string {
		if r.Case.Sweep.Class == "" {
			return ""
		}
		return truth.ByHardware(r)
	}))
	q.scores("machine", truth.Split(rows, truth.ByMachine))
}

// fileScores prints the scores of every file.
func (q *question) fileScores(rows []truth.Row) {
	var list [][]string
	for _, f := range q.files {
		mine := slices.DeleteFunc(slices.Clone(rows), func(r truth.Row) bool { return r.Case.Sweep.File != f.name })
		for _, p := range append([]truth.Part{{Name: "all", Score: truth.Rate(mine)}}, truth.Split(mine, truth.ByMiB)...) {
			list = append(list, []string{
				f.name, p.Name, fmt.Sprint(p.Points), percent(p.Median), percent(p.P90),
				fmt.Sprintf("%s (%d)", percent(p.MachineMedian), p.Machines), percent(p.Covered), percent(p.MachineCovered),
			})
		}
	}
	q.table([]string{"file", "sizes", "points", "median", "90%", "averaged over machines", "in the bar", "averaged"}, list)
}

// runs prints scores of training runs.
func (q *question) runs(rows []*truth.RunRow) {
	s := truth.RateRuns("all runs", rows)
	for _, x := range []struct {
		head string
		list []truth.Part
	}{
		{"", []truth.Part{s}},
		{"hw_class of the source", truth.SplitRuns(rows, func(r *truth.RunRow) string { return r.Class })},
		{"cluster", truth.SplitRuns(rows, ofCluster)},
	} {
		q.scores(x.head, x.list)
	}
	fmt.Fprintf(q.out, "averaged over %d clusters: median %s, 90th percentile %s, in the bar %s\n",
		s.Machines, percent(s.MachineMedian), percent(s.MachineP90), percent(s.MachineCovered))
	c := truth.RateChoices(rows)
	fmt.Fprintf(q.out, "%d jobs were run in several ways: %d of %d pairs in order (far apart: %d of %d); the way "+
		"predicted fastest is as good as "+
		"the fastest in %d (median %s slower, worst %s)\n", c.Jobs, c.Right, c.Pairs, c.FarRight, c.Far, c.Within,
		percent(c.Lost), percent(c.Worst))
}

func (q *question) scores(head string, parts []truth.Part) {
	var list [][]string
	for _, p := range parts {
		list = append(list, []string{
			p.Name, fmt.Sprint(p.Points), percent(p.Median), percent(p.P90), percent(p.Worst), fmt.Sprintf("%.2f", p.Bias),
			percent(p.Covered),
		})
	}
	q.table([]string{head, "points", "median", "90%", "worst", "pred/meas", "in the bar"}, list)
}

// stepScores is a row for each file.
func (q *question) stepScores(what string, rows []*truth.RunRow) (list [][]string) {
	for _, f := range q.files {
		var mine []*truth.RunRow
		for _, r := range rows {
			if slices.ContainsFunc(f.runs, func(t *truth.Training) bool { return t.ID == r.ID }) {
				mine = append(mine, r)
			}
		}
		list = append(list, append([]string{f.name, what, fmt.Sprint(len(mine))}, stepScore(mine)...))
	}
	return list
}

// stepScore is the score of training runs as cells.
func stepScore(rows []*truth.RunRow) []string {
	s, c := truth.RateRuns("", rows), truth.RateChoices(rows)
	return []string{
		percent(s.Median), percent(s.P90), fmt.Sprintf("%s (%d)", percent(s.MachineMedian), s.Machines), percent(s.Covered),
		percent(s.MachineCovered), fmt.Sprintf("%d of %d", c.Right, c.Pairs),
	}
}

func (q *question) table(head []string, rows [][]string) {
	w := tabwriter.NewWriter(q.out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{head}, rows...) {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	w.Flush()
	fmt.Fprintln(q.out)
}

func percent(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }
