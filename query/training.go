package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
)

// against holds how fast a training went, by its log, against the step that is predicted for a job. What the log says
// of the batch and the sequences is taken where the job leaves it open.
func (d *DoctorDoc) against(ctx context.Context, env *Env, job Job, set *evidence.Set) error {
	t := d.Training
	switch {
	case job.Model == "" && job.Cluster != "" && len(d.Tests) > 0:
		return d.tables(ctx, env, job)
	case job.Model == "":
		return nil
	case set.Lines == 0 && set.Bytes == 0:
		return errors.New("-m has no effect: the inputs are empty; expected the log of a training, or a trace")
	case t == nil || t.Bar || job.Cluster == "":
		return errors.New("-m has no effect: with -c it predicts training logs and traces; these inputs are none of them, " +
			"or -c is missing")
	}
	if job.Global == 0 {
		job.Global = int64(t.Batch)
	}
	if job.Seq == 0 {
		job.Seq = int64(t.Sequence)
	}
	var other []string
	doc, err := Step{Job: job, priced: func(p *pricedStep) { other = p.otherThan(set) }}.Run(ctx, *env)
	if in := interface{ Field() string }(nil); errors.As(err, &in) && in.Field() == "nic" {
		env.note("the log is not compared with a prediction: " + err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	row := &doc.Rows[0]
	d.Predicted = row
	what, slower := slowerThan(t, row, job.Global)
	if slower == 0 {
		env.note("the log is not compared with a prediction: it names no tokens/s, samples/s or MFU, and a step's " +
			"time only tells with its batch: give --global-batch")
		return nil
	}
	f := finding.Finding{
		ID: "training-as-predicted", Severity: finding.Note, Confidence: 0.9, Where: t.File, Evidence: []finding.Quote{},
		Title: "The training goes as fast as predicted: " + what,
		Cause: fmt.Sprintf("%s on %s takes %.3g times as long as predicted, which may be off by a factor of %.2g.",
			job.Model, job.Cluster, slower,
			max(row.Margin, 1)),
	}
	bar := max(row.Margin, 1.2)
	switch {
	case len(other) > 0:
		f.ID, f.Severity = "training-other", finding.Warn
		f.Title = "The log is of another job than was described, which says nothing of its speed: " +
			strings.Join(other, "; ")
		f.Fix = "give the log of that job, or flags that describe the log's"
		d.Healthy = false
	case slower*bar < 1:
		f.ID, f.Confidence = "training-fast", 0.5
		f.Title = fmt.Sprintf("The training is %.3g times as fast as predicted: %s", 1/slower, what)
		f.Fix = "most likely the log is of another job or of other settings than described: check batch, GPUs and model"
		d.Healthy = false
	case slower > bar:
		f.ID, f.Severity = "training-slow", finding.Warn
		f.Title = "The training is slower than predicted: " + what
		f.Fix = "busbar step says what limits the predicted step; a profiler's trace, given to busbar doctor with " +
			"the same -c and -m, where the rest of the time goes"
		d.Healthy = false
	}
	d.Findings = append([]finding.Finding{f}, d.Findings...)
	return nil
}

// tables holds each file with output of nccl-tests against its prediction.
func (d *DoctorDoc) tables(ctx context.Context, env *Env, job Job) error {
	for _, file := range d.Tests {
		doc, err := DoctorBench{Result: file, Cluster: job.Cluster, Layout: job.Layout, NCCL: job.NCCL}.Run(ctx, *env)
		if err != nil {
			return err
		}
		for _, f := range doc.Findings {
			f.Title, f.Where = file+": "+f.Title, file
			d.Findings = append(d.Findings, f)
		}
	}
	slices.SortStableFunc(d.Findings, finding.BySeverity)
	d.Healthy, d.Tests = d.Healthy && !finding.Serious(d.Findings), nil
	return nil
}

// slowerThan compares what a log says most of with a predicted step: in words, and how many times as long it takes; 0
// where nothing can be compared. A step's time is that of a batch, which the log or the job must name.
func slowerThan(t *evidence.Training, row *StepRow, batch int64) (what string, times float64) {
	for _, c := range []struct {
		measured, predicted float64
		format              string
	}{
		{t.Tokens, row.TokensPerS, "%.0f tokens/s, predicted %.0f"},
		{t.PerGPU, row.PerGPU, "%.0f tokens/s per GPU, predicted %.0f"},
		{t.Samples, float64(row.Job.Global) / row.Step.Seconds(), "%.4g samples/s, predicted %.4g"},
		{100 * t.MFU, 100 * row.MFU, "MFU %.1f%%, predicted %.1f%%"},
	} {
		if c.measured > 0 && c.predicted > 0 {
			return fmt.Sprintf(c.format, c.measured, c.predicted), c.predicted / c.measured
		}
	}
	if t.Step == nil || batch == 0 || row.Step == 0 {
		return "", 0
	}
	return fmt.Sprintf("%.3g s a step of %d sequences, predicted %v", t.Step.Median, batch, row.Step),
		t.Step.Median / row.Step.Seconds()
}
