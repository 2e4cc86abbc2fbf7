package query

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/coll"
	"busbar.dev/doctor"
	"busbar.dev/hardware"
	"busbar.dev/input"
	"busbar.dev/input/nccltests"
	"busbar.dev/input/perftest"
	"busbar.dev/internal/words"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/result"
	"busbar.dev/result/trace"
)

// DoctorBench asks which part of a measured sweep is wrong for the hardware, and what that means: every size is held
// against the time predicted for it.
type DoctorBench struct {
	Result  string `arg:"" name:"result" page:"file" names:"file" help:"Output of nccl-tests (text, or JSON of its -J), results of bench -o, or JSON of bench; - for standard input."`
	Cluster string `short:"c" names:"cluster" placeholder:"CLUSTER" help:"Measured cluster: a preset (azure-ndv5:2), a cluster file, or any file that map reads (default: the GPUs that the output names, with their typical network)."`
	Layout  Layout `short:"l" placeholder:"NODESxGPUS" help:"Layout of the measured run, NODESxGPUS, when the output does not list its ranks."`
	Op      Op     `placeholder:"OP" help:"Collective, when the output does not name it."`
	NCCL    string `name:"nccl" placeholder:"VERSION" help:"NCCL release, when the output does not name it."`
	FailOn  string `name:"fail-on" page:"-" placeholder:"SEVERITY" enum:"note,warn,error,never" default:"warn" help:"Lowest severity that makes the exit code 1: note, warn, error or never (default warn)."`
}

// DoctorBenchDoc is the answer to DoctorBench: findings, and the curves they are about.
type DoctorBenchDoc struct {
	*doctor.Report
	Sweeps []*doctor.Curve `json:"sweeps"`
	FailOn
	Noted
}

// Wrong reports a finding of the severity that was asked for, or a graver one.
func (d *DoctorBenchDoc) Wrong() bool {
	return d.in(d.Findings)
}

// Run reads, predicts and judges.
func (q DoctorBench) Run(ctx context.Context, env Env) (doc *DoctorBenchDoc, err error) {
	defer prepared(&q, &env, &doc, &err)()
	if err != nil {
		return nil, err
	}
	env.Verbose = nil // how the cluster was read is not what is asked
	sweeps, about, err := q.sweeps(&env)
	if err != nil {
		return nil, err
	}
	for _, n := range about.notes {
		env.note(n)
	}
	d := &DoctorBenchDoc{FailOn: failOn(q.FailOn)}
	for _, s := range sweeps {
		x, err := q.curve(ctx, &env, s)
		if err != nil {
			return nil, err
		}
		x.Unsure = about.unsure
		x.Quote(about.lines)
		d.Sweeps = append(d.Sweeps, x)
	}
	d.Report = doctor.Bench(d.Sweeps)
	return d, nil
}

// curve predicts one measured sweep.
func (q *DoctorBench) curve(ctx context.Context, e *Env, s *result.Sweep) (*doctor.Curve, error) {
	if !s.OnGPUs() {
		return doctor.Unpredicted(s, "busbar's engine over "+s.Transport,
			"busbar's own engine ran it; predictions are of NCCL"), nil
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
	if q.Layout == "" && s.Nodes == 1 && s.Hosts == "" && s.Devices == nil { // nothing lists its ranks
		cl, err := p.loadGPUs(ctx, e, []shape{{nodes: 1}})
		if err != nil {
			return nil, err
		}
		for _, gpus := range nccl.GPUs(cl) {
			if per := len(gpus); per > 0 && s.Ranks%per == 0 {
				s.Nodes, s.PerNode = s.Ranks/per, per
			}
			break
		}
	}
	shapes := []shape{{text: s.Layout(), nodes: s.Nodes, gpus: s.PerNode}}
	cl, err := p.loadGPUs(ctx, e, shapes)
	if err != nil {
		return nil, err
	}
	k, err := truth.On(s, cl, nccl.Newest, nil)
	if err != nil {
		return nil, err
	}
	if s.Hosts != "" && k.Hosts == "" && !hasMadeUpNames(cl) {
		e.note(fmt.Sprintf("%.200s: not hosts of %s; its first %s are predicted", s.Hosts, cl.Name,
			words.Plural(s.Nodes, "node")))
	}
	return doctor.NewCurve(k)
}

// presetName is the preset that a cluster's word names, "" where it names none.
func presetName(word string) string {
	name, _, _ := strings.Cut(word, ":")
	return hardware.FindPreset(name).Name
}

// named predicts a sweep on the machine that its output names: the GPUs, and
// between nodes the network that is usual with them.
func (q *DoctorBench) named(s *result.Sweep) (*doctor.Curve, error) {
	if s.GPU() == "" {
		return doctor.Unpredicted(s, "GPUs that are not named",
				"the output does not name its GPUs; give the cluster with -c"),
			nil
	}
	machine, guessed := fmt.Sprintf("%d × %d %s", s.Nodes, s.PerNode, s.GPU()), ""
	if s.Nodes > 1 {
		u, ok := hardware.UsualNetworkOf(s.GPU())
		if !ok {
			return doctor.Unpredicted(s, machine, "nothing says what joins the nodes; give the cluster with -c"), nil
		}
		n, rate := max(1, u.NICsPerGPU*float64(s.PerNode)), u.Port.Gbps()
		s.Machine = &result.Machine{GPU: s.GPU(), NICs: &n, Gbps: &rate, Fabric: "InfiniBand"}
		guessed = fmt.Sprintf("%g InfiniBand NICs of %g Gb/s per node, as are typical for these GPUs", n, rate)
	}
	k, err := truth.Prepare(s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; give the cluster with -c", s.ID, err)
	}
	x, err := doctor.NewCurve(k)
	if err != nil {
		return nil, err
	}
	x.Machine = machine
	switch way, _, _ := strings.Cut(x.Class, "-"); way {
	case "pcie", "host", "bridge":
		guessed = "GPUs behind PCIe as is typical; the output does not state it"
	}
	if guessed != "" {
		x.Guessed, x.Assumed = true, append(x.Assumed, guessed)
	}
	return x, nil
}

// about is what the text of an output says about its rows.
type about struct {
	lines  []string // of nccl-tests' text
	notes  []string // of what in it is not used
	unsure string
}

// left says in an error what was left out of a text.
func (a *about) left() string { return strings.Join(append([]string{""}, a.notes...), "; ") }

// sweeps reads the file and puts rows that belong together into sweeps.
func (q *DoctorBench) sweeps(e *Env) (result.Sweeps, *about, error) {
	data, err := e.measuredText(q.Result)
	if err != nil {
		return nil, nil, err
	}
	name := inputName(q.Result)
	all, say, err := q.read(name, data)
	if err != nil {
		return nil, nil, err
	}
	index := map[string]int{}
	var groups [][]result.Row
	rivals := severalWays(all)
	for _, r := range all.Rows() {
		nodes, per, err := q.shape(r.Sweep)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		key := fmt.Sprint(r.Op, r.Dtype, nodes, per, r.Transport, r.Library, r.Tool)
		if rivals {
			key += r.Algo + r.Proto
		}
		i, ok := index[key]
		if !ok {
			i = len(groups)
			index[key] = i
			groups = append(groups, nil)
		}
		if r.Size > 0 && r.Middle() > 0 {
			groups[i] = append(groups[i], r)
		}
	}
	var list result.Sweeps
	for _, rows := range groups {
		s := result.Merge(rows)
		nodes, per, err := q.shape(s)
		if err != nil || len(rows) == 0 || nodes*per < 2 {
			continue
		}
		s.ID, s.File, s.Dtype = name, name, cmp.Or(s.Dtype, "float")
		s.Nodes, s.PerNode, s.Ranks = nodes, per, nodes*per
		s.Env = nil // held against what NCCL chooses by itself, or by the algorithm that the output names
		list = append(list, s)
	}
	if len(list) == 0 {
		return nil, nil, fmt.Errorf("%s: no row of two ranks and more with a size and a time above 0%s", name, say.left())
	}
	return list, say, nil
}

// severalWays reports whether one size was run by several algorithms on purpose; else
// the library chose by size, and all sizes are one sweep.
func severalWays(list result.Sweeps) bool {
	algo := map[string]string{}
	for _, r := range list.Rows() {
		key := fmt.Sprint(r.Op, r.Dtype, r.Ranks, r.Nodes, r.Transport, r.Library, r.Size)
		how := r.Algo + " " + r.Proto
		if old, ok := algo[key]; ok && old != how {
			return true
		}
		algo[key] = how
	}
	return false
}

// shape is the layout of a sweep, from its ranks or from -l.
func (q *DoctorBench) shape(s *result.Sweep) (nodes, per int, err error) {
	if q.Layout != "" {
		if nodes, per, err = predict.ParseLayout(string(q.Layout)); err != nil {
			return 0, 0, err
		}
		if nodes*per != s.Ranks && s.Ranks > 1 {
			return 0, 0, fmt.Errorf("-l %s is %d ranks; the output has %d", q.Layout, nodes*per, s.Ranks)
		}
		return nodes, per, nil
	}
	if s.Nodes > 0 && s.PerNode > 0 {
		return s.Nodes, s.PerNode, nil
	}
	if s.Ranks < 2 {
		return 0, 0, fmt.Errorf("the output does not list its ranks; give them with -l NODESxGPUS")
	}
	return 1, s.Ranks, nil
}

// read reads any of the formats.
func (q *DoctorBench) read(name string, data []byte) (result.Sweeps, *about, error) {
	text := bytes.TrimSpace(data)
	found, err := input.Table.As(name, data)
	switch x := found.(type) {
	case []perftest.Table:
		return nil, nil, notCollective(name)
	case result.Sweeps:
		return x, &about{}, err
	case *nccltests.Output:
		if text[0] != '{' {
			return q.tables(name, data, x, err)
		}
	}
	if len(text) == 0 || text[0] != '{' {
		return nil, nil, fmt.Errorf("%s: neither what nccl-tests printed nor results of busbar bench", name)
	}
	s, err := result.ReadDocument(name, text)
	if err == nil && s == nil {
		err = fmt.Errorf("%s: no rows of a sweep in it", name)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w; expected the JSON of busbar bench, or what nccl-tests printed", err)
	}
	if s.Op == coll.None {
		if s.Op, err = q.op(name); err != nil {
			return nil, nil, err
		}
	}
	if err := s.Check(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return result.Sweeps{s}, &about{}, nil
}

// tables takes what nccl-tests printed.
func (q *DoctorBench) tables(name string, data []byte, out *nccltests.Output,
	err error,
) (result.Sweeps, *about, error) {
	if err != nil {
		return nil, nil, err
	}
	if q.Op != "" && !slices.ContainsFunc(out.Tables, func(t nccltests.Table) bool { return t.Op == coll.None }) {
		return nil, nil, errors.New("--op has no effect: the output names its collective; leave it out")
	}
	say := &about{lines: strings.Split(string(data), "\n")}
	for _, w := range out.Warnings {
		say.notes = append(say.notes, w.Source+": "+w.Text)
	}
	for i := range out.Tables {
		t := &out.Tables[i]
		if t.Op == coll.None && len(t.Sweeps) > 0 {
			op, err := q.op(name)
			if bus, alg := t.Best(); err != nil && alg > 0 {
				err = fmt.Errorf("%w; it reaches a busbw of %.4g GB/s, %.3g of algbw", err, float64(bus)/1e9,
					float64(bus/alg))
			}
			if n := t.NRanks(); err != nil && len(t.Ranks) == 0 {
				err = fmt.Errorf("%w; its ranks are not listed either: -l NODESxGPUS%s, and the cluster with -c", err,
					map[bool]string{true: fmt.Sprintf(" (%d ranks by busbw/algbw)", n)}[n > 0])
			}
			if err != nil {
				return nil, nil, fmt.Errorf("%w%s", err, say.left())
			}
			t.Name(op)
		}
		say.unsure = cmp.Or(say.unsure, unsure(t))
	}
	list, err := out.Sweeps()
	return list, say, err
}

// op is the collective that --op names, or the name of a file whose text names none.
func (q *DoctorBench) op(name string) (op coll.Kind, err error) {
	if q.Op != "" {
		return q.Op.kind()
	}
	if op = trace.Operation(filepath.Base(name)); op == coll.None {
		err = fmt.Errorf("%s: nothing says which collective this is; give it with --op", name)
	}
	return op, err
}

// unsure says why the times of small messages of a table are less sure than those
// that the model was fitted on; "" where they are not.
func unsure(t *nccltests.Table) string {
	switch {
	case t.Iters > 0 && t.Iters < 10:
		return fmt.Sprintf("%d iterations are few for small messages", t.Iters)
	case t.Library == "":
		return "the output does not name the release of NCCL, on which latency depends"
	}
	return ""
}
