package predict

import (
	"context"
	"maps"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/result"
	"busbar.dev/schedule"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// Predictor answers for one layout of ranks on a cluster under one release of
// NCCL. It keeps what does not depend on the size, so that a sweep costs little
// more than one call. It is not safe for concurrent use.
type Predictor struct {
	Cluster *cluster.Cluster
	Layout  nccl.Layout
	Plan    *nccl.Plan
	Figures *sim.Figures
	Gen     sim.Gen
	Card    bool // GPUs are PCIe cards
	// Conditions say how the calls are made and timed. They must be set before anything is priced.
	Conditions

	env     map[string]string
	asked   map[string]string // the settings of the question, where this is a variant of its predictor
	beside  []nccl.Layout
	smaller map[int]*Predictor    // of the first ranks, for what cannot be counted over all
	others  map[string]*Predictor // by settings beside those of algorithms and protocols

	machine   *sim.Machine
	nodeOf    []int32
	outlines  map[shape]*outline
	trees     map[treeKey]*schedule.Trees
	rings     map[int]*schedule.Order // by channel
	grouped   *schedule.Groups
	className string
	firstEFA  bool
	forks     []*fork // nil until somebody asks
	reached   bool    // what GPUs reach is set on the machine
	noDirect  bool    // GPUDirect is taken not to be there
	rack      int     // GPUs of a rack of trays, 0 in a server
}

// shape is what an outline depends on.
type shape struct {
	kind     coll.Kind
	algo     string
	channels int
	root     int
}

type outline struct {
	*sim.Outline
	err error
}

// New prepares a predictor. figures nil takes the fitted ones and those that the
// cluster was calibrated with.
func New(c *cluster.Cluster, l nccl.Layout, v nccl.Version, env map[string]string,
	figures *sim.Figures,
) (*Predictor, error) {
	return NewWithPlanner(&nccl.Planner{}, c, l, v, env, figures)
}

// NewWithPlanner is New for one of many groups, which share what searches found.
func NewWithPlanner(found *nccl.Planner, c *cluster.Cluster, l nccl.Layout, v nccl.Version, env map[string]string,
	figures *sim.Figures,
) (*Predictor, error) {
	asked := env
	c, env, noDirect := settled(c, env)
	plan, err := found.Plan(c, l, v, env)
	if err != nil {
		return nil, err
	}
	m, err := sim.NewAt(c, len(l), l.Place)
	if err != nil {
		return nil, err
	}
	if figures == nil {
		if figures, err = Figures(c); err != nil {
			return nil, err
		}
	}
	p := newPredictor(plan, m, c, l, env, figures, nil)
	p.noDirect, p.asked = noDirect, asked
	return p, nil
}

// newPredictor puts a plan on a machine on which nothing was set yet.
func newPredictor(plan *nccl.Plan, m *sim.Machine, c *cluster.Cluster, l nccl.Layout, env map[string]string,
	figures *sim.Figures, nodeOf []int32,
) *Predictor {
	switch gdr, set := nccl.GDRLevel(env); {
	case set:
		m.Reach = class(gdr)
	case plan.RCCL != nil: // a NIC reads the memory of any GPU of its NUMA domain, as on Frontier
		m.Reach = cluster.NODE
	}
	p := &Predictor{
		Cluster: c, Layout: l, Plan: plan, Figures: figures, Gen: sim.GenOf(plan.MinCC), env: env, asked: env, machine: m,
		outlines: map[shape]*outline{}, trees: map[treeKey]*schedule.Trees{}, rings: map[int]*schedule.Order{},
		others: map[string]*Predictor{}, nodeOf: nodeOf,
	}
	t := c.TypeOf(l[0].Host)
	if p.Card = !t.Linked(); p.Plan.RCCL == nil { // one module of several may take part, or all without their links
		if m, ok := hardware.GPUByName(t.Devices[l[0].GPU].Model.Value); ok {
			p.Card = !m.Module()
		}
	}
	if t.Trays > 1 {
		p.rack = len(plan.Nodes[0].Ranks)
	}
	p.firstEFA = firstEFA(t)
	if p.nodeOf == nil {
		p.nodeOf = make([]int32, len(l))
		for i := range plan.Nodes {
			for _, r := range plan.Nodes[i].Ranks {
				p.nodeOf[r] = int32(i)
			}
		}
	}
	return p
}

// Library is the name of what runs the collectives, for sentences.
func (p *Predictor) Library() string {
	if p.Plan.RCCL != nil {
		return "RCCL"
	}
	return "NCCL"
}

// reach lets the machine's GPUs reach each other as NCCL decides: to which distance they write to each other's memory,
// and whether NICs are better than what is between two GPUs of a host.
func (p *Predictor) reach() {
	if p.reached = true; p.Plan.RCCL != nil || p.Without.Has(sim.PeerRules) {
		return
	}
	p.machine.Direct = class(p.Plan.Nodes[0].View.PeerLevel())
	seen := make([]bool, len(p.Cluster.Hosts))
	for _, n := range p.Plan.Nodes {
		if seen[n.Host] {
			p.machine.Node = p.nodeOf
			return
		}
		seen[n.Host] = true
	}
}

// under is the predictor with other settings. Those that only choose among algorithms and protocols leave rings, trees
// and everything priced on them as they are.
func (p *Predictor) under(env map[string]string) (*Predictor, error) {
	rest := func(env map[string]string) map[string]string {
		return withSetting(env, p.Plan.Version, coll.None, "", "")
	}
	q := *p
	if plain := rest(env); !maps.Equal(plain, rest(p.Plan.Env)) {
		key := settingText(plain)
		if p.others[key] == nil {
			plan, err := p.Plan.Under(p.Cluster, p.Layout, plain)
			if err != nil {
				return nil, err
			}
			nodeOf := p.nodeOf
			if !slices.EqualFunc(plan.Nodes, p.Plan.Nodes,
				func(a, b nccl.PlanNode) bool { return slices.Equal(a.Ranks, b.Ranks) }) {
				nodeOf = nil
			}
			other := newPredictor(plan, p.machine.Again(), p.Cluster, p.Layout, plain, p.Figures, nodeOf)
			other.Conditions, other.asked = p.Conditions, p.asked
			if len(p.beside) > 0 {
				if err := other.RunConcurrently(p.beside); err != nil {
					return nil, err
				}
			}
			if onlyChannels(plain, rest(p.Plan.Env)) && p.Without == 0 && other.Plan.SameOrders(p.Plan) {
				other.machine, other.outlines, other.trees, other.rings = p.machine, p.outlines, p.trees, p.rings
			}
			p.others[key] = other
		}
		q = *p.others[key]
		q.Conditions = p.Conditions
	}
	plan := *q.Plan
	plan.Env = env
	var err error
	plan.Table, err = nccl.NewTable(&plan.Comm, &plan.Graphs)
	q.Plan, q.env = &plan, env
	return &q, err
}

// onlyChannels reports settings that differ in the number of channels alone.
func onlyChannels(a, b map[string]string) bool {
	a, b = maps.Clone(a), maps.Clone(b)
	delete(a, "NCCL_MIN_NCHANNELS")
	delete(b, "NCCL_MIN_NCHANNELS")
	return maps.Equal(a, b)
}

// RunConcurrently says which other groups of ranks do the same at the same time; they share
// links with the predictor's own. It must be called before anything is priced.
func (p *Predictor) RunConcurrently(groups []nccl.Layout) error {
	places := make([][]cluster.Place, len(groups))
	for i, l := range groups {
		for r := range l {
			places[i] = append(places[i], l.Place(r))
		}
	}
	p.beside = groups
	return p.machine.AddConcurrent(places)
}

// class is NCCL's word for a distance in the model's words; NCCL has no NODE.
func class(p nccl.PathType) cluster.ClassType {
	switch {
	case p <= nccl.PathLOC:
		return cluster.Self
	case p <= nccl.PathNVB:
		return cluster.NV
	case p <= nccl.PathPIX:
		return cluster.PIX
	case p <= nccl.PathPXN:
		return cluster.PXB
	case p == nccl.PathPHB:
		return cluster.NODE
	}
	return cluster.SYS
}

// Setting is a way to do a collective: algorithm (of package schedule), protocol
// and channels.
type Setting struct {
	Algo     string
	Proto    string
	Channels int
}

// Auto is what NCCL would take.
func (p *Predictor) Auto(op coll.Op) (Setting, error) {
	call, ok := callOf(op)
	if !ok {
		return p.pairs(op), nil
	}
	if p.allPairs(op) {
		return Setting{Algo: "direct", Proto: sim.LL, Channels: mscclChannels}, nil
	}
	ch, err := p.Plan.Choose(call)
	if err != nil {
		return Setting{}, err
	}
	return Setting{Algo: algoName(ch.Algo, op.Kind), Proto: ch.Proto.String(), Channels: ch.Channels}, nil
}

// mscclChannels are those of MSCCL's kernels, in which 56 of 64 blocks serve a peer each.
const mscclChannels = 8

// allPairs tells whether RCCL hands an all-reduce to MSCCL, whose GPUs exchange with all others at once: on eight
// MI300X with a process each, from 1 KiB to 1 MiB (RCCL 2.22, tools/msccl-algorithms and RCCL_MSCCLPP_THRESHOLD).
func (p *Predictor) allPairs(op coll.Op) bool {
	r := p.Plan.RCCL
	return r != nil && r.Arch == "gfx942" && op.Kind == coll.AllReduce && len(p.Layout) == 8 && len(p.Plan.Nodes) == 1 &&
		p.Serial <= 1 && op.Bytes >= unit.KiB && op.Bytes <= unit.MiB && p.env["NCCL_ALGO"] == "" &&
		p.env["NCCL_PROTO"] == "" && p.env["RCCL_MSCCL_ENABLE"] != "0"
}

// pairs is how NCCL does what it has no model for: sends and receives between
// pairs, small ones by LL.
func (p *Predictor) pairs(op coll.Op) Setting {
	const llThreshold = 16 << 10
	block := int64(op.Bytes) / int64(max(p.Plan.NRanks, 1))
	if op.Kind == coll.SendRecv {
		block = int64(op.Bytes)
	}
	s := Setting{Algo: "direct", Proto: sim.Simple, Channels: max(1, p.Plan.P2PPerPeer)}
	if block <= llThreshold && p.Plan.PairsLL() {
		s.Proto = sim.LL
	}
	// A channel more for every 64 KiB or so of a peer's block.
	for s.Channels > 1 && block < int64(s.Channels)*(32<<10) {
		s.Channels /= 2
	}
	return s
}

// callOf is NCCL's view of a call; false for what it has no model of.
func callOf(op coll.Op) (nccl.Call, bool) {
	call := nccl.Call{Bytes: int64(op.Bytes)}
	switch op.Kind {
	case coll.AllReduce:
		call.Op = nccl.AllReduce
	case coll.AllGather:
		call.Op = nccl.AllGather
	case coll.ReduceScatter:
		call.Op = nccl.ReduceScatter
	case coll.Broadcast:
		call.Op = nccl.Broadcast
	case coll.Reduce:
		call.Op = nccl.Reduce
	default:
		return call, false
	}
	switch op.Type {
	case coll.Int8, coll.Uint8:
		call.NoNVLS = true
	case coll.F8E4M3, coll.F8E5M2:
		call.NoNVLS, call.FP8 = true, true
	}
	return call, true
}

// algoName is the schedule that an algorithm of NCCL is.
func algoName(a nccl.Algo, kind coll.Kind) string {
	switch {
	case a == nccl.Ring && (kind == coll.Broadcast || kind == coll.Reduce):
		return "chain"
	case a == nccl.CollNetChain:
		return "collnet_chain"
	case a == nccl.CollNetDirect:
		return "collnet_direct"
	}
	return a.String()
}

// Price predicts one call by a setting.
func (p *Predictor) Price(op coll.Op, s Setting) (*result.Run, error) {
	o := p.outline(op, s)
	if o.err != nil {
		if s.Algo == "pat" {
			return p.extrapolate(op, s, o.err)
		}
		return nil, o.err
	}
	m := p.model(p.Figures, op, s)
	run := o.Price(op, m)
	// What pairs send goes out at once, by channels of their own; played, a lane would send to one peer after the other.
	if s.Algo != "direct" && !o.Regular() && o.Ops(op, m) <= maxPlayed {
		var err error
		if run, err = o.Exact(context.Background(), op, m, p.ports(s.Algo), false); err != nil {
			return nil, err
		}
		if m.Wire.Issue > run.Time {
			run.Parts.Launch += m.Wire.Issue - run.Time
			run.Time = m.Wire.Issue
		}
	}
	p.correct(run)
	run.Margin = p.Margin(op)
	return run, nil
}

// maxPlayed bounds the ops of schedules without a steady form that are played
// rather than guessed: some tens of milliseconds.
const maxPlayed = 100_000

func (p *Predictor) outline(op coll.Op, s Setting) *outline {
	key := shape{op.Kind, s.Algo, s.Channels, op.Root}
	if o, ok := p.outlines[key]; ok {
		return o
	}
	if !p.reached { // the conditions are known by now
		p.reach()
	}
	o := &outline{}
	p.outlines[key] = o
	if n := p.period(op.Kind, s.Algo); n > 0 && s.Channels > n && s.Channels%n == 0 {
		few := p.outline(op, Setting{s.Algo, s.Proto, n})
		if o.err = few.err; o.err == nil {
			o.Outline = few.Repeat(s.Channels / n)
		}
		return o
	}
	var sc *schedule.Schedule
	if sc, o.err = p.Schedule(op, s); o.err == nil {
		o.Outline, o.err = p.machine.Outline(sc, p.ports(s.Algo))
	}
	return o
}
