package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/report"
	"busbar.dev/schedule"
)

type predictCmd struct {
	common
	Machine string    `arg:"" optional:"" name:"cluster" help:"The cluster, as -c gives it."`
	Cluster string    `short:"c" placeholder:"CLUSTER" help:"A preset (dgx-h100:4), a cluster file, or any file that map reads (topo.xml:8 is eight such nodes). None: this machine."`
	Layout  string    `short:"l" placeholder:"NODESxGPUS" help:"Who takes part: 2x4 is two nodes with four GPUs each. None: all GPUs."`
	Op      string    `default:"all_reduce" help:"all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, all_to_all_v, gather, scatter, sendrecv, hypercube, barrier."`
	Min     string    `short:"b" name:"minbytes" placeholder:"SIZE" help:"The smallest size; 8 without -e and --size (8, 64K, 1M, 1G are 1024-based as in nccl-tests; 1.32GB, 1GiB say so)."`
	Max     string    `short:"e" name:"maxbytes" placeholder:"SIZE" help:"The greatest size; 128M without -b and --size."`
	Factor  float64   `short:"f" name:"stepfactor" default:"2" help:"From size to size."`
	Size    string    `placeholder:"SIZE" help:"One size, or several with commas, instead of -b -e -f."`
	Dtype   string    `short:"d" default:"float" help:"float, half, bfloat16, int8, f8e4m3, …"`
	Root    int       `help:"The root of broadcast, reduce, gather, scatter."`
	Algo    string    `placeholder:"ALGO" help:"auto is what NCCL takes, best what is fastest, each a row for every algorithm of NCCL, all also for every protocol, or names (ring,tree). Without it: auto, and each with --compare."`
	Proto   protoWord `enum:"auto,ll,ll128,simple" default:"auto" help:"auto, ll, ll128 or simple."`
	NCCL    string    `name:"nccl" placeholder:"VERSION" help:"The release of NCCL, 2.18 to 2.30. Without it: the newest known, named in the first line of the output; give the job's own (NCCL_DEBUG=VERSION prints it)."`
	Plan    bool      `name:"nccl-plan" help:"Also print what NCCL sets up: graphs, rings, trees, its table of estimates."`
	Links   bool      `help:"Also how busy every link is, each direction of it: bytes, share of the time, which of them limit the run. Of one run: one size, one algorithm, one layout."`
	Compare string    `placeholder:"L1,L2,…" help:"Layouts side by side: 1x4,2x2,4x1."`
	GPU     string    `name:"gpu" placeholder:"MODEL" help:"The GPUs' model where the cluster's source does not name it: a100-80."`
	NIC     string    `name:"nic" placeholder:"[COUNTx]SPEED" help:"The NICs where the source does not say: 200Gb/s or HDR is the rate of those it has, 4x200Gb/s or 4xHDR four of them a node where it has none."`
	Env     []string  `placeholder:"KEY=VALUE" sep:"none" help:"A setting of NCCL, as in the job's environment. Repeatable."`
	Output  []string  `short:"o" placeholder:"FILE" sep:"none" help:"Also write a file: .svg is a picture, .trace.json a timeline for Perfetto, .json the document of --json, .txt the table; FORMAT=FILE says svg, trace, json or text itself, and FORMAT=- writes to standard output instead of the table. Repeatable."`
	Trace   string    `placeholder:"FILE" help:"Write the timeline of one run (one size, one algorithm), for ui.perfetto.dev or chrome://tracing; - is standard output, instead of the table."`
}

// Help ends with examples.
func (predictCmd) Help() string {
	return "Predicts how long a collective takes, by which algorithm and protocol NCCL would do it, what limits it, and which setting would help. " +
		"Sizes, algbw and busbw are those of nccl-tests. The figures of the model were fitted on published measurements; see docs/accuracy.md.\n\n" +
		"Examples:\n" +
		"  busbar predict dgx-h100:2\n" +
		"  busbar predict -c dgx-h100:4 --op all_gather -b 1M -e 1G -f 4 --algo all\n" +
		"  busbar predict -c baskerville --compare 1x4,2x2,4x1 --size 1.32GB -d bfloat16\n" +
		"  busbar predict -c dgx-h100:8 -l 4x8 --nccl 2.21 --env NCCL_ALGO=Ring --json\n" +
		"  busbar predict -c docs/examples/rails.yaml -l 2x8 --size 14GB\n" +
		"  busbar predict -c baskerville -l 2x2 --size 1G --links\n" +
		"  busbar predict -c dgx-a100:2 -b 8 -e 8G -o curve.svg"
}

// Run predicts and writes what was asked for.
func (c *predictCmd) Run(e *env) error {
	if err := c.outputs(e); err != nil { // before the work, not after it
		return err
	}
	f, err := c.forecast(e)
	if err != nil {
		return err
	}
	return c.write(e, f)
}

// forecast predicts what the flags ask for.
func (c *predictCmd) forecast(e *env) (*forecast, error) {
	if err := c.place(); err != nil {
		return nil, err
	}
	q, err := c.query(e)
	if err != nil {
		return nil, err
	}
	settings, err := c.settings()
	if err != nil {
		return nil, err
	}
	c.note(e, predict.EnvironmentNotes(settings)...)
	version := nccl.Newest
	if c.NCCL != "" {
		if version, err = nccl.ParseVersion(c.NCCL); err != nil {
			return nil, fmt.Errorf("--nccl: %w", err)
		}
	}
	shapes, err := c.shapes()
	if err != nil {
		return nil, err
	}
	cl, err := c.load(e, shapes)
	if err != nil {
		return nil, err
	}
	if err := c.peopled(cl); err != nil {
		return nil, err
	}
	if err := c.assume(e, cl, shapes); err != nil {
		return nil, err
	}
	done := e.later(c.common, "predicting")
	defer done()
	f := &report.Forecast{Cluster: cl.Name, Op: q.Kind.String(), NCCL: version.String(), Compared: c.Compare != "", Origin: predict.Origin(cl), Parts: c.Verbose}
	var asked []*predict.Predictor
	var impossible error
	for _, s := range shapes {
		if err := e.ctx.Err(); err != nil {
			return nil, err
		}
		p, side, skipped, err := c.side(cl, s, version, settings, q)
		switch {
		case err != nil && f.Compared: // the others can still be compared
			f.Skipped = append(f.Skipped, sideError(s, err))
			impossible = cmp.Or(impossible, err)
			continue
		case err != nil:
			return nil, err
		}
		c.note(e, p.Plan.Notes()...)
		asked = append(asked, p)
		addSide(f, p, side, skipped)
	}
	if len(f.Sides) == 0 {
		return nil, impossible
	}
	f.Rows = arranged(f)
	if len(f.Sides) > 1 {
		f.Verdicts = predict.Compare(f.Sides)
	}
	return c.linked(e, &forecast{f, asked, q, nil})
}

// addSide adds what was predicted for one layout.
func addSide(f *report.Forecast, p *predict.Predictor, side predict.Side, skipped []predict.Skip) {
	f.Unmeasured = f.Unmeasured || !predict.Measured(p.Class())
	f.Sides = append(f.Sides, side)
	if side.Caveat != "" {
		f.Caveats = append(f.Caveats, side.Layout+": "+side.Caveat)
	}
	for _, t := range skipped {
		f.Skipped = append(f.Skipped, fmt.Sprintf("%s %s: %s", side.Layout, t.Algo, t.Reason))
	}
}

// place takes the cluster that stands without a flag.
func (c *predictCmd) place() error {
	switch {
	case c.Machine == "":
	case c.Cluster != "":
		return fmt.Errorf("%s and -c %s: expected one cluster", c.Machine, c.Cluster)
	default:
		c.Cluster = c.Machine
	}
	return nil
}

// peopled refuses a cluster without GPUs, which is mostly the machine that somebody sits at.
func (c *predictCmd) peopled(cl *cluster.Cluster) error {
	for h := range cl.Hosts {
		if t := cl.TypeOf(h); t != nil && t.Count(cluster.GPU) > 0 {
			return nil
		}
	}
	if c.Cluster != "" {
		return fmt.Errorf("-c %s: no node of it has a GPU; nothing to predict", c.Cluster)
	}
	return fmt.Errorf("no cluster given, and this machine (%s) has no GPU; give one with -c: a preset (busbar presets lists them), a cluster file, or any file that busbar map reads", cl.Name)
}

// sideError is why a layout is not in a comparison.
func sideError(s shape, err error) string {
	if text := err.Error(); strings.HasPrefix(text, "layout "+s.text) {
		return text
	}
	return fmt.Sprintf("%s: %v", s.text, err)
}

// note tells something beside the answer.
func (c *predictCmd) note(e *env, texts ...string) {
	if c.Quiet {
		return
	}
	for _, t := range texts {
		fmt.Fprintln(e.stderr, "note:", t)
	}
}

// query is what the flags ask for.
func (c *predictCmd) query(e *env) (predict.Query, error) {
	q := predict.Query{Root: c.Root, Proto: string(c.Proto), Stop: e.ctx.Err}
	var err error
	if q.Kind, err = coll.ParseKind(c.Op); err != nil {
		return q, fmt.Errorf("--op: %w", err)
	}
	if q.Type, err = coll.ParseDtype(c.Dtype); err != nil {
		return q, fmt.Errorf("--dtype: %w", err)
	}
	if q.Sizes, err = c.sizes(); err != nil {
		return q, err
	}
	c.note(e, sizeNotes(c.Size)...)
	if q.Kind == coll.Barrier && c.Size+c.Min+c.Max != "" {
		c.note(e, "a barrier moves no data: --size, -b and -e are not used")
	}
	algos := c.Algo
	if algos == "" {
		algos = predict.Auto
		if c.Compare != "" {
			algos = predict.Each
		}
	}
	for _, a := range strings.Split(algos, ",") {
		a = strings.ToLower(strings.TrimSpace(a))
		if _, err := schedule.Find(a); err != nil && !slices.Contains([]string{predict.Auto, predict.Best, predict.Each, predict.All}, a) {
			return q, fmt.Errorf("--algo: %w; or auto, best, each, all", err)
		}
		q.Algos = append(q.Algos, a)
	}
	return q, nil
}

// settings are those of --env.
func (c *predictCmd) settings() (map[string]string, error) {
	env := map[string]string{}
	for _, s := range c.Env {
		k, v, ok := strings.Cut(s, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("--env %s; expected KEY=VALUE", s)
		}
		env[k] = v
	}
	return env, nil
}

// shape is a layout as asked for; no nodes are all GPUs.
type shape struct {
	text        string
	nodes, gpus int
}

func (c *predictCmd) shapes() ([]shape, error) {
	if c.Compare != "" && c.Layout != "" {
		return nil, fmt.Errorf("-l and --compare: expected one of them; add %s to --compare", c.Layout)
	}
	texts := []string{c.Layout}
	if c.Compare != "" {
		if texts = strings.Split(c.Compare, ","); len(texts) < 2 {
			return nil, fmt.Errorf("--compare %s; expected at least two layouts: 1x4,2x2", c.Compare)
		}
		for i, text := range texts {
			if strings.TrimSpace(text) == "" || slices.Contains(texts[:i], text) {
				return nil, fmt.Errorf("--compare %s; an empty layout or one that is there twice; expected 1x4,2x2", c.Compare)
			}
		}
	}
	var list []shape
	for _, t := range texts {
		s := shape{}
		if t != "" {
			var err error
			if s.nodes, s.gpus, err = predict.ParseLayout(t); err != nil {
				return nil, err
			}
			s.text = fmt.Sprintf("%dx%d", s.nodes, s.gpus)
		}
		list = append(list, s)
	}
	return list, nil
}

// load reads the cluster. A preset or a file about one node that does not say how
// many there are gets as many as the layouts ask for.
func (c *predictCmd) load(e *env, shapes []shape) (*cluster.Cluster, error) {
	var words []string
	if c.Cluster != "" {
		words = []string{c.Cluster}
	}
	need := 0
	for _, s := range shapes {
		need = max(need, s.nodes)
	}
	cl, err := e.load(words, c.common)
	if err != nil || need <= len(cl.Hosts) || len(words) == 0 || c.Cluster == "-" || need > hardware.MaxNodes {
		return cl, err
	}
	if _, count, err := e.cutCount(c.Cluster); err != nil || count > 0 {
		return cl, err
	}
	s, err := e.source(c.Cluster)
	if err != nil || !s.preset && len(cl.Hosts) != 1 {
		return cl, err
	}
	more, err := e.load([]string{fmt.Sprintf("%s:%d", c.Cluster, need)}, common{Quiet: true})
	if err != nil {
		return nil, err
	}
	if !s.preset {
		c.note(e, fmt.Sprintf("%s is about one node; taken as %d such nodes", c.Cluster, need))
	}
	more.Name = cl.Name
	return more, nil
}

// assume fills what the cluster's source does not say, and tells so.
func (c *predictCmd) assume(e *env, cl *cluster.Cluster, shapes []shape) error {
	g := predict.Given{GPU: c.GPU}
	if c.NIC != "" {
		var err error
		if g.NIC, err = predict.ParseNICs(c.NIC); err != nil {
			return fmt.Errorf("--nic: %w", err)
		}
	}
	nets := slices.ContainsFunc(shapes, func(s shape) bool { return s.nodes != 1 }) && len(cl.Hosts) > 1
	notes, err := predict.Assume(cl, g, nets)
	c.note(e, notes...)
	return err
}

// side predicts one layout.
func (c *predictCmd) side(cl *cluster.Cluster, s shape, v nccl.Version, env map[string]string, q predict.Query) (*predict.Predictor, predict.Side, []predict.Skip, error) {
	var l nccl.Layout
	var err error
	name := s.text
	if s.nodes > 0 {
		l, err = nccl.Block(cl, s.nodes, s.gpus)
	} else {
		l, name, err = predict.Everything(cl)
	}
	if err != nil {
		return nil, predict.Side{}, nil, err
	}
	p, err := predict.New(cl, l, v, env, nil)
	if err != nil {
		return nil, predict.Side{}, nil, err
	}
	a, err := p.Ask(q)
	if err != nil {
		return nil, predict.Side{}, nil, err
	}
	side := predict.Side{Layout: name, Nodes: hostsOf(l), Ranks: len(l), Rows: a.Rows}
	if side.Counsel, err = p.Advise(q); err != nil {
		return nil, predict.Side{}, nil, err
	}
	for i := range side.Advice {
		side.Advice[i].Layout = name
	}
	side.Caveat = p.Caveat(q)
	return p, side, a.Skipped, nil
}

func hostsOf(l nccl.Layout) int {
	seen := map[int]bool{}
	for _, r := range l {
		seen[r.Host] = true
	}
	return len(seen)
}

// later is a progress line that appears only when something takes more than a
// second.
func (e *env) later(o common, text string) func() {
	if o.Quiet || !isTerminal(e.stderr) {
		return func() {}
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-stop:
		case <-time.After(time.Second):
			clear := e.progress(o, text)
			<-stop
			clear()
		}
	}()
	return func() {
		close(stop)
		<-ended
	}
}
