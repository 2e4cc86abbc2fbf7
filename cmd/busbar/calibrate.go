package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"busbar.dev/input/clusterfile"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/outfile"
	"busbar.dev/measure"
	"busbar.dev/query"
	"busbar.dev/report"
	"busbar.dev/workload"
)

type calibrateCmd struct {
	common
	settings
	query.Calibrate
	measure.GPURanks
	measuredJob
	Live      bool     `help:"Measure now, through busbar-gpu: the five sizes of collectives that --suggest names, each twice, or with -m ten steps of that model by framework and kernels; keep the calibration beside the cluster file (or in -o)."`
	Output    string   `short:"o" placeholder:"FILE" help:"Write the cluster with its calibration to FILE, for use as -c FILE; - is standard output. predict -c site.yaml also uses a site.calibration.yaml beside it."`
	Suggest   bool     `help:"Print which sizes to measure so that a calibration helps most; takes no measurements."`
	Check     bool     `help:"Fit nothing: predict the measured points and print how far off the predictions are."`
	Class     string   `placeholder:"NAME" help:"With --check: only points of this class (as the table shows it, with or without its size) or of this machine."`
	MaxMedian *float64 `placeholder:"SHARE" help:"With --check: exit 1 when the median error exceeds this (0.12 is 12%), or nothing was predicted (default: no bound)."`
	MaxP90    *float64 `name:"max-p90" placeholder:"SHARE" help:"With --check: exit 1 when the 90th percentile of the error exceeds this (0.4 is 40%), or nothing was predicted (default: no bound)."`
}

// measuredJob is a job of which one step was measured.
type measuredJob struct {
	Step      string             `placeholder:"TIME|LOG" help:"A measured training step (5.9s) of the job of -m, or the log of its training."`
	Model     string             `short:"m" names:"model" placeholder:"MODEL" help:"With --step: model."`
	Parallel  query.Parallel     `placeholder:"dp=8,tp=4,…" help:"With --step: parallel degrees."`
	Framework string             `placeholder:"NAME[@RELEASE]" help:"With --step: framework."`
	Global    int64              `name:"global-batch" aliases:"batch,gbs,global-batch-size" placeholder:"N" help:"With --step: global batch."`
	Micro     int64              `name:"micro-batch" aliases:"mbs,micro-batch-size" placeholder:"N" help:"With --step: micro-batch."`
	Seq       int64              `aliases:"seq-length,seq-len" placeholder:"N" help:"With --step: sequence length in tokens."`
	Precision workload.Precision `placeholder:"KIND" help:"With --step: precision."`
	Recompute workload.Recompute `placeholder:"MODE" help:"With --step: activation recomputation."`
	Kernels   workload.Kernels   `placeholder:"KIND" help:"With --step: kernels between matrix products."`
	LoRA      string             `name:"lora" placeholder:"rank=16,…" help:"With --step: LoRA adapters."`
}

// measured is the cluster with the measured step of a job.
func (c *calibrateCmd) measured(e *env) (*query.CalibrateDoc, error) {
	if len(c.Files) > 0 || c.Live {
		return nil, errors.New("--step is a measurement itself; leave files and --live out")
	}
	doc, err := query.Step{Job: c.job(), Took: c.Step}.Run(e.ctx, e.query(c.common))
	if err != nil {
		return nil, err
	}
	m := doc.Measured
	if m == nil {
		return nil, errors.New(doc.Rows[0].Bottleneck.Text)
	}
	return &query.CalibrateDoc{Better: true, Step: m, Described: doc.Described, Noted: doc.Noted}, nil
}

// job is the one that is described.
func (c *calibrateCmd) job() query.Job {
	j := &c.measuredJob
	return query.Job{
		Cluster: c.Cluster, Layout: c.Layout, Devices: c.Devices, Model: j.Model, Parallel: j.Parallel,
		Framework: j.Framework,
		Global:    j.Global, Micro: j.Micro, Seq: j.Seq, Precision: j.Precision, Recompute: j.Recompute, Kernels: j.Kernels,
		NCCL: c.NCCL, FineTuning: query.FineTuning{LoRA: j.LoRA},
	}
}

// trained measures steps of the job's kinds.
func (c *calibrateCmd) trained(e *env) (*query.CalibrateDoc, error) {
	dir, err := os.MkdirTemp("", "busbar-steps-")
	if err != nil {
		return nil, failure.Cannot(err)
	}
	defer os.RemoveAll(dir)
	exe, err := os.Executable() // which the files call
	if err != nil {
		return nil, failure.Cannot(err)
	}
	path := filepath.Dir(exe) + string(filepath.ListSeparator) + os.Getenv("PATH")
	return query.CalibrateSteps{Job: c.job(), Folder: dir, Path: path}.RunWith(e.ctx, e.measuring(c.common),
		gpuPrograms())
}

// Run fits a cluster's figures, or says what to measure for that.
func (c *calibrateCmd) Run(e *env) error {
	switch {
	case c.Devices != "" && (c.Suggest || c.Live):
		return errors.New("--devices is of measurements that there are; leave it out with --suggest and --live")
	case (c.Check || c.Suggest) && (c.Step != "" || c.Output != ""):
		return errors.New("--check and --suggest fit nothing and write nothing; leave --step and -o out")
	case c.Check:
		return c.validate(e)
	case c.Suggest:
		return shown(e, c.common, report.Suggest)(query.Suggest{
			Cluster: c.Cluster, Layout: c.Layout, Op: cmp.Or(c.Op, "all_reduce"), NCCL: c.NCCL,
		}.Run(e.ctx, e.query(c.common)))
	case c.Step == "" && c.measuredJob != (measuredJob{}) && (!c.Live || c.Model == ""):
		return errors.New("a job is described, and no step of it; expected --step TIME or LOG too")
	case c.Live && len(c.Files) > 0:
		return fmt.Errorf("--live measures itself; leave %s out, or --live", c.Files[0])
	}
	if c.Live {
		if err := c.beside(e); err != nil {
			return err
		}
	}
	if err := c.checkOutput(); err != nil {
		return err
	}
	// what is written may be what is read, and somebody else's step would be lost between
	if c.Output != "" && !isStdout(c.Output) {
		unlock, err := outfile.Lock(e.ctx, c.Output, func() { c.note(e, c.Output+" is being calibrated by another busbar") })
		if err != nil {
			return err
		}
		defer unlock()
	}
	if err := c.into(e); err != nil {
		return err
	}
	var doc *query.CalibrateDoc
	var err error
	switch {
	case c.Step != "":
		doc, err = c.measured(e)
	case c.Live && c.Model != "":
		doc, err = c.trained(e)
	case c.Live:
		doc, err = c.live().RunWith(e.ctx, e.measuring(c.common), gpuPrograms())
	default:
		doc, err = c.Calibrate.Run(e.ctx, e.query(c.common))
	}
	if errors.Is(err, query.ErrWrong) {
		fmt.Fprintln(e.stderr, err)
		return errWrong
	}
	if err != nil {
		return err
	}
	if c.Output != "" && doc.Better {
		cl, err := doc.Described.Cluster()
		if err == nil {
			if was, _ := os.ReadFile(c.Output); !isStdout(c.Output) && bytes.Contains(was, []byte("# ")) {
				c.note(e, c.Output+" is written anew, without its comments")
			}
			err = e.writeOut(c.Output, func(w io.Writer) error { return clusterfile.Write(w, cl) })
		}
		if err != nil {
			return err
		}
	}
	return wrong(doc, c.tell(e, doc))
}

// validate predicts measured points, and says how good that is.
func (c *calibrateCmd) validate(e *env) error {
	doc, err := query.Validate{
		Files: c.Files, Cluster: c.Cluster, Layout: c.Layout, NCCL: c.NCCL, Devices: c.Devices, Class: c.Class,
		MaxMedian: c.MaxMedian, MaxP90: c.MaxP90,
	}.Run(e.ctx, e.query(c.common))
	if err == nil {
		err = show(e, c.common, doc, report.Validate)
	}
	if err == nil {
		err = doc.Err()
	}
	if err != nil {
		return err
	}
	for _, text := range doc.Missed {
		c.say(e, "%s", text)
	}
	return wrong(doc, nil)
}

// beside has the calibration go where predictions on the cluster's file look for it, unless -o says where.
func (c *calibrateCmd) beside(e *env) error {
	env := e.query(c.common)
	if c.Output != "" {
		return nil
	}
	var err error
	if c.Output, err = env.CalibrationFile(e.ctx, c.Cluster); err != nil {
		return err
	}
	return e.writable(c.Output)
}

// live is what --live asks.
func (c *calibrateCmd) live() query.CalibrateLive {
	q := query.CalibrateLive{GPURanks: c.GPURanks, Cluster: c.Cluster, Iters: 20}
	if c.Op != "" {
		q.Ops = strings.Split(string(c.Op), ",")
	}
	return q
}

// tell says what was found: on standard error where the cluster has standard output.
func (c *calibrateCmd) tell(e *env, doc *query.CalibrateDoc) error {
	text := func(p *report.Page, d *query.CalibrateDoc) { report.Calibrate(p, d, c.Output) }
	switch {
	case c.Output == "" || !isStdout(c.Output):
		return show(e, c.common, doc, text)
	case c.Quiet:
		return nil
	}
	return report.Print(e.stderr, report.TextOptions{}, text, doc)
}

// into refuses to overwrite what is not the cluster that is calibrated; the calibration beside a cluster's file is read
// with it.
func (c *calibrateCmd) into(e *env) error {
	if f, err := os.Stat(c.Output); err != nil || !f.Mode().IsRegular() || f.Size() == 0 || c.Output == c.Cluster {
		return nil
	}
	env := e.query(c.common)
	env.Note = nil
	if name, err := env.CalibrationFile(e.ctx, c.Cluster); err != nil || name == c.Output {
		return err
	}
	return fmt.Errorf("-o %s is there, and what it holds would be lost; expected another name, or -c %[1]s too, which "+
		"adds "+
		"to it", c.Output)
}

// checkOutput refuses a place for the cluster that is none. A name without an ending is that of a file.
func (c *calibrateCmd) checkOutput() error {
	switch ext := filepath.Ext(c.Output); {
	case c.Output == "" || !isStdout(c.Output) && (ext == "" || ext == ".yaml" || ext == ".yml"):
		return nil
	case !isStdout(c.Output):
		return fmt.Errorf("-o %s: a cluster file is YAML; expected a name that ends in .yaml", c.Output)
	case c.JSON:
		return fmt.Errorf("-o %s and --json both want standard output; take one of them", c.Output)
	}
	return nil
}
