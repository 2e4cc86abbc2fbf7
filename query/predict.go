package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/internal/failure"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/result"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// Predict asks how long a collective takes on a cluster, by which algorithm and protocol NCCL would run it, what limits
// it, and which setting would help.
type Predict struct {
	Cluster string `short:"c" names:"cluster" placeholder:"CLUSTER" help:"Cluster: a preset (dgx-h100:4), a cluster file, or any file that map reads (topo.xml:8 is eight such nodes) (default: this machine)."`
	Layout  Layout `short:"l" placeholder:"NODESxGPUS" help:"Participating nodes and GPUs per node: 2x4 is two nodes with four GPUs each (default: all GPUs)."`
	OnHosts
	Op      Op       `default:"all_reduce" help:"all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, all_to_all_v, gather, scatter, sendrecv, hypercube, barrier (default all_reduce)."`
	Min     Size     `short:"b" name:"minbytes" placeholder:"SIZE" help:"Smallest size (default 8 without -e and --size); 64K, 1M, 1G are 1024-based as in nccl-tests, 1.32GB is 1000-based."`
	Max     Size     `short:"e" name:"maxbytes" placeholder:"SIZE" help:"Largest size (default 128M without -b and --size)."`
	Factor  float64  `short:"f" name:"stepfactor" default:"2" help:"Factor between sizes (default 2)."`
	Size    Size     `placeholder:"SIZE" help:"One size, or several separated by commas, instead of -b -e -f."`
	Dtype   Dtype    `short:"d" default:"float" help:"float, half, bfloat16, int8, f8e4m3, … (default float)"`
	Root    int      `help:"Root rank of broadcast, reduce, gather, scatter."`
	Algo    string   `placeholder:"ALGO" help:"auto (NCCL's choice), best (the fastest), each (one row per NCCL algorithm), all (also per protocol), or names: ring,tree (default: auto, or each with --compare)."`
	Proto   Proto    `enum:"auto,ll,ll128,simple" default:"auto" help:"auto, ll, ll128 or simple (default auto)."`
	NCCL    string   `name:"nccl" placeholder:"VERSION" help:"NCCL release, 2.8 to 2.30, as NCCL_DEBUG=VERSION prints it (default: the newest known, named in the first line of the output)."`
	Plan    bool     `name:"nccl-plan" help:"Also print NCCL's setup: graphs, rings, trees and its table of estimates."`
	Links   bool     `help:"Also print the load of every link in each direction: bytes, share of the time, which links limit the run. Needs one size, one algorithm and one layout."`
	Compare Layouts  `placeholder:"L1,L2,…" help:"Compare layouts: 1x4,2x2,4x1."`
	GPU     string   `name:"gpu" placeholder:"MODEL" help:"GPU model when the cluster's source does not name it: a100-80."`
	NIC     string   `name:"nic" placeholder:"[COUNTx]SPEED" help:"NICs when the source does not state them: 10GbE (one per node), 4x200Gb/s or 4xHDR (four per node); without a count also the rate of NICs that are known."`
	Launch  string   `placeholder:"WORDS" help:"How calls are launched and timed: --launch=\"-g 8\" (nccl-tests, one thread for 8 GPUs), torch (every call timed by itself), graph, queue (back-to-back calls as in nccl-tests: broadcast and reduce overlap), \"aws-ofi-nccl 1.7\" (plugin of EFA, where it is older than 1.9) (default: one call, one process per GPU)."`
	Env     []string `placeholder:"KEY=VALUE" sep:"none" help:"NCCL setting, as in the job's environment. Repeatable."`
}

// Proto is the name of one of NCCL's protocols, in any case: NCCL prints LL128 and Simple.
type Proto string

// UnmarshalText takes any case.
func (p *Proto) UnmarshalText(text []byte) error {
	*p = Proto(strings.ToLower(string(text)))
	return nil
}

// Run predicts.
func (q Predict) Run(ctx context.Context, env Env) (doc *PredictDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := prepare(&q); err != nil {
		return nil, err
	}
	ask, err := q.operation(ctx, &env)
	if err != nil {
		return nil, err
	}
	settings, err := q.settings()
	if err != nil {
		return nil, err
	}
	version, err := env.parseNCCL(q.NCCL)
	if err != nil {
		return nil, err
	}
	how, ok := predict.ParseLaunch(q.Launch)
	if !ok {
		return nil, fmt.Errorf("--launch %.60q; expected how the calls are made: \"-g 8\" (one thread serves eight GPUs), "+
			"\"per gpu\", \"torch\" (every call timed by itself), \"graph\", \"queue\" (calls one after the other, as "+
			"nccl-tests makes them), \"aws-ofi-nccl 1.7\" (plugin of EFA)", q.Launch)
	}
	how.Unsure = q.NCCL == ""
	place := placement{cluster: q.Cluster, layout: string(q.Layout), compare: string(q.Compare), gpu: q.GPU, nic: q.NIC}
	shapes, cl, err := place.shapedGPUs(ctx, &env)
	if err == nil {
		err = q.put(shapes)
	}
	if err != nil {
		return nil, err
	}
	defer env.working("predicting")()
	d := &PredictDoc{
		Cluster: cl.Name, Op: ask.Kind, NCCL: version.String(), Model: predict.Origin(cl), Rows: []PredictRow{},
		Advice:   []predict.Advice{},
		Compared: q.Compare != "", Caveats: predict.EnvironmentNotes(settings),
	}
	if err := d.predictAll(ctx, &env, cl, shapes, version, settings, ask, how); err != nil {
		return nil, err
	}
	d.sortRows()
	if len(d.Sides) > 1 {
		d.Compare = predict.Compare(d.Sides)
	}
	if len(d.predictors) == 0 && (q.Plan || q.Links) {
		return nil, fmt.Errorf("--nccl-plan and --links: nothing is known of what the library sets up on these GPUs; the " +
			"times are published runs")
	}
	if q.Plan {
		d.addPlans()
	}
	if q.Links {
		err = d.addLinks(ctx, &env)
	}
	return d, err
}

// predictAll predicts every layout. In a comparison, one that cannot be predicted is left out and named.
func (d *PredictDoc) predictAll(ctx context.Context, env *Env, cl *cluster.Cluster, shapes []shape, v nccl.Version,
	settings map[string]string, ask predict.Query, how predict.Conditions,
) error {
	var impossible error
	for i, s := range shapes {
		env.steps(i, len(shapes))
		if err := ctx.Err(); err != nil {
			return err
		}
		l, name, err := s.ranks(cl)
		env.noteOutOfService(cl, l)
		if err == nil && (ask.Root < 0 || ask.Root >= len(l)) {
			err = failure.In("root", coll.Op{Kind: ask.Kind, Root: ask.Root}.Check(len(l)))
		}
		if err == nil && predict.OnlyPublished(cl, l) {
			err = d.addPublished(cl, l, name, ask)
			if err == nil {
				continue
			}
		}
		var p *predict.Predictor
		var side predict.Side
		var skipped []predict.Skip
		if err == nil {
			p, side, skipped, err = predictSide(cl, l, name, v, settings, ask, how)
		}
		switch {
		case err != nil && d.Compared: // the others can still be compared
			d.Skipped = append(d.Skipped, sideError(s, err))
			impossible = cmp.Or(impossible, err)
			continue
		case err != nil:
			return err
		}
		env.note(p.Plan.Notes()...)
		d.predictors = append(d.predictors, p)
		d.addSide(p, side, skipped)
	}
	env.steps(len(shapes), len(shapes))
	if len(d.Sides) == 0 {
		return impossible
	}
	return nil
}

// predictSide predicts one layout.
func predictSide(cl *cluster.Cluster, l nccl.Layout, name string, v nccl.Version, settings map[string]string,
	ask predict.Query, how predict.Conditions,
) (*predict.Predictor, predict.Side, []predict.Skip, error) {
	p, err := predict.New(cl, l, v, settings, nil)
	if err != nil {
		return nil, predict.Side{}, nil, err
	}
	p.Conditions = how
	a, err := p.Ask(ask)
	if err != nil {
		return nil, predict.Side{}, nil, err
	}
	side := predict.Side{Layout: name, Nodes: hostsOf(l), Ranks: len(l), Rows: a.Rows}
	if side.Recommendation, err = p.Advise(ask); err != nil {
		return nil, predict.Side{}, nil, err
	}
	for i := range side.Advice {
		side.Advice[i].Layout = name
	}
	side.Caveat = p.Caveat(ask)
	return p, side, a.Skipped, nil
}

// sideError is why a layout is not in a comparison.
func sideError(s shape, err error) string {
	if text := err.Error(); strings.HasPrefix(text, "layout "+s.text) {
		return text
	}
	return fmt.Sprintf("%s: %v", s.text, err)
}

// operation is what is predicted.
func (q *Predict) operation(ctx context.Context, env *Env) (predict.Query, error) {
	ask := predict.Query{Root: q.Root, Proto: string(q.Proto), Stop: ctx.Err}
	var err error
	if ask.Kind, err = q.Op.kind(); err != nil {
		return ask, fmt.Errorf("--op: %w", err)
	}
	if ask.Type, err = q.Dtype.dtype(); err != nil {
		return ask, fmt.Errorf("--dtype: %w", err)
	}
	if ask.Sizes, err = q.sizes(); err != nil {
		return ask, err
	}
	env.note(sizeNotes(string(q.Size))...)
	if ask.Kind == coll.Barrier && q.Size+q.Min+q.Max != "" {
		env.note("a barrier moves no data: --size, -b and -e are not used")
	}
	algos := q.Algo
	if algos == "" {
		algos = predict.Auto
		if q.Compare != "" {
			algos = predict.Each
		}
	}
	for _, a := range strings.Split(algos, ",") {
		a = strings.ToLower(strings.TrimSpace(a))
		if _, err := schedule.Find(a); err != nil &&
			!slices.Contains([]string{predict.Auto, predict.Best, predict.Each, predict.All}, a) {
			return ask, fmt.Errorf("--algo: %w; or auto, best, each, all", err)
		}
		ask.Algos = append(ask.Algos, a)
	}
	return ask, nil
}

// settings are NCCL's, by name.
func (q *Predict) settings() (map[string]string, error) {
	settings := map[string]string{}
	for _, s := range q.Env {
		k, v, ok := strings.Cut(s, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("--env %s; expected KEY=VALUE", s)
		}
		settings[k] = v
	}
	return settings, nil
}

// PredictDoc is the answer to Predict.
type PredictDoc struct {
	Cluster string            `json:"cluster"`
	Op      coll.Kind         `json:"op"`
	NCCL    string            `json:"nccl"`              // release
	Library string            `json:"library,omitempty"` // rccl on AMD's GPUs, hccl on Gaudi
	Model   string            `json:"model"`             // where the model's figures come from
	Rows    []PredictRow      `json:"rows"`              // by size; in a comparison the fastest first
	Advice  []predict.Advice  `json:"advice"`
	Gain    float64           `json:"best_gain"`         // of the fastest that NCCL can run over what it chooses, as a factor
	Caveats []string          `json:"caveats,omitempty"` // what the prediction takes for granted
	Compare []predict.Verdict `json:"compare,omitempty"`
	Skipped []string          `json:"skipped,omitempty"` // what could not be predicted, and why
	// Plan is what NCCL sets up, where it was asked for; Plans those of several layouts.
	Plan  *nccl.Plan   `json:"nccl_plan,omitempty"`
	Plans []LayoutPlan `json:"nccl_plans,omitempty"`

	Compared   bool           `json:"-"` // layouts side by side
	Sides      []predict.Side `json:"-"`
	Unmeasured bool           `json:"-"` // no measurements stand behind the margins
	Links      []result.Links `json:"-"` // of the one row

	predictors []*predict.Predictor // of Sides
	Noted
}

// LayoutPlan is what NCCL sets up on one layout.
type LayoutPlan struct {
	Layout string     `json:"layout"`
	Plan   *nccl.Plan `json:"nccl_plan"`
}

// PredictRow is one size by one algorithm on one layout. Bandwidths are those of nccl-tests, one direction.
type PredictRow struct {
	Layout     string         `json:"layout"`
	Ranks      int            `json:"ranks"`
	Size       unit.Bytes     `json:"size_bytes"`
	Asked      unit.Bytes     `json:"asked_bytes"`
	Count      int64          `json:"count"` // of elements
	Dtype      string         `json:"dtype"`
	Algo       string         `json:"algo"`
	Proto      string         `json:"proto"`
	Channels   int            `json:"channels"`
	Time       unit.Time      `json:"time_us"`
	Low        unit.Time      `json:"low_us"` // the error bar
	High       unit.Time      `json:"high_us"`
	AlgBW      unit.Rate      `json:"algbw_GBps"`
	BusBW      unit.Rate      `json:"busbw_GBps"`
	Chosen     bool           `json:"chosen"` // what NCCL would choose
	Beyond     bool           `json:"beyond_nccl,omitempty"`
	Bottleneck result.Limit   `json:"bottleneck"`
	Parts      PredictParts   `json:"parts"`
	Busy       []PredictUse   `json:"busy"`
	Links      []PredictLinks `json:"links,omitempty"`

	Row predict.Row `json:"-"`
}

// PredictParts are what the time is made of. They add up to it.
type PredictParts struct {
	Launch  unit.Time `json:"launch_us"`
	Latency unit.Time `json:"latency_us"`
	Sync    unit.Time `json:"sync_us"`
	Moving  unit.Time `json:"moving_us"`
}

// PredictUse is one of the busiest links.
type PredictUse struct {
	Where string           `json:"where"`
	Kind  result.LimitKind `json:"kind"`
	Rate  unit.Rate        `json:"rate_GBps"`
	Bytes unit.Bytes       `json:"bytes"`
	Share float64          `json:"share"` // of the time
}

// PredictLinks are hosts whose links carry the same, or the network where there are no hosts.
type PredictLinks struct {
	Hosts string           `json:"hosts,omitempty"`
	Links []PredictLinkUse `json:"links"`
}

// PredictLinkUse are links that are equally busy; bytes and rate are those of each, one direction.
type PredictLinkUse struct {
	Which      []string         `json:"which"`
	Kind       result.LimitKind `json:"kind"`
	Rate       unit.Rate        `json:"rate_GBps"`
	Cables     int              `json:"cables,omitempty"`
	Bytes      unit.Bytes       `json:"bytes"`
	Share      float64          `json:"share"`
	Bottleneck bool             `json:"bottleneck,omitempty"`
}

// NewPredictRow is a row of a prediction on a layout.
func NewPredictRow(layout string, r predict.Row) PredictRow {
	low, high := r.Span()
	row := PredictRow{
		Layout: layout, Ranks: r.Ranks, Size: r.Op.Size(r.Ranks), Asked: r.Asked, Count: r.Op.Count(r.Ranks),
		Dtype: r.Op.Type.String(),
		Algo:  r.Algo, Proto: r.Setting.Proto, Channels: r.Channels, Time: r.Time, Low: low, High: high,
		AlgBW: r.AlgBW(), BusBW: r.BusBW(), Chosen: r.Chosen, Beyond: r.Beyond, Bottleneck: r.Limit,
		Parts: PredictParts{Launch: r.Parts.Launch, Latency: r.Parts.Latency, Sync: r.Parts.Sync, Moving: r.Parts.Moving},
		Busy:  []PredictUse{}, Row: r,
	}
	for _, u := range r.Run.Busy {
		row.Busy = append(row.Busy, PredictUse{
			Where: u.Where, Kind: u.Kind, Rate: u.Rate, Bytes: u.Bytes, Share: rounded(u.Share),
		})
	}
	return row
}

// rounded keeps four digits behind the point: more are not known.
func rounded(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// addSide adds what was predicted for one layout.
func (d *PredictDoc) addSide(p *predict.Predictor, side predict.Side, skipped []predict.Skip) {
	d.Unmeasured = d.Unmeasured || !predict.Measured(p.Class()) && p.Plan.RCCL == nil
	if p.Plan.RCCL != nil {
		d.Library, d.Model = "rccl", "from published figures of AMD and RCCL"
	}
	d.addRows(side, skipped)
	if side.Ranks > predict.LargestMeasured {
		d.Caveats = append(d.Caveats, fmt.Sprintf("%s: no measurement of more than %d GPUs is public, so the error bar is "+
			"the widest; congestion between jobs and switches is not modelled", side.Layout, predict.LargestMeasured))
	}
}

// addRows adds a layout.
func (d *PredictDoc) addRows(side predict.Side, skipped []predict.Skip) {
	d.Sides = append(d.Sides, side)
	for _, r := range side.Rows {
		d.Rows = append(d.Rows, NewPredictRow(side.Layout, r))
	}
	d.Advice = append(d.Advice, side.Advice...)
	d.Gain = max(d.Gain, rounded(side.Gain))
	if side.Caveat != "" {
		d.Caveats = append(d.Caveats, side.Layout+": "+side.Caveat)
	}
	for _, t := range skipped {
		d.Skipped = append(d.Skipped, fmt.Sprintf("%s %s: %s", side.Layout, t.Algo, t.Reason))
	}
}

// addPublished adds a layout of GPUs of whose library only runs are known.
func (d *PredictDoc) addPublished(cl *cluster.Cluster, l nccl.Layout, name string, ask predict.Query) error {
	a, source, err := predict.AskPublished(cl, l, ask)
	if err != nil {
		return err
	}
	d.Library, d.NCCL, d.Model = "hccl", "", "none: published runs ("+source+"), drawn between their sizes"
	d.addRows(predict.Side{Layout: name, Nodes: hostsOf(l), Ranks: len(l), Rows: a.Rows}, a.Skipped)
	return nil
}

// sortRows puts rows into the order in which they are shown: by size, in a
// comparison the fastest first.
func (d *PredictDoc) sortRows() {
	slices.SortStableFunc(d.Rows, func(a, b PredictRow) int {
		n := cmp.Compare(a.Asked, b.Asked)
		if d.Compared {
			n = cmp.Or(n, cmp.Compare(a.Time, b.Time))
		}
		return n
	})
}

// addPlans adds what NCCL sets up.
func (d *PredictDoc) addPlans() {
	d.Plan = d.predictors[0].Plan
	if len(d.predictors) == 1 {
		return
	}
	for i, p := range d.predictors {
		d.Plans = append(d.Plans, LayoutPlan{Layout: d.Sides[i].Layout, Plan: p.Plan})
	}
}

// addLinks adds how busy every link is.
func (d *PredictDoc) addLinks(ctx context.Context, env *Env) error {
	if len(d.Rows) != 1 {
		return fmt.Errorf("--links is about one run and there are %d rows; give one --size, one layout and one --algo",
			len(d.Rows))
	}
	r := &d.Rows[0]
	var err error
	if d.Links, err = d.predictors[0].Links(ctx, r.operation(), r.Row.Setting, r.Row.Run); err != nil {
		if ctx.Err() != nil {
			return err
		}
		env.note(err.Error()) // the prediction itself stands
	}
	if d.Links == nil {
		return nil
	}
	r.Links = make([]PredictLinks, len(d.Links))
	for i, g := range d.Links {
		r.Links[i] = PredictLinks{Links: []PredictLinkUse{}}
		if len(g.Hosts) > 0 {
			r.Links[i].Hosts = cluster.FormatHosts(g.Hosts)
		}
		for _, u := range g.Uses {
			r.Links[i].Links = append(r.Links[i].Links, PredictLinkUse{
				Which: u.Which, Kind: u.Kind, Rate: u.Rate, Cables: u.Cables, Bytes: u.Bytes, Share: u.Share, Bottleneck: u.Tight,
			})
		}
	}
	return nil
}

// operation is the operation that is run for the one that was asked for.
func (r *PredictRow) operation() coll.Op {
	if r.Beyond {
		return r.Row.Op
	}
	return predict.Substitute(r.Row.Op)
}

const (
	manyTraced = 50_000    // events above which a viewer needs patience
	maxTraced  = 2_000_000 // events that a viewer still opens
)

// Timeline plays every message of the one run that was asked for. name gives the ranks' names.
func (d *PredictDoc) Timeline(ctx context.Context, env Env) (run *result.Run, name func(rank int) string, err error) {
	env.question = &Predict{}
	defer func() { err = env.spelled(err) }()
	if len(d.Rows) != 1 {
		return nil, nil, fmt.Errorf("a timeline is of one run and there are %d rows; give one --size, one layout and one "+
			"--algo", len(d.Rows))
	}
	if len(d.predictors) == 0 && d.Library != "hccl" {
		return nil, nil, ErrDecoded
	}
	if len(d.predictors) == 0 {
		return nil, nil,
			failure.Cannot(errors.New("a timeline of published runs: nothing is known of the messages that they are made of"))
	}
	r, p := &d.Rows[0], d.predictors[0]
	n, err := p.Steps(r.operation(), r.Row.Setting)
	switch {
	case err != nil:
		return nil, nil, err
	case n > maxTraced:
		return nil, nil, failure.Cannot(fmt.Errorf("a timeline of %d events is more than a viewer opens (%d); take a "+
			"smaller --size, fewer nodes (-l) or another --algo", n, maxTraced))
	case n > manyTraced:
		env.note(fmt.Sprintf("the timeline will have about %d events; a viewer is slow with more than %d: a smaller --size "+
			"or fewer nodes make less", n, manyTraced))
	}
	done := env.working("playing every message")
	run, err = p.Simulate(ctx, r.operation(), r.Row.Setting)
	done()
	if err != nil {
		return nil, nil, failure.Cannot(err)
	}
	run.Op, run.Algo = r.Row.Op, r.Algo
	if run.Time != r.Time {
		env.note(fmt.Sprintf("the timeline lasts %v, every message played; the table says %v by the steady form, which the "+
			"model's figures were fitted with: go by the table for how long it takes", run.Time, r.Time))
	}
	return run, p.Name, nil
}

// comparedSize is the size of a comparison where nobody gives one: the gradients of a
// model of half a billion parameters, large enough for the links to count.
const comparedSize = 1 * unit.GiB

// sizes are those of --size, or those that nccl-tests would take.
func (q *Predict) sizes() ([]unit.Bytes, error) {
	if q.Size != "" {
		if q.Min != "" || q.Max != "" {
			return nil, fmt.Errorf("--size and -b or -e: expected one of them")
		}
		return sizeList(string(q.Size))
	}
	if q.Min == "" && q.Max == "" && q.Compare != "" {
		return []unit.Bytes{comparedSize}, nil
	}
	lo, hi := 8*unit.Bytes(1), 128*unit.MiB
	var err error
	if q.Min != "" {
		if lo, err = q.Min.bytes(); err != nil {
			return nil, fmt.Errorf("-b: %w", err)
		}
	}
	switch {
	case q.Max != "":
		if hi, err = q.Max.bytes(); err != nil {
			return nil, fmt.Errorf("-e: %w", err)
		}
	case q.Min != "":
		hi = max(hi, lo)
	}
	return sizeSteps(lo, hi, q.Factor)
}

func sizeList(text string) ([]unit.Bytes, error) {
	var list []unit.Bytes
	for _, s := range strings.Split(text, ",") {
		b, err := unit.ParseBytes(s)
		if err == nil && (b < 1 || b > maxSize) {
			err = fmt.Errorf("%s; expected 1 byte to %v", s, maxSize)
		}
		if err != nil {
			return nil, fmt.Errorf("--size: %w", err)
		}
		if !slices.Contains(list, b) {
			list = append(list, b)
		}
	}
	return list, nil
}

const (
	maxSize  = 1024 * unit.TiB
	maxSteps = 10_000
)

// sizeSteps goes from lo to hi by a factor.
func sizeSteps(lo, hi unit.Bytes, factor float64) ([]unit.Bytes, error) {
	switch {
	case lo < 1 || hi > maxSize:
		return nil, fmt.Errorf("-b %d -e %d; expected sizes of 1 byte to %v", int64(lo), int64(hi), maxSize)
	case lo > hi:
		return nil, fmt.Errorf("-b %v is more than -e %v", lo, hi)
	case math.IsInf(factor, 0) || math.IsNaN(factor):
		return nil, fmt.Errorf("-f %g; expected a number more than 1", factor)
	case !(factor > 1):
		if lo == hi {
			return []unit.Bytes{lo}, nil
		}
		return nil, fmt.Errorf("-f %g; expected more than 1", factor)
	}
	var list []unit.Bytes
	for b := float64(lo); b <= float64(hi); b *= factor {
		if next := unit.Bytes(b); len(list) == 0 || next > list[len(list)-1] {
			list = append(list, next)
		}
		if len(list) > maxSteps {
			return nil, fmt.Errorf("-f %g makes more than %d sizes", factor, maxSteps)
		}
	}
	return list, nil
}

// sizeNotes tells of sizes that are bytes where people may have meant parameters:
// 7B is seven bytes.
func sizeNotes(text string) []string {
	const few = 10_000
	var notes []string
	for _, s := range strings.Split(text, ",") {
		s = strings.TrimSpace(s)
		n, ok := strings.CutSuffix(s, "B")
		v, err := strconv.ParseFloat(n, 64)
		if !ok || err != nil || v < 1 || v >= few {
			continue
		}
		notes = append(notes, fmt.Sprintf("%s is %g bytes; did you mean %g billion parameters? %gGB in bfloat16", s, v, v,
			2*v))
	}
	return notes
}
