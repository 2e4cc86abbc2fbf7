package query

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/words"
	"busbar.dev/nccl"
	"busbar.dev/predict"
)

// LoadCluster reads the cluster of sources as busbar map takes them (files in any known format, presets with an optional
// number of nodes, folders, -), joined into one; none is the machine itself.
func LoadCluster(ctx context.Context, env Env, sources ...string) (*cluster.Cluster, error) {
	return env.load(ctx, sources)
}

// placement is who takes part: a cluster, the layouts on it, and what its source does not say.
type placement struct {
	cluster, layout, compare string
	gpu, nic                 string
}

// shape is a layout as asked for; no nodes are all GPUs.
type shape struct {
	text        string
	nodes, gpus int
	hosts       string // that it is on, as a hostlist; "" is the cluster's in their order
}

// shapes are the layouts: one, or those to compare.
func (p *placement) shapes() ([]shape, error) {
	if p.compare != "" && p.layout != "" {
		return nil, fmt.Errorf("-l and --compare: expected one of them; add %s to --compare", p.layout)
	}
	texts := []string{p.layout}
	if p.compare != "" {
		if texts = strings.Split(p.compare, ","); len(texts) < 2 {
			return nil, fmt.Errorf("--compare %s; expected at least two layouts: 1x4,2x2", p.compare)
		}
		for i, text := range texts {
			if strings.TrimSpace(text) == "" || slices.Contains(texts[:i], text) {
				return nil, fmt.Errorf("--compare %s; an empty layout or one that is there twice; expected 1x4,2x2", p.compare)
			}
		}
	}
	var list []shape
	for _, t := range texts {
		s := shape{}
		if t != "" {
			var err error
			if s.nodes, s.gpus, err = predict.ParseLayout(t); err != nil {
				if p.compare != "" {
					return nil, failure.In("compare", err)
				}
				return nil, failure.In("layout", err)
			}
			s.text = fmt.Sprintf("%dx%d", s.nodes, s.gpus)
		}
		list = append(list, s)
	}
	return list, nil
}

// ranks are those of a layout, and its name.
func (s shape) ranks(cl *cluster.Cluster) (nccl.Layout, string, error) {
	if s.hosts != "" {
		return s.onNames(cl)
	}
	if s.nodes > 0 {
		l, err := nccl.Block(cl, s.nodes, s.gpus)
		return l, s.text, failure.In("layout", err)
	}
	return predict.AllGPUs(cl)
}

// load reads the cluster, with what its source does not say filled in. A preset or a file about one node that does not say
// how many there are gets as many as the layouts ask for.
func (p *placement) load(ctx context.Context, e *Env, shapes []shape) (*cluster.Cluster, error) {
	cl, err := p.enough(ctx, e, shapes)
	if err != nil {
		return nil, err
	}
	return cl, p.assume(e, cl, shapes)
}

// loadGPUs reads the cluster as load does, and refuses one without GPUs before anything is assumed of it.
func (p *placement) loadGPUs(ctx context.Context, e *Env, shapes []shape) (*cluster.Cluster, error) {
	if err := p.tooMany(ctx, e, shapes); err != nil {
		return nil, err
	}
	cl, err := p.enough(ctx, e, shapes)
	if err != nil {
		return nil, err
	}
	if err := p.requireGPUs(cl); err != nil {
		return nil, err
	}
	return cl, p.assume(e, cl, shapes)
}

// shapedGPUs reads the layouts and the cluster that has the GPUs for them.
func (p *placement) shapedGPUs(ctx context.Context, e *Env) ([]shape, *cluster.Cluster, error) {
	shapes, err := p.shapes()
	if err != nil {
		return nil, nil, err
	}
	cl, err := p.loadGPUs(ctx, e, shapes)
	return shapes, cl, err
}

func (p *placement) enough(ctx context.Context, e *Env, shapes []shape) (*cluster.Cluster, error) {
	need := 0
	for _, s := range shapes {
		need = max(need, s.nodes)
	}
	return LoadAtLeast(ctx, *e, p.cluster, need)
}

// tooMany refuses all GPUs of a preset where they are more than a layout may have, before they are made.
func (p *placement) tooMany(ctx context.Context, e *Env, shapes []shape) error {
	if !slices.ContainsFunc(shapes, func(s shape) bool { return s.nodes == 0 }) {
		return nil
	}
	hosts, name, err := e.cutHosts(e.budget(ctx), p.cluster)
	if err != nil {
		return nil // loading says so
	}
	name, count, err := e.cutCount(name)
	if err != nil || e.exists(name) {
		return nil
	}
	for _, x := range hardware.Presets() {
		if n := max(count, len(hosts)); (x.Name == name || slices.Contains(x.Aliases, name)) && n*x.GPUs > predict.MaxRanks {
			return fmt.Errorf("%d nodes of %d GPUs: %w", n, x.GPUs, predict.ErrTooMany)
		}
	}
	return nil
}

// LoadAtLeast reads a cluster as LoadCluster does. A preset or a file about one node that does not say how many nodes there
// are gets as many as are needed.
func LoadAtLeast(ctx context.Context, e Env, word string, need int) (*cluster.Cluster, error) {
	var given []string
	if word != "" {
		given = []string{word}
	}
	cl, err := e.load(ctx, given)
	if err != nil || need <= len(cl.Hosts) || len(given) == 0 || word == "-" || need > hardware.MaxNodes {
		return cl, err
	}
	if _, count, err := e.cutCount(word); err != nil || count > 0 {
		return cl, err
	}
	s, err := e.source(e.budget(ctx), word)
	if err != nil || !s.preset && len(cl.Hosts) != 1 {
		return cl, err
	}
	quiet := e
	quiet.Verbose = nil
	more, err := quiet.load(ctx, []string{fmt.Sprintf("%s:%d", word, need)})
	if err != nil {
		return nil, err
	}
	if !s.preset {
		e.note(fmt.Sprintf("%s is about one node; taken as %d such nodes", word, need))
	}
	more.Name = cl.Name
	return more, nil
}

// assume fills what the cluster's source does not say, and notes it.
func (p *placement) assume(e *Env, cl *cluster.Cluster, shapes []shape) error {
	g := predict.Given{GPU: p.gpu}
	if p.nic != "" {
		var err error
		if g.NIC, err = predict.ParseNICs(p.nic); err != nil {
			return fmt.Errorf("--nic: %w", err)
		}
	}
	if e.loaded != nil {
		e.loaded(cl)
	}
	nets := slices.ContainsFunc(shapes, func(s shape) bool { return s.nodes != 1 }) && len(cl.Hosts) > 1
	notes, err := predict.Assume(cl, g, nets)
	e.note(notes...)
	return err
}

// requireGPUs refuses a cluster without GPUs, which is mostly the machine that somebody sits at.
func (p *placement) requireGPUs(cl *cluster.Cluster) error {
	for h := range cl.Hosts {
		if t := cl.TypeOf(h); t != nil && t.Count(cluster.GPU) > 0 {
			return nil
		}
	}
	if p.cluster != "" {
		if named := len(cl.Hosts); named > 0 && cl.Hosts[0].Type < 0 {
			return fmt.Errorf("-c %s: it names %s and not what they are; busbar map %s HOSTLIST=PRESET -o site.yaml says it (%.80s=dgx-h100), then -c site.yaml", p.cluster, words.Plural(named, "node"), p.cluster, hostNames(cl))
		}
		return fmt.Errorf("-c %s: no node of it has a GPU; nothing to predict", p.cluster)
	}
	return fmt.Errorf("no cluster given, and this machine (%s) has no GPU; give one with -c: a preset (busbar presets lists them), a cluster file, or any file that busbar map reads", cl.Name)
}

// hostNames are a cluster's hosts as a hostlist.
func hostNames(cl *cluster.Cluster) string {
	var names []string
	for _, h := range cl.Hosts[:min(len(cl.Hosts), 64)] {
		names = append(names, h.Name)
	}
	return cluster.FormatHosts(names)
}

// hostsOf is how many hosts a layout has.
func hostsOf(l nccl.Layout) int {
	var seen []bool
	n := 0
	for _, r := range l {
		if r.Host >= len(seen) {
			seen = append(seen, make([]bool, r.Host+1-len(seen))...)
		}
		if !seen[r.Host] {
			seen[r.Host] = true
			n++
		}
	}
	return n
}

// parseNCCL is a release of NCCL; nothing is the newest known.
func (e *Env) parseNCCL(text string) (nccl.Version, error) {
	if text == "" {
		return nccl.Newest, nil
	}
	v, err := nccl.ParseVersion(text)
	if err == nil {
		return v, nil
	}
	if near, ok := nccl.Nearest(text); ok {
		e.note(fmt.Sprintf("the rules of NCCL %.20s are not known; those of %s are taken, which is nearest", text, near))
		return near, nil
	}
	return v, fmt.Errorf("--nccl: %w", err)
}

// checkTuner refuses the tuner plugin where NCCL loads none.
func checkTuner(asked bool, v nccl.Version) error {
	if asked && !v.From(19) {
		return fmt.Errorf("--tuner with NCCL %s: NCCL loads tuner plugins from 2.19 on; expected a newer --nccl, or leave --tuner out", v)
	}
	return nil
}
