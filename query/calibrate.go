package query

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"busbar.dev/calibrate"
	"busbar.dev/calibrate/truth"
	"busbar.dev/cluster"
	"busbar.dev/internal/words"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/result"
	"busbar.dev/sim"
)

// Calibrate fits the figures that a spec sheet cannot give to measurements on a cluster, and keeps those that the
// measurements pin down.
type Calibrate struct {
	Files   []string `arg:"" optional:"" name:"measured" names:"files" help:"Output of nccl-tests, results of bench gpu, or measured points as JSON lines; - for standard input."`
	Cluster string   `short:"c" names:"cluster" placeholder:"CLUSTER" help:"Measured cluster: a preset, a cluster file, or any file that map reads."`
	Layout  Layout   `short:"l" placeholder:"NxG" help:"Layout of the measured run, NODESxGPUS, when the output does not list its ranks."`
	Op      Op       `help:"Collective, when the output does not name it: all_reduce, all_gather, …"`
	NCCL    string   `name:"nccl" placeholder:"VERSION" help:"NCCL release, when the output does not name it."`
}

// CalibrateDoc is the answer to Calibrate.
type CalibrateDoc struct {
	After       CalibrateError       `json:"after"`
	Ends        []string             `json:"at_their_ends"` // figures at an end of what is physical: the description or the run is wrong
	Before      CalibrateError       `json:"before"`
	Better      bool                 `json:"better"`
	Calibration *cluster.Calibration `json:"calibration"`
	HeldOut     *CalibrateHeldOut    `json:"held_out,omitempty"` // of sizes that were left out of the fit
	Measured    []CalibrateMeasured  `json:"measured"`
	Loose       []string             `json:"not_constrained"` // figures that the points depend on and do not pin down
	Points      int                  `json:"points"`
	// Dropped says why fitted figures are not kept, "" where they are; CurveKept is the part of the curve that is.
	Dropped   string  `json:"figures_dropped,omitempty"`
	CurveKept float64 `json:"curve_kept"`

	By  string        `json:"by,omitempty"`  // what measured, where it was measured now
	GPU *CalibrateGPU `json:"gpu,omitempty"` // what was measured of GPUs alone

	// Cluster is the one that was measured, with its calibration.
	Cluster *cluster.Cluster `json:"-"`
	Site    *calibrate.Site  `json:"-"`
	Noted
}

// CalibrateError is how far off predictions are.
type CalibrateError struct {
	Median float64 `json:"median_ape"`
	P90    float64 `json:"p90_ape"`
}

// CalibrateHeldOut is the error on points that were left out of the fit.
type CalibrateHeldOut struct {
	After  CalibrateError `json:"after"`
	Before CalibrateError `json:"before"`
}

// CalibrateMeasured is what measurements are about, and who says so.
type CalibrateMeasured struct {
	Op         string `json:"op"`
	OpFrom     string `json:"op_from"`
	Layout     string `json:"layout"`
	LayoutFrom string `json:"layout_from"`
	NCCL       string `json:"nccl"`
	NCCLFrom   string `json:"nccl_from"`
}

// Wrong reports a fit that is no better than the figures before it, or that went to the end of what is possible.
func (d *CalibrateDoc) Wrong() bool { return len(d.Ends) > 0 || !d.Better }

// Run fits.
func (q Calibrate) Run(ctx context.Context, env Env) (doc *CalibrateDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := prepare(&q); err != nil {
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
func fitCluster(cases []*truth.Case, about []CalibrateMeasured, cl *cluster.Cluster,
	source string,
) (*CalibrateDoc, error) {
	if list := truth.Contradictions(cases); len(list) > 0 {
		return nil, &ContradictionError{list}
	}
	start, err := predict.Figures(cl)
	if err != nil {
		return nil, err
	}
	if err := possible(cases, start); err != nil {
		return nil, err
	}
	if cl.Calibration != nil { // what earlier figures left says nothing under new ones
		old := *cl.Calibration
		old.Residuals = nil
		cl.Calibration = &old
	}
	site, err := calibrate.Cluster(cases, start)
	if err != nil {
		return nil, err
	}
	if off := math.Exp(math.Abs(math.Log(site.After.Bias))); off > mostLeft {
		return nil,
			&ImpossibleError{Text: fmt.Sprintf("the best fit still predicts %.3g times what was measured, at the median of %s",
				site.After.Bias, words.Plural(site.After.Points, "point"))}
	}
	cl.Calibration = site.Calibration(cl.Calibration, source)
	return newCalibrateDoc(site, cl, about), nil
}

func newCalibrateDoc(s *calibrate.Site, cl *cluster.Cluster, about []CalibrateMeasured) *CalibrateDoc {
	d := &CalibrateDoc{
		Measured: about, Points: s.After.Points, Before: calibrateError(s.Before), After: calibrateError(s.After),
		Better:      s.Better(),
		Calibration: cl.Calibration, Loose: append([]string{}, s.Loose...), Ends: append([]string{}, s.Ends...),
		Dropped: s.Dropped, CurveKept: s.Part, Cluster: cl, Site: s,
	}
	if s.HeldAfter.Points > 0 {
		d.HeldOut = &CalibrateHeldOut{After: calibrateError(s.HeldAfter), Before: calibrateError(s.HeldBefore)}
	}
	return d
}

func calibrateError(s truth.Score) CalibrateError { return CalibrateError{s.Median, s.P90} }

// mostFitted bounds the points of a calibration, whose time and memory grow with them: so many take half a minute.
const mostFitted = 20_000

// cases reads what was measured and puts it on the cluster.
func (q *Calibrate) cases(ctx context.Context, env *Env) ([]*truth.Case, []CalibrateMeasured, *cluster.Cluster, error) {
	release, err := env.parseNCCL(q.NCCL)
	if err != nil {
		return nil, nil, nil, err
	}
	if q.Op != "" {
		if _, err := q.Op.kind(); err != nil {
			return nil, nil, nil, fmt.Errorf("--op: %w", err)
		}
	}
	m := measurements{env: env, op: string(q.Op), layout: string(q.Layout), nccl: q.NCCL}
	var sweeps result.Sweeps
	need, points := 0, 0
	for _, name := range q.Files {
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
		x, err := truth.On(s, cl, release)
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
func (q *Calibrate) about(sweeps result.Sweeps, release nccl.Version) []CalibrateMeasured {
	var list []CalibrateMeasured
	for _, s := range sweeps {
		x := CalibrateMeasured{
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

// mostLeft is how far off, as a factor, a fit may be at the median and still be of use.
const mostLeft = 2

// possible refuses points that are faster than the described machine can be.
func possible(cases []*truth.Case, start *sim.Figures) error {
	rows, err := truth.Rows(cases, start)
	if err != nil {
		return err
	}
	i := -1
	for k := range rows {
		if truth.TooFast(rows[k].Ratio(), rows[k].Margin) && (i < 0 || rows[k].Ratio() > rows[i].Ratio()) {
			i = k
		}
	}
	if i < 0 {
		return nil
	}
	r := &rows[i]
	op := r.Case.Ops[r.Index]
	return &ImpossibleError{Text: fmt.Sprintf("%s: %s of %s on %d ranks in %v is %.0f GB/s of bus bandwidth, %.3g times "+
		"what this cluster should reach (%v)",
		r.Case.Sweep.ID, op.Kind, op.Bytes, r.Case.Sweep.Ranks, r.Measured(),
		op.BusBW(r.Case.Sweep.Ranks, r.Measured()).GBps(), r.Ratio(), r.Predicted)}
}

// ImpossibleError says that measurements are not of the cluster that is described; nothing is kept of them.
type ImpossibleError struct{ Text string }

// Is makes it an ErrWrong.
func (e *ImpossibleError) Is(target error) bool { return target == ErrWrong }

func (e *ImpossibleError) Error() string {
	return e.Text + "\nthe measurements cannot be of this cluster: most likely another unit (ms for µs, Gb for GB) or " +
		"another cluster, or where they are slow a fault (busbar doctor bench); nothing was written"
}

// ContradictionError says which measurements cannot both be right; nothing was fitted to them.
type ContradictionError struct{ Points []truth.Repeat }

// Is makes it an ErrWrong.
func (e *ContradictionError) Is(target error) bool { return target == ErrWrong }

func (e *ContradictionError) Error() string {
	const most = 8
	var b strings.Builder
	fmt.Fprintf(&b, "the measurements contradict each other, more than %d times apart for the same collective on the "+
		"same ranks; nothing was fitted or written:\n", truth.TooFar)
	for i, r := range e.Points {
		if i == most {
			fmt.Fprintf(&b, "  and %d sizes more\n", len(e.Points)-most)
			break
		}
		fmt.Fprintf(&b, "  %s: %.2f and %.2f µs (%s)\n", r.Size, validateMicros(r.Least), validateMicros(r.Most), r.ID)
	}
	b.WriteString("give only the run that is right")
	return b.String()
}
