package query

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/doctor"
	"busbar.dev/hardware"
	"busbar.dev/internal/words"
	"busbar.dev/nccl"
	"busbar.dev/result"
)

// DoctorBench asks which part of a measured sweep is wrong for the hardware, and what that means: every size is held against
// the time predicted for it, and against the thresholds that operators publish.
type DoctorBench struct {
	Result  string `arg:"" name:"result" page:"file" names:"file" help:"Output of nccl-tests (text, or JSON of its -J), results of bench -o, or JSON of bench; - for standard input."`
	Cluster string `short:"c" names:"cluster" placeholder:"CLUSTER" help:"Measured cluster: a preset (azure-ndv5:2), a cluster file, or any file that map reads (default: the GPUs that the output names, with their typical network)."`
	Layout  Layout `short:"l" placeholder:"NODESxGPUS" help:"Layout of the measured run, NODESxGPUS, when the output does not list its ranks."`
	Op      Op     `placeholder:"OP" help:"Collective, when the output does not name it."`
	NCCL    string `name:"nccl" placeholder:"VERSION" help:"NCCL release, when the output does not name it."`
	FailOn  string `name:"fail-on" page:"-" placeholder:"SEVERITY" default:"warn" help:"Lowest severity that makes the exit code 1: note, warn, error or never (default warn)."`
}

// DoctorBenchDoc is the answer to DoctorBench: findings, and the curves they are about.
type DoctorBenchDoc struct {
	doctor.BenchDocument

	Report *doctor.Report  `json:"-"`
	Curves []*doctor.Curve `json:"-"`
	FailOn
	Noted
}

// Wrong reports a finding of the severity that was asked for, or a graver one.
func (d *DoctorBenchDoc) Wrong() bool {
	return d.in(d.Findings)
}

// Run reads, predicts and judges.
func (q DoctorBench) Run(ctx context.Context, env Env) (doc *DoctorBenchDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := prepare(&q); err != nil {
		return nil, err
	}
	if err := (Doctor{Sources: []string{q.Result}, FailOn: q.FailOn}).Check(); err != nil {
		return nil, err
	}
	env.Verbose = nil // how the cluster was read is not what is asked
	sweeps, about, err := q.sweeps(&env)
	if err != nil {
		return nil, err
	}
	var curves []*doctor.Curve
	for _, s := range sweeps {
		x, err := q.curve(ctx, &env, s)
		if err != nil {
			return nil, err
		}
		about.fill(x)
		curves = append(curves, x)
	}
	rep := doctor.Bench(curves)
	return &DoctorBenchDoc{BenchDocument: rep.BenchDocument(curves), Report: rep, Curves: curves, FailOn: failOn(q.FailOn)}, nil
}

// curve predicts one measured sweep.
func (q *DoctorBench) curve(ctx context.Context, e *Env, s *result.Sweep) (*doctor.Curve, error) {
	if !s.OnGPUs() {
		return q.own(ctx, e, s)
	}
	if q.NCCL != "" {
		s.Library = q.NCCL
	}
	if q.Cluster != "" {
		return q.on(ctx, e, s)
	}
	return q.named(s)
}

// on predicts a sweep on the cluster that was given.
func (q *DoctorBench) on(ctx context.Context, e *Env, s *result.Sweep) (*doctor.Curve, error) {
	p := placement{cluster: q.Cluster}
	shapes := []shape{{text: s.Layout(), nodes: s.Nodes, gpus: s.PerNode}}
	cl, err := p.loadGPUs(ctx, e, shapes)
	if err != nil {
		return nil, err
	}
	k, err := truth.On(s, cl, nccl.Newest)
	if err != nil {
		return nil, err
	}
	if s.Hosts != "" && k.Hosts == "" && !hasMadeUpNames(cl) {
		e.note(fmt.Sprintf("%.200s: not hosts of %s; its first %s are predicted", s.Hosts, cl.Name, words.Plural(s.Nodes, "node")))
	}
	x, err := doctor.NewCurve(k)
	if err != nil {
		return nil, err
	}
	x.Preset = presetName(q.Cluster)
	return x, nil
}

// presetName is the preset that a cluster's word names, "" where it names none.
func presetName(word string) string {
	name, _, _ := strings.Cut(word, ":")
	for _, p := range hardware.Presets() {
		if strings.EqualFold(p.Name, name) || slices.ContainsFunc(p.Aliases, func(a string) bool { return strings.EqualFold(a, name) }) {
			return p.Name
		}
	}
	return ""
}

// named predicts a sweep on the machine that its output names: the GPUs, and
// between nodes the network that is usual with them.
func (q *DoctorBench) named(s *result.Sweep) (*doctor.Curve, error) {
	if s.GPU() == "" {
		return nil, fmt.Errorf("%s does not name its GPUs; give the cluster with -c", s.ID)
	}
	guessed := ""
	if s.Nodes > 1 {
		u, ok := hardware.UsualNetworkOf(s.GPU())
		if !ok {
			return nil, fmt.Errorf("%s ran on %d nodes, and nothing says what joins them; give the cluster with -c", s.ID, s.Nodes)
		}
		n, rate := max(1, u.NICsPerGPU*float64(s.PerNode)), u.Port.Gbps()
		s.Machine = &result.Machine{GPU: s.GPU(), NICs: &n, Gbps: &rate, Fabric: "InfiniBand"}
		guessed = fmt.Sprintf("%g InfiniBand NICs of %g Gb/s per node, as are typical for these GPUs", n, rate)
	}
	k, err := truth.Prepare(s, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; give the cluster with -c", s.ID, err)
	}
	x, err := doctor.NewCurve(k)
	if err != nil {
		return nil, err
	}
	x.Machine = fmt.Sprintf("%d × %d %s", s.Nodes, s.PerNode, s.GPU())
	if strings.HasPrefix(x.Class, "pcie") {
		guessed = "GPUs behind PCIe as is typical; the output does not state it"
	}
	if guessed != "" {
		x.Guessed, x.Assumed = true, append(x.Assumed, guessed)
	}
	return x, nil
}

// own is a sweep of our own engine: nothing of NCCL's is predicted for it, but
// NICs bound it where the cluster is known.
func (q *DoctorBench) own(ctx context.Context, e *Env, s *result.Sweep) (*doctor.Curve, error) {
	const why = "busbar's own engine ran it; predictions are of NCCL"
	machine := "busbar's engine over " + s.Transport
	if q.Cluster == "" || s.Nodes < 2 {
		return doctor.Unpredicted(s, machine, why, nil), nil
	}
	quiet := *e
	quiet.Note, quiet.Verbose = nil, nil
	cl, err := LoadAtLeast(ctx, quiet, q.Cluster, s.Nodes)
	if err != nil {
		return nil, err
	}
	x := doctor.Unpredicted(s, machine, why, cl)
	x.Preset = presetName(q.Cluster)
	return x, nil
}
