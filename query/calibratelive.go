package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"busbar.dev/calibrate"
	"busbar.dev/calibrate/truth"
	"busbar.dev/cluster"
	"busbar.dev/engine/bench/gpu"
	"busbar.dev/engine/device"
	"busbar.dev/hardware"
	"busbar.dev/internal/failure"
	"busbar.dev/measure"
	"busbar.dev/nccl"
	"busbar.dev/result"
	"busbar.dev/step"
	"busbar.dev/unit"
)

// CalibrateLive measures GPUs through busbar-gpu and fits a cluster's figures to them: products and memory of every GPU
// for training steps, and the sizes of collectives that say most about all sizes.
type CalibrateLive struct {
	measure.GPURanks
	Cluster string
	Ops     []string // collectives to measure; none: those that training spends its time in
	Iters   int
}

// liveOps are the collectives of training.
var liveOps = []string{"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}

// RunWith measures and fits.
func (q CalibrateLive) RunWith(ctx context.Context, env Env, with measure.Programs) (doc *CalibrateDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if q.Cluster == "" {
		return nil, errors.New("which cluster is measured? expected -c CLUSTER, a preset or a file")
	}
	team, _, err := q.Workers(ctx, with, nil, nil, false)
	if err != nil {
		return nil, err
	}
	defer team.End()
	nodes, per, err := wholeGPUs(team)
	if err != nil {
		return nil, err
	}
	cl, err := env.clusterOf(ctx, q.Cluster, nodes)
	if err != nil {
		return nil, err
	}
	layout, err := nccl.Block(cl, nodes, per)
	if err != nil {
		return nil, err
	}
	model, err := sameGPU(cl, layout, team)
	if err != nil {
		return nil, err
	}
	if busy := measure.Busy(ctx, team); busy != "" {
		return nil,
			failure.Cannot(fmt.Errorf("%s: what is measured beside others says nothing; try again when it is free", busy))
	}
	d := &CalibrateDoc{
		Measured: []calibrate.Measured{}, By: team[0].Hello.Program,
	}
	if len(team) > 1 {
		if err := q.collectives(ctx, env, team, cl, d, nodes, per); err != nil {
			return nil, err
		}
	} else {
		env.note("one GPU: its products and memory are measured, no collective")
	}
	if err := q.kernels(ctx, env, team, model, cl, d); err != nil {
		return nil, err
	}
	d.Described = cl.Document()
	return d, nil
}

// wholeGPUs is how many hosts a team is on, and how many ranks each has. Ranks that share a GPU say nothing about it.
func wholeGPUs(team device.Team) (nodes, per int, err error) {
	on, seen := map[string]int{}, map[string]bool{}
	for _, w := range team {
		key := w.Hello.Host + " " + w.Device.PCI
		if seen[key] {
			return 0, 0, fmt.Errorf("two ranks share GPU %s of %s, which says nothing about the cluster; expected at most one "+
				"rank per GPU (-n)", w.Device.PCI, w.Hello.Host)
		}
		seen[key] = true
		on[w.Hello.Host]++
	}
	if nodes, per = result.Evenly(on, len(team)); nodes == 0 || nodes*per != len(team) {
		return 0, 0, errors.New("hosts have different numbers of GPUs; expected the same number of ranks on each (-n)")
	}
	return nodes, per, nil
}

// sameGPU is the GPU of the cluster, which must be the one that is there.
func sameGPU(cl *cluster.Cluster, layout nccl.Layout, team device.Team) (hardware.GPUModel, error) {
	m, err := step.GPUOf(cl, layout)
	if err != nil {
		return m, err
	}
	for _, w := range team {
		if own, ok := hardware.GPUByName(w.Device.Name); ok && own.Name != m.Name {
			return m, fmt.Errorf("%s has %s, and %s is described with %s; give the cluster that is measured with -c",
				w.Hello.Host, w.Device.Name, cl.Name, m.Title)
		}
	}
	return m, nil
}

// collectives measures the sizes that say most, and fits.
func (q *CalibrateLive) collectives(ctx context.Context, env Env, team device.Team, cl *cluster.Cluster,
	d *CalibrateDoc, nodes, per int,
) error {
	if err := team.Join(ctx); err != nil {
		return failure.Cannot(err)
	}
	ops := q.Ops
	if len(ops) == 0 {
		ops = liveOps
	}
	own := gpu.Own{
		Warm: 5, Iters: q.Iters, Check: true, Timeout: 2 * time.Minute, Cluster: q.Cluster,
		Setting: gpu.Auto,
	}
	var all result.Sweeps
	for _, op := range ops {
		kind, err := Op(op).kind()
		if err != nil {
			return err
		}
		sizes := slices.Repeat(calibrate.Sizes, 2) // what is not the same again does not count
		s, err := own.Sweep(ctx, team, kind, sizes,
			func(size unit.Bytes) { env.progress(fmt.Sprintf("%s of %v", kind, size)) })
		env.progress("")
		if err != nil {
			return failure.Cannot(err)
		}
		s.File = "live"
		all = append(all, s)
	}
	return q.fitted(&env, all, team[0].Device.NCCL, cl, d)
}

// fitted fits the figures of collectives to what was measured.
func (q *CalibrateLive) fitted(env *Env, all result.Sweeps, release string, cl *cluster.Cluster,
	d *CalibrateDoc,
) error {
	sweeps, left, err := truth.Kept(all, "")
	if err != nil {
		return err
	}
	for _, l := range left {
		env.note(fmt.Sprintf("left out: %d points: %s", l.Points, l.Reason))
	}
	version, err := env.parseNCCL(release)
	if err != nil {
		return err
	}
	var cases []*truth.Case
	for _, s := range sweeps {
		x, err := truth.On(s, cl, version)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Op, err)
		}
		cases = append(cases, x)
	}
	about := (&Calibrate{NCCL: release}).about(sweeps, version)
	by := d.By
	fit, err := fitCluster(cases, about, cl, liveSource(by))
	if err != nil {
		return err
	}
	*d, d.By = *fit, by
	return nil
}

// liveSource is what figures that were measured here have for their source.
func liveSource(by string) string {
	return fmt.Sprintf("calibrate --live, %s, %s", by, time.Now().UTC().Format(time.DateOnly))
}

// CalibrationFile is where the calibration of a cluster file belongs, so that predictions on it find it: beside it. ""
// for what is no cluster file; one that has its calibration itself is refused.
func (e *Env) CalibrationFile(ctx context.Context, word string) (string, error) {
	name := calibrationName(word)
	if name == "" || !e.exists(word) {
		return "", nil
	}
	quiet := *e
	quiet.Note, quiet.notes = nil, nil
	cl, err := LoadAtLeast(ctx, quiet, word, 1)
	if err != nil {
		return "", err
	}
	if cl.Calibration != nil && !e.exists(name) {
		return "", fmt.Errorf("%s has a calibration of its own, which predictions take before one beside it; expected -o "+
			"FILE.yaml", word)
	}
	return name, nil
}

// kernels measures products and memory on all GPUs at once, as they are in training, and fits the figures of steps.
func (q *CalibrateLive) kernels(ctx context.Context, env Env, team device.Team, model hardware.GPUModel,
	cl *cluster.Cluster, d *CalibrateDoc,
) error {
	list, err := measure.Kernels(ctx, team, model, env.progress, env.note)
	env.progress("")
	if err != nil {
		return err
	}
	start, err := step.Calibrated(cl)
	if err != nil {
		return err
	}
	fit, err := calibrate.Kernels(model, list, start)
	if err != nil {
		return failure.Cannot(err)
	}
	d.GPU, fit.GPUs = fit, len(team)
	if fit.Kept = fit.LeftOut < fit.Before && fit.Before > kernelsOff; fit.Kept {
		keepKernels(cl, d, fit.Moved)
	}
	return nil
}

// kernelsOff is the mean error of kernels up to which the built-in figures are kept. They were fitted to whole steps,
// in which products run at other clocks and streams do not reach the rate of a copy: on an H200 that was 5% off them,
// figures of kernels made the median error of five steps 6.3% instead of 4.3%.
const kernelsOff = 0.07

// keepKernels puts figures of steps into the calibration, in place of earlier ones.
func keepKernels(cl *cluster.Cluster, d *CalibrateDoc, list []calibrate.Moved) {
	c := &cluster.Calibration{}
	if old := cl.Calibration; old != nil {
		*c = *old
	}
	now := map[string]bool{}
	for _, m := range list {
		now[m.Name] = true
	}
	c.Figures = slices.DeleteFunc(slices.Clone(c.Figures), func(x cluster.Calibrated) bool { return now[x.Name] })
	for _, m := range list {
		c.Figures = append(c.Figures, cluster.Calibrated{
			Name: m.Name, Value: m.Value, Unit: m.Unit, Low: m.Low, High: m.High, Source: liveSource(d.By),
		})
	}
	cl.Calibration, d.Calibration, d.Better = c, c, true
}
