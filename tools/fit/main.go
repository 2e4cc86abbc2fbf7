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
)

// question is what the command line asks.
type question struct {
	cross, figures, publishers, ablation bool
	sites, write                         bool
	spoil                                float64
	files                                []file
	out                                  io.Writer
}

// file is what one of the files holds.
type file struct {
	name   string
	sweeps result.Sweeps
	runs   []*training
}

func main() {
	log.SetFlags(0)
	q := question{out: os.Stdout}
	flag.BoolVar(&q.cross, "cross", false, "predict every machine by figures fitted on the others; with -figures: print "+
		"error bars as predict/bars.csv")
	flag.BoolVar(&q.figures, "figures", false, "fit all figures and print them")
	flag.BoolVar(&q.write, "write", false, "with -figures: write sim/figures.csv; with -cross: write predict/bars.csv")
	flag.BoolVar(&q.publishers, "publishers", false,
		"with -cross: leave out all that one publisher measured, not one machine")
	flag.BoolVar(&q.ablation, "ablation", false, "the left-out error without each mechanism of the model; many minutes")
	flag.BoolVar(&q.sites, "calibrate", false,
		"calibrate every machine with five sizes of one sweep, and score its other points")
	flag.Float64Var(&q.spoil, "spoil", 1, "with -calibrate: multiply one of the five by `N`, each in turn")
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
		if f.sweeps, _, err = truth.Read(name, bytes.NewReader(data)); err != nil {
			return err
		}
		f.runs = readRuns(data)
		q.files = append(q.files, f)
	}
	return nil
}

// run answers.
func (q *question) run() error {
	var sweeps result.Sweeps
	var runs []*training
	for _, f := range q.files {
		sweeps, runs = append(sweeps, f.sweeps...), append(runs, f.runs...)
	}
	steps := len(sweeps) == 0
	switch {
	case len(sweeps)+len(runs) == 0:
		return errors.New("no measured collectives and no training runs; expected files of them")
	case q.ablation:
		return q.ablate(sweeps)
	case q.sites:
		cases, err := gather(sweeps, 0)
		if err != nil {
			return err
		}
		return q.calibrations(cases)
	case q.cross && steps:
		return q.crossSteps(runs)
	case q.cross:
		return q.crossCollectives(sweeps)
	case q.figures && !steps:
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

// The tables of figures and error bars, from the module's folder.
const (
	figuresFile = "../../sim/figures.csv"
	barsFile    = "../../predict/bars.csv"
)

// fit fits the figures of collectives that several publishers inform, the others at their usual values, and writes
// sim/figures.csv.
func (q *question) fit(sweeps result.Sweeps) error {
	cases, err := gather(sweeps, 0)
	if err != nil {
		return err
	}
	s := published(cases)
	if err := s.run(); err != nil {
		return err
	}
	by, err := informed(cases, &s.f)
	if err != nil {
		return err
	}
	for i := range s.free { // who informs a figure depends on the others a little
		s.free[i] = by[i].publishers >= fewestPublishers
		if !s.free[i] {
			s.f[i] = usual()[i]
		}
	}
	if err := s.run(); err != nil {
		return err
	}
	text, err := withFigures(figuresFile, &s.f, &by)
	if err == nil && q.write {
		return os.WriteFile(figuresFile, text, 0o644)
	}
	fmt.Fprintf(q.out, "%s", text)
	return err
}

// withFigures is the table with other values and who informs them; everything else is as it is.
func withFigures(name string, f *sim.Figures, by *[nFigures]informers) ([]byte, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(data), "\n")
	for n, line := range lines {
		cells := strings.SplitN(line, ",", 10)
		i, err := sim.FigureByName(cells[0])
		if err != nil {
			continue
		}
		cells[6], cells[7], cells[8] = strconv.FormatFloat(f[i], 'g', 4, 64), fmt.Sprint(by[i].machines),
			fmt.Sprint(by[i].publishers)
		lines[n] = strings.Join(cells, ",")
	}
	return []byte(strings.Join(lines, "\n")), nil
}

// crossCollectives predicts every machine by figures fitted to the others.
func (q *question) crossCollectives(sweeps result.Sweeps) error {
	of := by((*truth.Case).Machine)
	if q.publishers {
		of = publisher
	}
	cases, err := gather(sweeps, 0)
	if err != nil {
		return err
	}
	s := published(cases)
	if err := s.run(); err != nil {
		return err
	}
	rows, err := cross(cases, &s.f, of)
	switch {
	case err != nil:
		return err
	case q.figures:
		return writeBars(q.out, margins(rows))
	}
	if q.write {
		f, err := os.Create(barsFile)
		if err != nil {
			return err
		}
		if err := errors.Join(writeBars(f, margins(rows)), f.Close()); err != nil {
			return err
		}
	}
	refit(rows, of)
	fmt.Fprint(q.out, "Every machine is predicted by figures that were fitted without its points.\n\n")
	q.collectives(rows)
	return nil
}

// crossSteps predicts training runs by figures fitted to all, and by figures fitted without their cluster.
func (q *question) crossSteps(runs []*training) error {
	rows, _ := predictRuns(runs, guessed())
	fit, err := fitSteps(rows, guessed())
	if err != nil {
		return err
	}
	if err := fit.predict(); err != nil {
		return err
	}
	scores := q.stepScores("nothing", rows)
	if err := fit.cross(ofCluster); err != nil {
		return err
	}
	if q.figures {
		return writeStepGo(q.out, &fit.Figures, newStepMargins(rows))
	}
	q.table(stepHead, append(scores, q.stepScores("clusters", rows)...))
	fmt.Fprint(q.out, "The following is with clusters left out.\n\n")
	q.runs(rows)
	return nil
}

// stepHead names the columns of stepScores.
var stepHead = []string{"file", "left out", "runs", "median", "90%", "averaged over clusters", "in the bar", "averaged"}

// nothing is the row of an ablation that leaves nothing out.
const nothing = "nothing: all mechanisms"

// collMechanisms are that row and the names of sim's mechanisms, in the order of their constants.
var collMechanisms = []string{
	nothing, "launch-mode", "switch-pairs", "rooted-loops", "host-copies", "rack-domains",
	"host-memory", "peer-rules", "store-forward", "switch-chunks", "simple-start",
}

// ablate prints the error of left-out publishers without each mechanism of the model. Figures stay as they were fitted
// with all of them: what is as good without a mechanism then is better still with figures of its own.
func (q *question) ablate(sweeps result.Sweeps) error {
	cases, err := gather(sweeps, 0)
	if err != nil {
		return err
	}
	all := published(cases)
	if err := all.run(); err != nil {
		return err
	}
	fits, err := folds(cases, &all.f, publisher)
	if err != nil {
		return err
	}
	var list [][]string
	for i, name := range collMechanisms {
		if cases, err = gather(sweeps, 1<<i>>1); err != nil {
			return err
		}
		rows, err := predictedBy(cases, fits, publisher)
		if err != nil {
			return err
		}
		refit(rows, publisher)
		s, halves := truth.Rate(rows), map[string]truth.Score{}
		for _, half := range truth.Split(rows, truth.ByMiB) {
			halves[half.Name] = half.Score
		}
		large, small := halves["from 1 MiB"], halves["below 1 MiB"]
		list = append(list, []string{
			name, fmt.Sprint(s.Points), percent(large.Median), percent(large.P90), percent(small.Median), percent(small.P90),
			percent(s.MachineMedian), percent(s.MachineP90), percent(s.Covered), fmt.Sprintf("×%.2f", s.Bar),
		})
	}
	fmt.Fprint(q.out, "Every point is predicted by parameters fitted without any point of its publisher.\n\n")
	q.table([]string{
		"without", "points", "from 1 MiB", "90%", "below", "90%", "machines' median", "machines' 90%", "in the bar",
		"median bar",
	}, list)
	return nil
}

// collectives prints scores of points.
func (q *question) collectives(rows []truth.Row) {
	s := truth.Rate(rows)
	q.scores("", append([]truth.Part{{Name: "all points", Score: s}}, truth.Split(rows, truth.ByMiB)...))
	fmt.Fprintf(q.out, "averaged over %d machines with five points or more: median %s, 90th percentile %s, in the bar "+
		"%s\n\n",
		s.Machines, percent(s.MachineMedian), percent(s.MachineP90), percent(s.MachineCovered))
	if len(q.files) > 1 {
		q.fileScores(rows)
	}
	q.scores("class (small < 64 KiB, large > 16 MiB)", truth.Split(rows, truth.ByClass))
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
func (q *question) runs(rows []*runRow) {
	s := rateRuns("all runs", rows)
	q.scores("", append([]truth.Part{s}, splitRuns(rows, ofKind)...))
	q.scores("cluster", splitRuns(rows, ofCluster))
	fmt.Fprintf(q.out, "averaged over %d clusters: median %s, 90th percentile %s, in the bar %s\n",
		s.Machines, percent(s.MachineMedian), percent(s.MachineP90), percent(s.MachineCovered))
}

func (q *question) scores(head string, parts []truth.Part) {
	var list [][]string
	for _, p := range parts {
		list = append(list, []string{
			p.Name, fmt.Sprint(p.Points), percent(p.Median), percent(p.P90), percent(p.Worst), fmt.Sprintf("%.2f", p.Bias),
			percent(p.Covered), fmt.Sprintf("×%.2f", p.Bar),
		})
	}
	q.table([]string{head, "points", "median", "90%", "worst", "pred/meas", "in the bar", "median bar"}, list)
}

// stepScores is a row for each file.
func (q *question) stepScores(what string, rows []*runRow) (list [][]string) {
	for _, f := range q.files {
		var mine []*runRow
		for _, r := range rows {
			if slices.ContainsFunc(f.runs, func(t *training) bool { return t.ID == r.ID }) {
				mine = append(mine, r)
			}
		}
		list = append(list, append([]string{f.name, what, fmt.Sprint(len(mine))}, stepScore(mine)...))
	}
	return list
}

// stepScore is the score of training runs as cells.
func stepScore(rows []*runRow) []string {
	s := rateRuns("", rows)
	return []string{
		percent(s.Median), percent(s.P90), fmt.Sprintf("%s (%d)", percent(s.MachineMedian), s.Machines), percent(s.Covered),
		percent(s.MachineCovered),
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
