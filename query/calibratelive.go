package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"busbar.dev/calibrate/truth"
	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/engine/bench/gpu"
	"busbar.dev/engine/device"
	"busbar.dev/hardware"
	"busbar.dev/internal/failure"
	"busbar.dev/nccl"
	"busbar.dev/result"
	"busbar.dev/step"
	"busbar.dev/unit"
)

// CalibrateLive measures GPUs through busbar-gpu and fits a cluster's figures to them: products and memory of every GPU
// for training steps, and the sizes of collectives that say most about all sizes.
type CalibrateLive struct {
	GPURanks
	Cluster string
	Ops     []string // collectives to measure; none: those that training spends its time in
	Count   int      // sizes of each
	Iters   int
	Torch   string // a Python with PyTorch and transformers, to measure steps with; "" for none
}

// liveOps are the collectives of training.
var liveOps = []string{"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}

// liveMost bounds what a collective is measured with.
const liveMost = unit.GiB

// RunWith measures and fits.
func (q CalibrateLive) RunWith(ctx context.Context, env Env, with Programs) (doc *CalibrateDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if q.Cluster == "" {
		return nil, errors.New("which cluster is measured? expected -c CLUSTER, a preset or a file")
	}
	team, _, err := q.workers(ctx, with, nil, nil, false)
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
	if busy := busyTeam(ctx, team); busy != "" {
		return nil,
			failure.Cannot(fmt.Errorf("%s: what is measured beside others says nothing; try again when it is free", busy))
	}
	d := &CalibrateDoc{
		Cluster: cl, Loose: []string{}, Ends: []string{}, Measured: []CalibrateMeasured{}, By: team[0].Hello.Program,
	}
	if len(team) > 1 {
		if err := q.collectives(ctx, env, team, d, nodes, per); err != nil {
			return nil, err
		}
	} else {
		env.note("one GPU: its products and memory are measured, no collective")
	}
	if err := q.kernels(ctx, env, with, team, model, d); err != nil {
		return nil, err
	}
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
func (q *CalibrateLive) collectives(ctx context.Context, env Env, team device.Team, d *CalibrateDoc, nodes,
	per int,
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
		Setting: gpu.Setting{Algo: "auto", Proto: "auto"},
	}
	var all result.Sweeps
	quiet := env
	quiet.Note, quiet.notes = nil, nil
	for _, op := range ops {
		which, err := Suggest{
			Cluster: q.Cluster, Layout: LayoutOf(nodes, per), Op: Op(op), NCCL: team[0].Device.NCCL, Count: q.Count,
		}.upTo(ctx, quiet, liveMost)
		if err != nil {
			return err
		}
		kind, err := coll.ParseKind(op)
		if err != nil {
			return fmt.Errorf("--op: %w", err)
		}
		var sizes []unit.Bytes
		for _, p := range which.Points {
			sizes = append(sizes, p.Size)
		}
		slices.Sort(sizes)
		s, err := own.Sweep(ctx, team, kind, sizes,
			func(size unit.Bytes) { env.progress(fmt.Sprintf("%s of %v", kind, size)) })
		env.progress("")
		if err != nil {
			return failure.Cannot(err)
		}
		s.File = "live"
		all = append(all, s)
	}
	return q.fitted(&env, all, team[0].Device.NCCL, d)
}

// fitted fits the figures of collectives to what was measured.
func (q *CalibrateLive) fitted(env *Env, all result.Sweeps, release string, d *CalibrateDoc) error {
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
		x, err := truth.On(s, d.Cluster, version)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Op, err)
		}
		cases = append(cases, x)
	}
	about := (&Calibrate{NCCL: release}).about(sweeps, version)
	by := d.By
	fit, err := fitCluster(cases, about, d.Cluster, liveSource(by))
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
