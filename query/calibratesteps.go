package query

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/engine/ranks"
	"busbar.dev/internal/failure"
	"busbar.dev/measure"
	"busbar.dev/step"
	"busbar.dev/workload"
)

// CalibrateSteps measures steps of a model by the files that plans of it have, by framework and kernels, and keeps how
// far off predictions are of each such kind of jobs where that foretells steps that were left out.
type CalibrateSteps struct {
	Job
	Folder string // that the jobs' files go to
	Path   string // in which programs are looked for
}

// What --live measures where nobody says: frameworks whose files are programs of PyTorch, with both of its kernels.
var (
	liveFrameworks = []string{"ddp", "fsdp", "hf"}
	liveKernels    = []workload.Kernels{workload.Eager, workload.Compiled}
)

// mostTrained bounds ten steps, whose first compiles; mostPrinted what they print.
const (
	mostTrained = 20 * time.Minute
	mostPrinted = 1 << 20
)

// RunWith trains ten steps of three jobs of every kind: the plan's own, and with a quarter of its micro-batch and of
// its sequence.
func (q CalibrateSteps) RunWith(ctx context.Context, env Env, with measure.Programs) (doc *CalibrateDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if q.Cluster == "" {
		return nil, errors.New("which cluster is measured? expected -c CLUSTER, a preset or a file")
	}
	q.Layout = cmp.Or(q.Layout, "1x1")
	cl, err := env.clusterOf(ctx, q.Cluster, 1)
	if err != nil {
		return nil, err
	}
	var kept []cluster.Calibrated
	frameworks, kernels := liveFrameworks, liveKernels
	if q.Framework != "" {
		frameworks = []string{q.Framework}
	}
	if q.Kernels != "" {
		kernels = []workload.Kernels{q.Kernels}
	}
	doc = &CalibrateDoc{By: "ten steps each of " + q.Model}
	for _, f := range frameworks {
		for _, k := range kernels {
			job := q.Job
			job.Framework, job.Kernels = f, k
			list, err := q.kind(ctx, &env, job, with)
			if ctx.Err() != nil && len(list) < 2 && !doc.Better {
				return nil, ctx.Err()
			}
			if err != nil && len(list) < 2 {
				env.note(fmt.Sprintf("%s with %s kernels is not measured: %v", f, k, err))
				continue
			}
			one, ok := step.Agree(list)
			if !ok {
				env.note(fmt.Sprintf("%s with %s kernels: steps take %.2f times as long as predicted, and would foretell "+
					"others no better; nothing is kept", f, k, one.Value))
				continue
			}
			env.note(fmt.Sprintf("%s with %s kernels: %d steps take %.2f times as long as predicted", f, k, len(list),
				one.Value))
			kept, doc.Better = append(kept, one), true
		}
	}
	cl.Calibration = withFigures(cl.Calibration, kept...)
	doc.Calibration, doc.Described = cl.Calibration, cl.Document()
	return doc, nil
}

// kind trains the jobs of a kind and says how far off each was, up to one that does not run or is cut off.
func (q *CalibrateSteps) kind(ctx context.Context, env *Env, job Job,
	with measure.Programs,
) ([]cluster.Calibrated, error) {
	var list []cluster.Calibrated
	first, err := q.train(ctx, env, &job, with, &list)
	if err != nil {
		return nil, err
	}
	job.Recompute = workload.Recompute(first.Recompute)
	for _, x := range [][2]int64{{max(1, first.Micro/4), first.Seq}, {first.Micro, first.Seq / 4}} {
		job.Micro, job.Seq, job.Global = x[0], x[1], first.Global
		if _, err := q.train(ctx, env, &job, with, &list); err != nil {
			return list, err
		}
	}
	return list, nil
}

// train trains one job as its plan has it.
func (q *CalibrateSteps) train(ctx context.Context, env *Env, job *Job, with measure.Programs,
	list *[]cluster.Calibrated,
) (*workload.Summary, error) {
	quiet := *env
	quiet.Note, quiet.notes, quiet.Progress, quiet.Steps = nil, nil, nil, nil
	name, _, _ := strings.Cut(job.Framework, "@")
	dir := filepath.Join(q.Folder, fmt.Sprintf("%s-%s-%d-%d", name, job.Kernels, job.Micro, job.Seq))
	reserve := 0.05
	plan, err := Plan{
		Cluster: job.Cluster, Layout: job.Layout, Model: job.Model, Framework: job.Framework, Kernels: job.Kernels,
		Parallel: job.Parallel, Precision: job.Precision, Recompute: job.Recompute, Micro: job.Micro, Seq: job.Seq,
		FineTuning: job.FineTuning, Global: job.Global, NCCL: job.NCCL, Emit: dir, Files: []string{"none"}, Top: 1, Pick: 1,
		Reserve:   &reserve,
		Objective: "time",
	}.Run(ctx, quiet)
	if err != nil {
		return nil, err
	}
	if err := plan.Emitted.Write(true); err != nil {
		return nil, failure.Cannot(err)
	}
	x := plan.Plans[0]
	env.progress(fmt.Sprintf("ten steps of %s, %s kernels, micro-batch %d", job.Framework, job.Kernels, x.Micro))
	defer env.progress("")
	printed := ranks.Printed{Most: mostPrinted}
	script, log := filepath.Join(dir, name+".sh"), filepath.Join(dir, "train.log")
	args := []string{"env", "-C", dir, "PATH=" + q.Path, "STEPS=10", "WARMUP=2", "SAVE=", "DATA="}
	if x.Parallel.Ranks() == 1 { // which needs no launcher, whose own start takes as long as the steps
		args = append(args, "RANK=0", "LOCAL_RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500")
	}
	failed := with.Run(ctx, mostTrained, append(args, script), &printed)
	if err := os.WriteFile(log, printed.Bytes(), 0o600); err != nil {
		return nil, failure.Cannot(err)
	}
	if failed != nil {
		lines := bytes.Split(bytes.TrimSpace(printed.Bytes()), []byte("\n"))
		lines = lines[max(0, len(lines)-3):]
		return nil, fmt.Errorf("%s: %w (%.300q)", script, failed, bytes.Join(lines, []byte("; ")))
	}
	same := *job
	same.Parallel, same.Micro, same.Global = Parallel(x.Parallel.String()), x.Micro, plan.Batch
	same.Recompute = workload.Recompute(x.Recompute)
	d, err := Step{Job: same, Took: log}.Run(ctx, quiet)
	if err != nil {
		return nil, err
	}
	figures := d.Described.Calibration.Figures
	*list = append(*list, figures[len(figures)-1])
	return &d.Job, nil
}
