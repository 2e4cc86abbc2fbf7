package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/result"
	"busbar.dev/unit"
)

type validateCmd struct {
	common
	Files     []string `arg:"" name:"file" help:"Measured points, one JSON object a line; results that busbar bench gpu kept; with -c also outputs of nccl-tests. - for standard input."`
	Cluster   string   `short:"c" placeholder:"CLUSTER" help:"The cluster that busbar's own results and outputs of nccl-tests were measured on: a preset, or any file that map reads."`
	Layout    string   `short:"l" placeholder:"NxG" help:"Nodes and GPUs of each that took part, where those do not say."`
	NCCL      string   `name:"nccl" placeholder:"VERSION" help:"The release that ran, where those do not say."`
	Class     string   `placeholder:"NAME" help:"Only points of a class: one that the table shows, with or without its size, or a machine."`
	Rows      bool     `help:"Every point: measured, predicted, error."`
	MaxMedian *float64 `placeholder:"SHARE" help:"Exit 1 when the median error is greater (0.12 is 12%), or nothing was predicted. None: no bound."`
	MaxP90    *float64 `name:"max-p90" placeholder:"SHARE" help:"Exit 1 when the 90th percentile is greater (0.4 is 40%), or nothing was predicted. None: no bound."`
	runs      []*truth.Training
}

// Help says what is scored and ends with examples.
func (validateCmd) Help() string {
	return "Predicts every measured point from its description alone (GPU, joining, NICs, NCCL release, collective, size) and prints how far off the predictions are: " +
		"|predicted − measured| / measured. Points marked anomalous or of grade C are not scored; what cannot be predicted is listed with the reason. " +
		"Training runs are predicted as `busbar step` does, and compared by the time of a step. docs/manual/validate.md describes the form of the file.\n\n" +
		"The built-in figures were fitted on published sweeps: on those, or others of the same machines, the error printed here is smaller than that of a machine the model has not seen. " +
		"`busbar calibrate --cross FILE` gives the honest figure: every machine is predicted by figures fitted without any of its points, in about half a minute.\n\n" +
		"Examples:\n" +
		"  busbar validate docs/examples/points.jsonl\n" +
		"  busbar validate docs/examples/points.jsonl --class nvlink-single-node --rows\n" +
		"  busbar validate docs/examples/points.jsonl --max-median 0.12 --max-p90 0.4 --json"
}

// Run reads, predicts, scores.
func (c *validateCmd) Run(e *env) error {
	for _, x := range []*float64{c.MaxMedian, c.MaxP90} {
		if x != nil && !(*x >= 0) {
			return fmt.Errorf("a threshold of %g; expected a share such as 0.12", *x)
		}
	}
	if done, err := c.examined(e); done {
		return err
	}
	rows, left, notes, err := c.predicted(e)
	if err != nil {
		return err
	}
	trained := newTraining(c.runs, c.Class)
	if c.Class != "" && !(trained != nil && len(trained.rows) > 0) {
		if rows, err = pick(rows, c.Class); err != nil {
			return err
		}
		left = slices.DeleteFunc(left, func(l truth.Left) bool { return !is(c.Class, l.Class) && !is(c.Class, l.Machine) })
	}
	v := newValidation(rows, left)
	v.notes = notes
	if err := c.write(e, v, trained); err != nil {
		return err
	}
	if len(rows) == 0 && (trained == nil || len(trained.rows) == 0) && c.MaxMedian == nil && c.MaxP90 == nil {
		return c.nothing(v, trained)
	}
	if trained != nil && len(rows) == 0 {
		v.all = truth.Score{Points: trained.all.Points, Median: trained.all.Median, P90: trained.all.P90}
	}
	return c.judge(e, v)
}

// nothing is the error of files in which there is nothing to grade, with the first reason.
func (c *validateCmd) nothing(v *validation, t *training) error {
	var names []string
	for _, f := range c.Files {
		names = append(names, inputName(f))
	}
	left := v.left
	if t != nil {
		left = append(left, t.left...)
	}
	points := 0
	for _, l := range left {
		points += max(l.Points, 1)
	}
	where := strings.Join(names, ", ")
	if points == 0 {
		return fmt.Errorf("%s: nothing to grade: no measured points in it", where)
	}
	return fmt.Errorf("%s: nothing to grade: %s left out, the first because: %s", where, counted(points, "point"), left[0].Reason)
}

// write prints collectives, training runs, or both.
func (c *validateCmd) write(e *env, v *validation, t *training) error {
	if c.JSON {
		d := v.document()
		if t != nil {
			t.fill(d)
		}
		return writeIndented(e.stdout, d)
	}
	if t != nil {
		if err := t.print(e.stdout, c.Rows || c.Verbose); err != nil || len(v.rows)+len(v.left) == 0 {
			return err
		}
		fmt.Fprintln(e.stdout)
	}
	return v.print(e.stdout, c.Rows || c.Verbose)
}

// judge compares the score with the thresholds.
func (c *validateCmd) judge(e *env, v *validation) error {
	missed := false
	for _, x := range []struct {
		name string
		got  float64
		most *float64
	}{{"median error", v.all.Median, c.MaxMedian}, {"90th percentile", v.all.P90, c.MaxP90}} {
		if x.most == nil || v.all.Points > 0 && x.got <= *x.most {
			continue
		}
		missed = true
		switch {
		case c.Quiet:
		case v.all.Points == 0:
			fmt.Fprintf(e.stderr, "%s: no point was predicted, so none is known to be within %.1f%%\n", x.name, 100**x.most)
		default:
			fmt.Fprintf(e.stderr, "%s %.1f%%, more than %.1f%%\n", x.name, 100*x.got, 100**x.most)
		}
	}
	if missed {
		return errWrong
	}
	return nil
}

// measured reads files of measured points.
func (e *env) measured(names []string) (sweeps result.Sweeps, left []truth.Left, err error) {
	for _, name := range names {
		s, l, err := e.measuredFile(name)
		if err != nil {
			return nil, nil, err
		}
		sweeps, left = append(sweeps, s...), append(left, l...)
	}
	return sweeps, left, nil
}

func (e *env) measuredFile(name string) (result.Sweeps, []truth.Left, error) {
	data, err := e.measuredText(name)
	if err != nil {
		return nil, nil, err
	}
	return truth.Read(inputName(name), bytes.NewReader(data))
}

// inputName is how a file is called in messages.
func inputName(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}

// measuredText reads a file of measurements.
func (e *env) measuredText(name string) ([]byte, error) {
	if info, err := os.Stat(name); name != "-" && err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s: a folder; expected a file of measured points", name)
	}
	return e.readWhole(name)
}

// pick keeps the rows of a class: ours, the source's, or a machine.
func pick(rows []truth.Row, class string) ([]truth.Row, error) {
	var kept []truth.Row
	names := map[string]bool{}
	for i := range rows {
		r := &rows[i]
		ours := truth.ByClass(r)
		names[ours[:strings.LastIndexByte(ours, '/')]] = true
		if is(class, ours) || is(class, truth.ByHardware(r)) || is(class, truth.ByMachine(r)) {
			kept = append(kept, *r)
		}
	}
	if len(kept) > 0 {
		return kept, nil
	}
	list := make([]string, 0, len(names))
	for n := range names {
		list = append(list, n)
	}
	slices.Sort(list)
	return nil, fmt.Errorf("--class %s: no points of that class; there are %s, each with /small, /middle or /large, the hw_class of the file, and the machines of the table", class, strings.Join(list, ", "))
}

// is compares a class with the name or a beginning of it that ends at a slash.
func is(want, name string) bool {
	if len(want) > len(name) || !strings.EqualFold(want, name[:len(want)]) {
		return false
	}
	return len(want) == len(name) || name[len(want)] == '/'
}

// validation is everything that validate prints.
type validation struct {
	rows                           []truth.Row
	left                           []truth.Left
	all                            truth.Score
	halves, classes, hardware, who []truth.Part
	gradable                       int
	notes                          []string
}

func newValidation(rows []truth.Row, left []truth.Left) *validation {
	v := &validation{rows: rows, left: left, all: truth.Rate(rows), gradable: len(rows)}
	for _, l := range left {
		if !l.Fair {
			v.gradable += l.Points
		}
	}
	v.halves = truth.Split(rows, truth.ByMiB)
	v.classes = truth.Split(rows, truth.ByClass)
	v.hardware = truth.Split(rows, truth.ByHardware)
	v.who = truth.Split(rows, truth.ByMachine)
	return v
}

func micros(t unit.Time) float64 { return math.Round(float64(t)/1e3) / 1e3 }
