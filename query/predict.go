package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/internal/failure"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/schedule"
)

// Predict asks how long a collective takes on a cluster, by which algorithm and protocol NCCL would run it, what limits it,
// and which setting would help.
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
		return nil, fmt.Errorf("--launch %.60q; expected how the calls are made: \"-g 8\" (one thread serves eight GPUs), \"per gpu\", \"torch\" (every call timed by itself), \"graph\", \"queue\" (calls one after the other, as nccl-tests makes them), \"aws-ofi-nccl 1.7\" (plugin of EFA)", q.Launch)
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
		Cluster: cl.Name, Op: ask.Kind, NCCL: version.String(), Model: predict.Origin(cl), Rows: []PredictRow{}, Advice: []predict.Advice{},
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
		return nil, fmt.Errorf("--nccl-plan and --links: nothing is known of what the library sets up on these GPUs; the times are published runs")
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
func (d *PredictDoc) predictAll(ctx context.Context, env *Env, cl *cluster.Cluster, shapes []shape, v nccl.Version, settings map[string]string, ask predict.Query, how predict.Conditions) error {
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
func predictSide(cl *cluster.Cluster, l nccl.Layout, name string, v nccl.Version, settings map[string]string, ask predict.Query, how predict.Conditions) (*predict.Predictor, predict.Side, []predict.Skip, error) {
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
		if _, err := schedule.Find(a); err != nil && !slices.Contains([]string{predict.Auto, predict.Best, predict.Each, predict.All}, a) {
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
