package query

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"busbar.dev/calibrate"
	"busbar.dev/calibrate/truth"
	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/input"
	"busbar.dev/input/nccltests"
	"busbar.dev/input/perftest"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/words"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// Calibrate fits the figures that a spec sheet cannot give to measurements on a cluster, and keeps those that the
// measurements pin down.
type Calibrate struct {
	Files   []string `arg:"" optional:"" name:"measured" names:"files" help:"Output of nccl-tests, results of bench gpu, or measured points as JSON lines; - for standard input."`
	Cluster string   `short:"c" names:"cluster" placeholder:"CLUSTER" help:"Measured cluster: a preset, a cluster file, or any file that map reads."`
	Layout  Layout   `short:"l" placeholder:"NxG" help:"Layout of the measured run, NODESxGPUS, when the output does not list its ranks."`
	Op      Op       `help:"Collective, when the output does not name it: all_reduce, all_gather, …"`
	NCCL    string   `name:"nccl" placeholder:"VERSION" help:"NCCL release, when the output does not name it."`
	Devices string   `placeholder:"LIST" help:"GPUs of every node that took part, by their numbers: 2,3 or 0-3 (default: the first)."`
}

// CalibrateDoc is the answer to Calibrate.
type CalibrateDoc struct {
	calibrate.Site
	Points      int                  `json:"points"`
	Better      bool                 `json:"better"`
	Calibration *cluster.Calibration `json:"calibration"`
	Measured    []calibrate.Measured `json:"measured"`

	// Step is one step that was measured, where it was that.
	Step *measuredStep `json:"measured_step,omitempty"`
	By   string        `json:"by,omitempty"` // what measured, where it was measured now

	// Described is the cluster that was measured, with its calibration.
	Described *cluster.Document `json:"cluster"`
	Noted
}

// Wrong reports a calibration that is no better than what was before it, or sweeps that no healthy cluster has.
func (d *CalibrateDoc) Wrong() bool { return len(d.Refused) > 0 || !d.Better }

// Run fits.
func (q Calibrate) Run(ctx context.Context, env Env) (doc *CalibrateDoc, err error) {
	defer prepared(&q, &env, &doc, &err)()
	if err != nil {
		return nil, err
	}
	if len(q.Files) == 0 {
		return nil, fmt.Errorf("no measurements; expected outputs of nccl-tests or results of busbar bench gpu (--suggest " +
			"says which sizes to measure)")
	}
	if q.Cluster == "" {
		return nil, fmt.Errorf("which cluster was measured? expected -c CLUSTER, a preset or a file")
	}
	cases, about, cl, err := q.cases(ctx, &env)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(q.Files))
	for i, f := range q.Files {
		names[i] = filepath.Base(f)
	}
	return fitCluster(cases, about, cl, strings.Join(names, ", "))
}

// fitCluster fits the figures of collectives to what was measured on a cluster, and keeps them with it.
func fitCluster(cases []*truth.Case, about []calibrate.Measured, cl *cluster.Cluster,
	source string,
) (*CalibrateDoc, error) {
	start, err := predict.Figures(cl)
	if err != nil {
		return nil, err
	}
	old := cl.Calibration
	if old != nil { // what is measured now is compared with the figures alone
		bare := *old
		bare.Residuals = nil
		cl.Calibration = &bare
	}
	site, err := calibrate.Cluster(cases, start, old != nil && len(old.Residuals) > 0)
	if err != nil {
		return nil, err
	}
	cl.Calibration = site.Calibration(old, source)
	return &CalibrateDoc{
		Site: *site, Points: site.After.Points, Better: site.Better(), Calibration: cl.Calibration, Measured: about,
		Described: cl.Document(),
	}, nil
}

// mostFitted bounds the points of a calibration, whose time and memory grow with them: so many take half a minute.
const mostFitted = 20_000

// cases reads what was measured and puts it on the cluster.
func (q *Calibrate) cases(ctx context.Context,
	env *Env,
) ([]*truth.Case, []calibrate.Measured, *cluster.Cluster, error) {
	release, err := env.parseNCCL(q.NCCL)
	if err != nil {
		return nil, nil, nil, err
	}
	if q.Op != "" {
		if _, err := q.Op.kind(); err != nil {
			return nil, nil, nil, err
		}
	}
	devices, err := parseDevices(q.Devices)
	if err != nil {
		return nil, nil, nil, err
	}
	m := measurements{env, q.Cluster, q.Op, string(q.Layout), q.NCCL}
	var sweeps result.Sweeps
	need, points := 0, 0
	for i, name := range q.Files {
		if slices.Contains(q.Files[:i], name) {
			return nil, nil, nil, fmt.Errorf("%s is given twice; a repeat is another run", name)
		}
		list, err := m.sweeps(name)
		if err != nil {
			return nil, nil, nil, err
		}
		for _, s := range list {
			need = max(need, s.Nodes)
			points += len(s.Points)
		}
		if points > mostFitted {
			return nil, nil, nil, fmt.Errorf("%s: %d measured points and more; expected at most %d: tens of sizes and a few "+
				"repeats are enough", name, points, mostFitted)
		}
		sweeps = append(sweeps, list...)
	}
	if len(sweeps) == 0 {
		return nil, nil, nil, fmt.Errorf("%s: no measured collective to calibrate with", strings.Join(q.Files, ", "))
	}
	cl, err := env.clusterOf(ctx, q.Cluster, need)
	if err != nil {
		return nil, nil, nil, err
	}
	var cases []*truth.Case
	for _, s := range sweeps {
		x, err := truth.On(s, cl, release, devices)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("%s: %w", s.ID, err)
		}
		cases = append(cases, x)
	}
	return cases, q.about(sweeps, release), cl, nil
}

// clusterOf loads a cluster of at least so many nodes; a preset without a count gets as many.
func (e *Env) clusterOf(ctx context.Context, word string, nodes int) (*cluster.Cluster, error) {
	cl, err := LoadAtLeast(ctx, *e, word, nodes)
	if err != nil || nodes <= len(cl.Hosts) {
		return cl, err
	}
	return nil, fmt.Errorf("%s has %s; %d were measured", word, words.Plural(len(cl.Hosts), "node"), nodes)
}

// about lists the different things that sweeps are about.
func (q *Calibrate) about(sweeps result.Sweeps, release nccl.Version) []calibrate.Measured {
	var list []calibrate.Measured
	for _, s := range sweeps {
		x := calibrate.Measured{
			Op: s.Op.String(), OpFrom: s.OpFrom, Layout: s.Layout(), LayoutFrom: s.LayoutFrom, NCCL: release.String(),
			NCCLFrom: "assumed; --nccl says which",
		}
		if v, ok := truth.Release(s); ok {
			x.NCCL, x.NCCLFrom = v.String(), "stated by the file"
		} else if q.NCCL != "" {
			x.NCCLFrom = "--nccl"
		}
		if !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	return list
}

// measurements reads files of measured collectives, with what a question gives where they do not say it themselves.
type measurements struct {
	env          *Env
	cluster      string
	op           Op
	layout, nccl string
}

// measuredFile is what a file of measurements holds.
type measuredFile struct {
	sweeps    result.Sweeps // of busbar and of nccl-tests, on a cluster that is given
	published result.Sweeps // on machines that they describe themselves
	left      []truth.Left
	lines     bool // it is none of the others, and so should have one JSON object a line
}

// read reads one file, of any kind.
func (m *measurements) read(file string) (f measuredFile, err error) {
	data, err := m.env.measuredText(file)
	if err != nil {
		return f, err
	}
	name := inputName(file)
	found, err := input.Table.As(name, data)
	switch x := found.(type) {
	case result.Sweeps:
		if err == nil {
			f.sweeps, f.left, err = truth.Kept(x, m.layout)
		}
		return f, err
	case *nccltests.Output:
		if m.cluster == "" {
			return f,
				fmt.Errorf("%s is an output of nccl-tests, which does not say what the cluster is; give it with -c CLUSTER",
					name)
		}
		if err == nil {
			f.sweeps, err = m.tables(name, x)
		}
		return f, err
	case []perftest.Table:
		return f, notCollective(name)
	}
	f.lines = true
	f.published, f.left, err = truth.Read(name, bytes.NewReader(data))
	return f, err
}

// sweeps are those of one file to calibrate with.
func (m *measurements) sweeps(name string) (result.Sweeps, error) {
	f, err := m.read(name)
	if err != nil && f.lines {
		err = fmt.Errorf("%w (and it is no output of nccl-tests)", err)
	}
	if err != nil {
		return nil, err
	}
	var reasons []string
	for _, l := range f.left {
		reasons = append(reasons, fmt.Sprintf("%d records %s", l.Points, l.Reason))
	}
	if len(f.sweeps)+len(f.published) == 0 && len(f.left) > 0 {
		return nil, fmt.Errorf("%s: nothing to calibrate with: %s", name, strings.Join(reasons, "; "))
	}
	for _, r := range reasons {
		if len(f.published) == 0 {
			m.env.note(fmt.Sprintf("%s: left out: %s", name, r))
		}
	}
	for _, s := range f.published {
		if s.Published.Anomalous {
			m.env.note(fmt.Sprintf("%s is anomalous, slow because something was wrong; not fitted", s.ID))
			continue
		}
		if s.Published.Fault != "" {
			return nil, fmt.Errorf("%s:%d: %s", name, s.Line, s.Published.Fault)
		}
		f.sweeps = append(f.sweeps, s)
	}
	for _, s := range f.sweeps {
		if err := m.agrees(fmt.Sprintf("%s:%d", name, s.Line), s); err != nil {
			return nil, err
		}
	}
	return f.sweeps, nil
}

// tables are the sweeps of nccl-tests' tables.
func (m *measurements) tables(name string, out *nccltests.Output) (result.Sweeps, error) {
	var list result.Sweeps
	for i := range out.Tables {
		if len(out.Tables[i].Sweeps) == 0 {
			continue
		}
		sweeps, err := m.table(name, &out.Tables[i])
		if err != nil {
			return nil, err
		}
		list = append(list, sweeps...)
	}
	return list, nil
}

// table are the sweeps of one table.
func (m *measurements) table(name string, t *nccltests.Table) (result.Sweeps, error) {
	where := fmt.Sprintf("%s:%d", name, t.Line)
	opFrom, layoutFrom := "", "its ranks"
	if t.Op == coll.None {
		if m.op == "" {
			return nil, fmt.Errorf("%s: nothing says which collective this table is of; give it with --op", where)
		}
		op, err := m.op.kind()
		if err != nil {
			return nil, err
		}
		t.Name(op)
		opFrom = "--op"
	}
	nodes, gpus, listed := t.Layout()
	if !listed {
		var err error
		if nodes, gpus, err = m.givenShape(t); err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		layoutFrom = "-l"
	}
	for _, s := range t.Sweeps {
		s.ID = fmt.Sprintf("%s:%d", filepath.Base(name), t.Line)
		s.OpFrom, s.LayoutFrom = cmp.Or(opFrom, s.OpFrom), layoutFrom
		s.Nodes, s.PerNode, s.Ranks, s.Devices = nodes, gpus, nodes*gpus, t.Devices()
		if err := m.dropWrong(where, s); err != nil {
			return nil, err
		}
		for _, r := range t.Ranks {
			if s.Machine = (&result.Machine{GPU: r.Model}); r.Model != t.Ranks[0].Model {
				return nil, fmt.Errorf("%s: ranks have %q and %q; a calibration is of nodes with one kind of GPU", where,
					t.Ranks[0].Model, r.Model)
			}
		}
	}
	return t.Sweeps, nil
}

// dropWrong leaves the points of a table that have a size and no wrong results, for what did not do its
// work says nothing about how long that takes.
func (m *measurements) dropWrong(where string, s *result.Sweep) error {
	wrong := 0
	s.Points = slices.DeleteFunc(s.Points, func(p result.Point) bool {
		if p.Out != nil && p.Size > 0 && p.Out.Wrong != nil && *p.Out.Wrong > 0 {
			wrong++
			return true
		}
		return p.Out == nil || p.Size <= 0
	})
	switch {
	case wrong > 0 && len(s.Points) == 0:
		return fmt.Errorf("%s: all %d rows have wrong results (#wrong); such a run says nothing about the cluster's speed",
			where, wrong)
	case wrong > 0:
		m.env.note(fmt.Sprintf("%s: %d rows with wrong results (#wrong) are left out", where, wrong))
	}
	return nil
}

// agrees refuses a sweep that says something else than the question does.
func (m *measurements) agrees(where string, s *result.Sweep) error {
	if m.op != "" {
		given, err := m.op.kind()
		if err != nil {
			return err
		}
		if s.Op != coll.None && s.Op != given {
			return fmt.Errorf("%s is of %s, and --op says %s; leave --op out, or give the right file", where, s.Op, given)
		}
	}
	if m.layout != "" {
		nodes, gpus, err := predict.ParseLayout(m.layout)
		if err != nil {
			return err
		}
		if nodes != s.Nodes || gpus != s.PerNode {
			return fmt.Errorf("%s ran on %dx%d, and -l says %dx%d; leave -l out, or give the right file", where, s.Nodes,
				s.PerNode, nodes, gpus)
		}
	}
	if own, ok := truth.Release(s); ok && m.nccl != "" {
		given, err := nccl.ParseVersion(m.nccl)
		if err == nil && (own.Major != given.Major || own.Minor != given.Minor) {
			return fmt.Errorf("%s ran NCCL %s, and --nccl says %s; leave --nccl out, or give the right file", where, own, given)
		}
	}
	return nil
}

// givenShape is the shape that the question gives for a table that does not
// list its ranks, or not all; those that it lists must fit in.
func (m *measurements) givenShape(t *nccltests.Table) (nodes, gpus int, err error) {
	if m.layout == "" {
		return 0, 0, fmt.Errorf("the output lists no ranks, or not all; say which took part with -l, e.g. -l 2x8")
	}
	if nodes, gpus, err = predict.ParseLayout(m.layout); err != nil {
		return 0, 0, err
	}
	if hosts, most, _ := t.Layout(); hosts > nodes || most > gpus || t.NRanks() > nodes*gpus {
		return 0, 0, fmt.Errorf("the output lists %d ranks on %d hosts, up to %d on one, and -l says %dx%d; give the "+
			"layout that ran", t.NRanks(), hosts, most, nodes, gpus)
	}
	return nodes, gpus, nil
}

// calibrationName is the file in which the calibration of a cluster file lies: site.calibration.yaml beside site.yaml.
// "" for what is no cluster file.
func calibrationName(file string) string {
	ext := filepath.Ext(file)
	stem := strings.TrimSuffix(file, ext)
	if ext != ".yaml" && ext != ".yml" || strings.HasSuffix(stem, ".calibration") {
		return ""
	}
	return stem + ".calibration" + ext
}

// addCalibrationFile gives a cluster the calibration that lies beside its file, where its own sources have none.
func (e *Env) addCalibrationFile(b *cluster.Budget, c *cluster.Cluster, words []string) error {
	if c.Calibration != nil || len(words) != 1 || !e.exists(words[0]) {
		return nil
	}
	name := calibrationName(words[0])
	if name == "" {
		return nil
	}
	f, err := e.files().Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return failure.Cannot(err)
	}
	defer f.Close()
	again := fmt.Sprintf("`busbar calibrate -c %s -o %s`", words[0], name)
	frags, err := readAll(b, name, f)
	if err != nil {
		why, _, _ := strings.Cut(err.Error(), "; expected one of: ") // of all formats
		return fmt.Errorf("%s; it lies beside %s and should hold its calibration, and may be cut off: write it again with "+
			"%s, or move it away", why, words[0], again)
	}
	for _, x := range frags {
		if x.Calibration != nil {
			if err := sameChips(name, &x.Cluster, words[0], c); err != nil {
				return err
			}
			c.Calibration = x.Calibration
			e.note(fmt.Sprintf("predictions use the calibration in %s, which lies beside %s", name, words[0]))
			return nil
		}
	}
	return fmt.Errorf("%s lies beside %s and holds no calibration; expected what %s writes", name, words[0], again)
}

// sameChips refuses a calibration of other GPUs: its figures and curves would be taken for this cluster's. Where one of
// the two names none, nothing contradicts.
func sameChips(name string, its *cluster.Cluster, file string, c *cluster.Cluster) error {
	was, is := chips(its), chips(c)
	for _, g := range was {
		if len(is) > 0 && !slices.Contains(is, g) {
			return fmt.Errorf("%s lies beside %s and was measured on %s; the cluster has %s: calibrate this one, or move the "+
				"file away", name, file, strings.Join(was, ", "), strings.Join(is, ", "))
		}
	}
	return nil
}

// chips are the kinds of GPUs that hosts of a cluster have, without the size of their memory.
func chips(c *cluster.Cluster) []string {
	var list []string
	if c == nil {
		return nil
	}
	for _, t := range c.Types {
		for _, d := range t.Of(cluster.GPU) {
			if model := t.Devices[d].Model.Value; model != "" {
				list = append(list, truth.Chip(model))
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Suggest says which sizes of a collective to measure on a cluster, for a calibration that holds for all sizes.
type Suggest struct {
	Cluster string `short:"c" names:"cluster" placeholder:"CLUSTER" help:"The cluster: a preset, a cluster file, or any file that map reads."`
	Layout  Layout `short:"l" placeholder:"NxG" help:"Nodes and GPUs per node that take part (default: all)."`
	Op      Op     `default:"all_reduce" help:"The collective (default all_reduce)."`
	NCCL    string `name:"nccl" placeholder:"VERSION" help:"The release of NCCL."`
}

// SuggestDoc is the answer to Suggest.
type SuggestDoc struct {
	Cluster string          `json:"cluster"`
	Op      string          `json:"op"`
	Layout  string          `json:"layout"`
	Points  []suggestedSize `json:"points"` // each to be measured twice
	Nodes   int             `json:"nodes"`
	PerNode int             `json:"gpus_per_node"`
	By      string          `json:"tests"` // the program of nccl-tests
	Tool    string          `json:"tool"`  // nccl-tests, or rccl-tests on AMD's GPUs
	Noted
}

// suggestedSize is a size with its prediction.
type suggestedSize struct {
	Size  unit.Bytes `json:"size_bytes"`
	Algo  string     `json:"algo"` // by which NCCL would do it
	Proto string     `json:"proto"`
	Time  unit.Time  `json:"predicted_s"`
	Bar   float64    `json:"bar"` // as a factor, before it is measured
}

// Run predicts the sizes that calibrate.Sizes names.
func (q Suggest) Run(ctx context.Context, env Env) (doc *SuggestDoc, err error) {
	defer prepared(&q, &env, &doc, &err)()
	if err != nil {
		return nil, err
	}
	kind, err := q.Op.kind()
	if err != nil {
		return nil, err
	}
	place := placement{cluster: q.Cluster, layout: string(q.Layout)}
	p, name, err := place.predictor(ctx, &env, q.NCCL)
	if err != nil {
		return nil, err
	}
	nodes := hostsOf(p.Layout)
	d := &SuggestDoc{
		Cluster: p.Cluster.Name, Op: kind.String(), Layout: name, Nodes: nodes, PerNode: len(p.Layout) / nodes,
		By: kind.String() + "_perf", Tool: strings.ToLower(p.Library()) + "-tests",
	}
	for _, size := range calibrate.Sizes {
		op := coll.Op{Kind: kind, Bytes: size, Type: coll.Float}
		how, err := p.Auto(op)
		if err != nil {
			return nil, err
		}
		run, err := p.Price(op, how)
		if err != nil {
			return nil, err
		}
		d.Points = append(d.Points, suggestedSize{size, how.Algo, how.Proto, run.Time, run.Margin})
	}
	return d, nil
}
