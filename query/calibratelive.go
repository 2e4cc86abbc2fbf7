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

// CalibrateLive measures collectives through busbar-gpu, at the sizes that say most about all sizes, and fits a
// cluster's figures to them.
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
	if len(team) == 1 {
		return nil, errors.New("one GPU has no collectives; expected two or more (-n), or a measured step of a job (--step)")
	}
	cl, err := env.clusterOf(ctx, q.Cluster, nodes)
	if err != nil {
		return nil, err
	}
	layout, err := nccl.Block(cl, nodes, per)
	if err != nil {
		return nil, err
	}
	if err := sameGPU(cl, layout, team); err != nil {
		return nil, err
	}
	if busy := measure.Busy(ctx, team); busy != "" {
		return nil,
			failure.Cannot(fmt.Errorf("%s: what is measured beside others says nothing; try again when it is free", busy))
	}
	return q.collectives(ctx, env, team, cl, nodes, per)
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

// sameGPU refuses a cluster with other GPUs than are there.
func sameGPU(cl *cluster.Cluster, layout nccl.Layout, team device.Team) error {
	m, err := step.GPUOf(cl, layout)
	if err != nil {
		return err
	}
	for _, w := range team {
		if own, ok := hardware.GPUByName(w.Device.Name); ok && own.Name != m.Name {
			return fmt.Errorf("%s has %s, and %s is described with %s; give the cluster that is measured with -c",
				w.Hello.Host, w.Device.Name, cl.Name, m.Title)
		}
	}
	return nil
}

// collectives measures the sizes that say most, and fits.
func (q *CalibrateLive) collectives(ctx context.Context, env Env, team device.Team, cl *cluster.Cluster,
	nodes, per int,
) (*CalibrateDoc, error) {
	if err := team.Join(ctx); err != nil {
		return nil, failure.Cannot(err)
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
			return nil, err
		}
		sizes := slices.Repeat(calibrate.Sizes, 2) // what is not the same again does not count
		s, err := own.Sweep(ctx, team, kind, sizes,
			func(size unit.Bytes) { env.progress(fmt.Sprintf("%s of %v", kind, size)) })
		env.progress("")
		if err != nil {
			return nil, failure.Cannot(err)
		}
		s.File = "live"
		all = append(all, s)
	}
	return q.fitted(&env, all, team[0], cl)
}

// fitted fits the figures of collectives to what was measured.
func (q *CalibrateLive) fitted(env *Env, all result.Sweeps, by *device.Worker, cl *cluster.Cluster,
) (*CalibrateDoc, error) {
	sweeps, left, err := truth.Kept(all, "")
	if err != nil {
		return nil, err
	}
	for _, l := range left {
		env.note(fmt.Sprintf("left out: %d points: %s", l.Points, l.Reason))
	}
	release := by.Device.NCCL
	version, err := env.parseNCCL(release)
	if err != nil {
		return nil, err
	}
	var cases []*truth.Case
	for _, s := range sweeps {
		x, err := truth.On(s, cl, version, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Op, err)
		}
		cases = append(cases, x)
	}
	about := (&Calibrate{NCCL: release}).about(sweeps, version)
	d, err := fitCluster(cases, about, cl, liveSource(by.Hello.Program))
	if err != nil {
		return nil, err
	}
	d.By = by.Hello.Program
	return d, nil
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
