package query

import (
	"cmp"
	"context"
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
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// Predict asks how long a collective takes on a cluster, by which algorithm and protocol NCCL would run it, what limits
// it, and which setting would help.
type Predict struct {
	Cluster string   `short:"c" names:"cluster" placeholder:"CLUSTER" help:"Cluster: a preset (dgx-h100:4), a cluster file, or any file that map reads (topo.xml:8 is eight such nodes) (default: this machine)."`
	Layout  Layout   `short:"l" placeholder:"NODESxGPUS" help:"Participating nodes and GPUs per node: 2x4 is two nodes with four GPUs each (default: all GPUs)."`
	Hosts   string   `placeholder:"HOSTLIST" help:"Participating hosts of the cluster in rank order, as a hostlist: gpu[03,07] (default: the cluster's hosts in their order)."`
	Op      Op       `default:"all_reduce" help:"all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, all_to_all_v, gather, scatter, sendrecv, hypercube, barrier (default all_reduce)."`
	Min     Size     `short:"b" name:"minbytes" placeholder:"SIZE" help:"Smallest size (default 8 without -e and --size); 64K, 1M, 1G are 1024-based as in nccl-tests, 1.32GB is 1000-based."`
	Max     Size     `short:"e" name:"maxbytes" placeholder:"SIZE" help:"Largest size (default 128M without -b and --size)."`
	Factor  float64  `short:"f" name:"stepfactor" default:"2" help:"Factor between sizes (default 2)."`
	Size    Size     `placeholder:"SIZE" help:"One size, or several separated by commas, instead of -b -e -f."`
	Dtype   Dtype    `short:"d" default:"float" help:"float, half, bfloat16, int8, f8e4m3, … (default float)"`
	Root    int      `help:"Root rank of broadcast, reduce, gather, scatter."`
	Algo    string   `placeholder:"ALGO" help:"auto (NCCL's choice), best (the fastest), each (one row per NCCL algorithm), all (also per protocol), or names: ring,tree (default: auto, or each with --compare)."`
	Proto   proto    `enum:"auto,ll,ll128,simple" default:"auto" help:"auto, ll, ll128 or simple (default auto)."`
	NCCL    string   `name:"nccl" placeholder:"VERSION" help:"NCCL release, from 2.8 on, as NCCL_DEBUG=VERSION prints it (default: the newest known, named in the first line of the output)."`
	Plan    bool     `name:"nccl-plan" help:"Also print NCCL's setup: graphs, rings, trees and its table of estimates."`
	Links   bool     `help:"Also print the load of every link in each direction: bytes, share of the time, which links limit the run. Needs one size, one algorithm and one layout."`
	Compare Layout   `placeholder:"L1,L2,…" help:"Compare layouts: 1x4,2x2,4x1."`
	GPU     string   `name:"gpu" placeholder:"MODEL" help:"GPU model when the cluster's source does not name it: a100-80."`
	NIC     string   `name:"nic" placeholder:"[COUNTx]SPEED" help:"NICs when the source does not state them: 10GbE (one per node), 4x200Gb/s or 4xHDR (four per node); without a count also the rate of NICs that are known."`
	Launch  string   `placeholder:"WORDS" help:"How calls are launched and timed: --launch=\"-g 8\" (nccl-tests, one thread for 8 GPUs), torch (every call timed by itself), graph, queue (back-to-back calls as in nccl-tests: broadcast and reduce overlap), \"aws-ofi-nccl 1.7\" (plugin of EFA, where it is older than 1.9) (default: one call, one process per GPU)."`
	Floor   bool     `help:"Print what every size reaches at least, and how sure that is; -o number, cel, nvsentinel, superbench or nccl-tests writes it for other programs' checks, and is refused where it is a guess unless this is given too."`
	Env     []string `placeholder:"KEY=VALUE" sep:"none" help:"NCCL setting, as in the job's environment. Repeatable."`
	Devices string   `placeholder:"LIST" help:"GPUs of every node that take part, by their numbers: 2,3 or 0-3 (default: the first)."`
	Set     []string `placeholder:"KEY=VALUE" sep:"none" help:"Change the cluster: nic=400G, nics=4 (per node), gdr=on or off, nvlink=off, oversubscription=4:1, gpu=h200; or a key listed below. Repeatable."`
}

// proto is the name of one of NCCL's protocols, in any case: NCCL prints LL128 and Simple.
type proto string

// UnmarshalText takes any case.
func (p *proto) UnmarshalText(text []byte) error {
	*p = proto(strings.ToLower(string(text)))
	return nil
}

// Run predicts.
func (q Predict) Run(ctx context.Context, env Env) (doc *PredictDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	doc, _, err = q.predict(ctx, &env)
	return doc, err
}

// predict predicts, and gives the predictors of the layouts that are priced.
func (q *Predict) predict(ctx context.Context, env *Env) (*PredictDoc, []*predict.Predictor, error) {
	if err := prepare(q); err != nil {
		return nil, nil, err
	}
	ask, err := q.operation(ctx, env)
	if err != nil {
		return nil, nil, err
	}
	settings, err := parseSettings(q.Env)
	if err != nil {
		return nil, nil, err
	}
	version, err := env.parseNCCL(q.NCCL)
	if err != nil {
		return nil, nil, err
	}
	how, ok := predict.ParseLaunch(q.Launch)
	if !ok {
		return nil, nil,
			fmt.Errorf("--launch %.60q; expected how the calls are made: \"-g 8\" (one thread serves eight GPUs), "+
				"\"per gpu\", \"torch\" (every call timed by itself), \"graph\", \"queue\" (calls one after the other, as "+
				"nccl-tests makes them), \"aws-ofi-nccl 1.7\" (plugin of EFA)", q.Launch)
	}
	how.Chosen = q.Devices != ""
	place := placement{
		cluster: q.Cluster, layout: string(q.Layout), compare: string(q.Compare), devices: q.Devices, gpu: q.GPU, nic: q.NIC,
		set: q.Set,
	}
	shapes, cl, err := place.shapedGPUs(ctx, env)
	if err == nil {
		err = onHosts(q.Hosts, shapes)
	}
	if err != nil {
		return nil, nil, err
	}
	if q.NCCL == "" {
		version = predict.CalibratedRelease(cl, version)
	}
	defer env.working("predicting")()
	d := &PredictDoc{
		Cluster: cl.Name, Op: ask.Kind, NCCL: version.String(), Model: predict.Origin(cl), Rows: []predict.Row{},
		Advice:   []predict.Advice{},
		Compared: q.Compare != "", Floors: q.Floor,
	}
	predictors, err := d.predictAll(ctx, env, cl, shapes, version, settings, ask, how)
	if err != nil {
		return nil, nil, err
	}
	d.sortRows()
	if i := slices.IndexFunc(d.Rows, func(r predict.Row) bool { return r.High >= wideBar*r.Time && r.Time > 0 }); i >= 0 {
		side := slices.IndexFunc(d.Sides, func(s predict.Side) bool { return s.Layout == d.Rows[i].Layout })
		d.Measure = q.narrowing(d.Sides[max(side, 0)])
	}
	if len(d.Sides) > 1 {
		d.Compare = predict.Compare(d.Sides, d.Rows, d.Advice)
	}
	if len(predictors) == 0 && (q.Plan || q.Links) {
		return nil, nil, fmt.Errorf("--nccl-plan and --links: nothing is known of what the library sets up on these GPUs; " +
			"the times are published runs")
	}
	if q.Plan {
		d.addPlans(predictors)
	}
	if q.Links {
		err = d.addLinks(ctx, env, predictors[0])
	}
	return d, predictors, err
}

// wideBar is an error bar that says little.
const wideBar = 2

// narrowing is the sweep whose calibration narrows the error bars of a layout.
func (q *Predict) narrowing(s predict.Side) string {
	kind, _ := q.Op.kind()
	return fmt.Sprintf("mpirun -np %d -N %d %s -b 16 -e 1G -f 64 -g 1 > sweep.txt; busbar calibrate -c %s sweep.txt",
		s.Ranks, s.Ranks/max(s.Nodes, 1), cmp.Or(kind.Binary(), "all_reduce_perf"), cmp.Or(q.Cluster, "CLUSTER"))
}

// predictAll predicts every layout. In a comparison, one that cannot be predicted is left out and named.
func (d *PredictDoc) predictAll(ctx context.Context, env *Env, cl *cluster.Cluster, shapes []shape, v nccl.Version,
	settings map[string]string, ask predict.Query, how predict.Conditions,
) (predictors []*predict.Predictor, err error) {
	var impossible error
	for i, s := range shapes {
		env.steps(i, len(shapes))
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l, name, err := s.ranks(cl)
		env.noteOutOfService(cl, l)
		if err == nil && (ask.Root < 0 || ask.Root >= len(l)) {
			err = failure.In("root", coll.Op{Kind: ask.Kind, Root: ask.Root}.Check(len(l)))
		}
		side := predict.Side{Layout: name, Nodes: nodesOf(cl, l), Ranks: len(l)}
		if err == nil && predict.OnlyPublished(cl, l) {
			err = d.addPublished(cl, l, side, ask)
			if err == nil {
				continue
			}
		}
		var p *predict.Predictor
		if err == nil {
			p, err = predict.New(cl, l, v, settings, nil)
		}
		var a *predict.Answer
		if err == nil {
			p.Conditions = how
			a, err = p.AskSide(side, ask)
		}
		switch {
		case err != nil && d.Compared: // the others can still be compared
			d.Skipped = append(d.Skipped, sideError(s, err))
			impossible = cmp.Or(impossible, err)
			continue
		case err != nil:
			return nil, err
		}
		env.note(p.Plan.Notes()...)
		predictors = append(predictors, p)
		wired, err := wiringAdvice(p, side.Layout, ask, settings)
		if err != nil {
			return nil, err
		}
		a.Advice = append(a.Advice, wired...)
		slices.SortStableFunc(a.Advice, func(a, b predict.Advice) int { return cmp.Compare(b.Gain, a.Gain) })
		d.addSide(p, a)
	}
	env.steps(len(shapes), len(shapes))
	if len(d.Sides) == 0 {
		return nil, impossible
	}
	return predictors, nil
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
		return ask, err
	}
	if ask.Type, err = q.Dtype.dtype(); err != nil {
		return ask, err
	}
	if ask.Sizes, err = q.sizes(); err != nil {
		return ask, err
	}
	env.note(sizeNotes(string(q.Size))...)
	idle, why := "", ""
	switch {
	case ask.Kind == coll.Barrier:
		idle, why = "size minbytes maxbytes stepfactor dtype", "a barrier moves no data"
	case q.Size != "":
		idle, why = "stepfactor", "--size gives the sizes"
	}
	if err := unread(q, idle, why); err != nil {
		return ask, err
	}
	if !ask.Kind.Rooted() {
		if err := unread(q, "root", ask.Kind.String()+" has no root"); err != nil {
			return ask, err
		}
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

// PredictDoc is the answer to Predict.
type PredictDoc struct {
	Cluster string            `json:"cluster"`
	Op      coll.Kind         `json:"op"`
	NCCL    string            `json:"nccl"`              // release
	Library string            `json:"library,omitempty"` // rccl on AMD's GPUs, hccl on Gaudi
	Model   string            `json:"model"`             // where the model's figures come from
	Sides   []predict.Side    `json:"layouts"`
	Rows    []predict.Row     `json:"rows"` // by size; in a comparison the fastest first
	Advice  []predict.Advice  `json:"advice"`
	Gain    float64           `json:"best_gain"`         // of the fastest that NCCL can run over its choice
	Caveats []string          `json:"caveats,omitempty"` // what the prediction takes for granted
	Compare []predict.Verdict `json:"compare,omitempty"`
	Skipped []string          `json:"skipped,omitempty"` // what could not be predicted, and why
	// Plan is what NCCL sets up, where it was asked for; Plans those of several layouts.
	Plan  *nccl.Setup          `json:"nccl_plan,omitempty"`
	Plans []predict.LayoutPlan `json:"nccl_plans,omitempty"`

	// Measure is half a minute that narrows the error bars, where one is so wide that it says little.
	Measure string `json:"measure,omitempty"`

	Floors   bool `json:"floors,omitempty"`   // the lower ends are what was asked for
	Compared bool `json:"compared,omitempty"` // layouts side by side
	Noted
}

// addSide adds what was predicted for one layout.
func (d *PredictDoc) addSide(p *predict.Predictor, a *predict.Answer) {
	if p.Plan.RCCL != nil {
		d.Library, d.Model = "rccl", "from published figures of AMD and RCCL"
	}
	d.addAnswer(a)
	if a.Side.Ranks > predict.LargestMeasured {
		d.Caveats = append(d.Caveats, fmt.Sprintf("%s: no measurement of more than %d GPUs is public, so the error bar is "+
			"the widest; congestion between jobs and switches is not modelled", a.Side.Layout, predict.LargestMeasured))
	}
}

// addAnswer adds a layout.
func (d *PredictDoc) addAnswer(a *predict.Answer) {
	d.Sides, d.Rows, d.Advice = append(d.Sides, a.Side), append(d.Rows, a.Rows...), append(d.Advice, a.Advice...)
	d.Gain = max(d.Gain, math.Round(a.Side.Gain*1e4)/1e4) // more digits are not known
	for _, t := range a.Skipped {
		d.Skipped = append(d.Skipped, fmt.Sprintf("%s %s: %s", a.Side.Layout, t.Algo, t.Reason))
	}
}

// addPublished adds a layout of GPUs of whose library only runs are known.
func (d *PredictDoc) addPublished(cl *cluster.Cluster, l nccl.Layout, side predict.Side, ask predict.Query) error {
	a, source, err := predict.AskPublished(cl, l, side, ask)
	if err != nil {
		return err
	}
	d.Library, d.NCCL, d.Model = "hccl", "", "none: published runs ("+source+"), drawn between their sizes"
	d.addAnswer(a)
	return nil
}

// sortRows puts rows into the order in which they are shown: by size, in a
// comparison the fastest first.
func (d *PredictDoc) sortRows() {
	slices.SortStableFunc(d.Rows, func(a, b predict.Row) int {
		n := cmp.Compare(a.Asked, b.Asked)
		if d.Compared {
			n = cmp.Or(n, cmp.Compare(a.Time, b.Time))
		}
		return n
	})
}

// addPlans adds what NCCL sets up.
func (d *PredictDoc) addPlans(predictors []*predict.Predictor) {
	d.Plan = predictors[0].Plan.Setup()
	if len(predictors) == 1 {
		return
	}
	for i, p := range predictors {
		d.Plans = append(d.Plans, predict.LayoutPlan{Layout: d.Sides[i].Layout, Plan: p.Plan.Setup()})
	}
}

// addLinks adds how busy every link is.
func (d *PredictDoc) addLinks(ctx context.Context, env *Env, p *predict.Predictor) error {
	if len(d.Rows) != 1 {
		return fmt.Errorf("--links is about one run and there are %d rows; give one --size, one layout and one --algo",
			len(d.Rows))
	}
	err := p.AddLinks(ctx, &d.Rows[0])
	if err != nil && ctx.Err() == nil {
		env.note(err.Error()) // the prediction itself stands
		return nil
	}
	return err
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
	if q.Max == "" {
		hi = max(hi, lo)
	} else if hi, err = q.Max.bytes(); err != nil {
		return nil, fmt.Errorf("-e: %w", err)
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
		return nil, fmt.Errorf("-b %v is more than -e %v; expected sizes from the smaller to the greater", lo, hi)
	case math.IsInf(factor, 0) || math.IsNaN(factor):
		return nil, fmt.Errorf("-f %g; expected a number more than 1", factor)
	case !(factor > 1):
		if lo == hi {
			return []unit.Bytes{lo}, nil
		}
		return nil, fmt.Errorf("-f %g; expected more than 1", factor)
	case math.Log(float64(hi)/float64(lo)) > 8*maxSteps*math.Log(factor): // most of which make no other size
		return nil, fmt.Errorf("-f %g makes more than %d sizes", factor, maxSteps)
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
