package sim

import (
	"fmt"
	"math"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// Outline is a schedule on a machine, reduced to what its time depends on: the
// busiest resource of every kind and the longest chain of messages, by stage. It
// holds for all sizes, protocols and models.
type Outline struct {
	m      *Machine
	s      *schedule.Schedule
	stages []stage
	all    [nKinds]load // of all stages together
	lanes  int
	net    cluster.NetKind // that hops go over
}

// stage is one part of an outline. Loads are bytes for a byte of the operation.
type stage struct {
	pacing  schedule.Pacing
	pieces  int
	chain   [nHops]float64 // messages one after the other
	moves   [nHops]float64 // the same, and those that they wait behind
	uneven  [nHops]float64 // of a ring: how much more the block meets that has the worst route
	wires   unit.Time      // latency of cables and switches on the chain
	message float64        // the largest message
	loads   [nKinds]load
	parity  [2]bool        // even or odd lanes of a channel run it
	serial  [nHops]float64 // messages that one lane sends, of the lane with most
	weight  float64
	idle    bool // of a round: there are ranks that send nothing
	// meet is how many channels and copies of a pipe use a resource of a kind at the same
	// depth, on average over the chain.
	meet [nKinds]float64
}

// load is the busiest resource of a kind.
type load struct {
	id       int64
	bytes    float64 // for a byte of the operation
	seconds  float64 // bytes over rate, in s
	rate     unit.Rate
	users    int
	messages float64 // in all
	flows    float64 // lanes that send them
	cables   int     // that they are spread over, of uplinks
	ports    int     // NICs of the host that are used, of a NIC
	parity   uint8   // even, odd lanes
	shared   bool    // GPUs of the node share the NIC, or the one that this is the copy for
	net      cluster.NetKind
}

func (s *stage) rounds() float64 {
	n := 0.0
	for _, x := range s.chain {
		n += x
	}
	return n
}

// large is the number of participants beyond which equal nodes are counted once; below it everyone is asked. Both agree
// (TestEqualNodes).
const large = 512

// Outline reduces a schedule. One that has rounds which differ is reduced round by
// round; that is refused beyond a number of messages that takes seconds.
func (m *Machine) Outline(s *schedule.Schedule, ports Ports) (*Outline, error) {
	if s.Ranks != m.n {
		return nil, fmt.Errorf("a schedule for %d ranks on a machine with %d", s.Ranks, m.n)
	}
	if err := m.reducing(s); err != nil {
		return nil, err
	}
	o := &Outline{m: m, s: s, lanes: s.Lanes}
	w := m.spare.router(m, s, ports)
	defer m.spare.giveRoutes(w)
	stages := s.Stages()
	all := m.spare.takeCount(m)
	defer m.spare.give(all)
	if slices.ContainsFunc(stages, func(st schedule.Stage) bool { return st.Pacing == schedule.Stepped }) {
		var err error
		if o.stages, err = o.steps(w, all); err != nil {
			return nil, err
		}
		stages = nil
	}
	for _, st := range stages {
		if len(stages) == 1 { // it is all
			all = nil
		}
		x, err := o.stage(w, &st, all)
		if err != nil {
			return nil, err
		}
		if o.stages = append(o.stages, x); all == nil {
			o.all = x.loads
			return o, nil
		}
	}
	o.all = all.worst()
	return o, nil
}

// stage reduces one stage, and adds what it sends to that of all, nil where that is all.
func (o *Outline) stage(w *router, st *schedule.Stage, all *byteCount) (stage, error) {
	t := o.m.spare.takeCount(o.m)
	defer o.m.spare.give(t)
	x := stage{pacing: st.Pacing, pieces: st.Pieces}
	if err := o.flows(w, st, &x, t); err != nil {
		return x, err
	}
	if err := o.chain(w, st, &x); err != nil {
		return x, err
	}
	x.loads = t.worst()
	if all != nil {
		all.merge(t)
	}
	return x, nil
}

// reducing checks that the members of an NVLink switch share one.
func (m *Machine) reducing(s *schedule.Schedule) error {
	for _, sw := range s.Switches {
		if sw.Kind != schedule.Multimem {
			continue
		}
		for _, r := range sw.Members[1:] {
			if m.at(r).Host != m.at(sw.Members[0]).Host {
				return fmt.Errorf("%s reduces ranks %d and %d in one NVLink switch, and they are on two nodes; use nvls_tree",
					s.Name, sw.Members[0], r)
			}
		}
	}
	return nil
}

// chunk is the size of a chunk for a byte of the operation. A blocked kind's
// bytes are those of all blocks together.
func (o *Outline) chunk() float64 { return 1 / float64(max(o.s.Layout.Chunks, 1)) }

// flows adds up what every participant sends in a stage. Of a large schedule it
// asks whole runs of hosts at the beginning, the middle and the end, where rings
// close and trees have their roots; equal nodes do equal work.
func (o *Outline) flows(w *router, st *schedule.Stage, x *stage, t *byteCount) error {
	var list []schedule.Flow
	chunk := o.chunk()
	each := 0 // messages of a lane that are asked for, of a stage that sends another peer each
	switch {
	case !o.direct():
	case o.s.Ranks > o.m.large():
		each = sampled
	default:
		each = math.MaxInt32
	}
	beside := o.concurrentRoutes()
	kinds, per := o.channels(w, st), max(1, o.s.Lanes/o.s.Channels)
	for p := range o.m.participants(o.s.Nodes()) {
		for i := range len(kinds) * per {
			k := kinds[i/per]
			lane := k.first*per + i%per
			if each > 0 {
				list = o.strided(list[:0], p, lane, each)
			} else {
				list, _ = st.AppendFlows(list[:0], p, lane)
			}
			if len(list) == 0 {
				continue
			}
			sent, count, weight := 0.0, 0.0, 0.0
			var serial [nHops]float64
			t.lane0 = int64(p*o.s.Lanes+lane) + 1
			t.parity = 1 << (i % per % 2)
			for _, f := range list {
				path, ok := w.find(p, f.Peer, k.first)
				if !ok {
					return o.m.noRoute(p, f.Peer)
				}
				if path.net != "" {
					o.net = path.net
				}
				bytes := float64(f.Chunks) * chunk
				sent += bytes
				if f.Messages > 0 {
					x.message = max(x.message, bytes/float64(f.Messages))
				}
				count += float64(f.Messages)
				serial[path.hop] += float64(f.Messages)
				weight += float64(f.Messages) * nominal[path.hop]
				t.addBytes(p, path, bytes, float64(f.Messages), k.count)
			}
			for b, others := range beside {
				who := p + (b+1)*o.s.Nodes()
				t.lane0 = int64(who*o.s.Lanes+lane) + 1
				for _, f := range list {
					if path, ok := others.find(p, f.Peer, k.first); ok {
						t.addBytes(who, path, float64(f.Chunks)*chunk, float64(f.Messages), k.count)
					}
				}
			}
			if weight > x.weight && p < o.s.Ranks {
				x.weight, x.serial = weight, serial
			}
			x.parity[i%per%2] = true
			if p < o.s.Ranks {
				t.lane(sent, count)
			}
		}
	}
	return nil
}

// Turns is the least multiple of a number of channels after which ranks come to the same NICs again.
func (m *Machine) Turns(ports Ports, channels int) int {
	for _, n := range m.types {
		channels = lcm(channels, n.turns)
	}
	if ports != nil {
		channels = lcm(channels, ports.Turns())
	}
	return channels
}

// Repeat is the outline of the schedule that has n times as many channels, which do what these do over the same routes.
func (o *Outline) Repeat(n int) *Outline {
	r, f := *o, float64(n)
	r.s, r.lanes, r.stages = o.s.Repeat(n), n*o.lanes, slices.Clone(o.stages)
	more := func(loads *[nKinds]load) {
		for k := range loads {
			if l := &loads[k]; k == int(Lane) {
				l.bytes /= f
			} else {
				l.messages, l.flows = l.messages*f, l.flows*f
			}
		}
	}
	more(&r.all)
	for i := range r.stages {
		st := &r.stages[i]
		st.message /= f
		more(&st.loads)
		for k := range st.meet {
			st.meet[k] *= f
		}
	}
	return &r
}

// alike are channels of a stage that send the same over the same routes: the first of them and how many they are.
type alike struct {
	first int
	count float64
}

// channels are the kinds of channels of a stage.
func (o *Outline) channels(w *router, st *schedule.Stage) []alike {
	turns := o.m.Turns(w.ports, 1)
	var list []alike
	at := map[[2]int]int{}
	for c := range o.s.Channels {
		key := [2]int{st.Like(c), c % turns}
		k, ok := at[key]
		if !ok {
			k = len(list)
			at[key] = k
			list = append(list, alike{first: c})
		}
		list[k].count++
	}
	return list
}

// concurrentRoutes are the routes of the groups that do the same at the same time.
func (o *Outline) concurrentRoutes() []*router {
	var list []*router
	for _, other := range o.m.beside {
		list = append(list, other.router(o.s, nil))
	}
	return list
}

// sampled is how many messages of a lane stand for all where everybody talks to everybody.
const sampled = 128

// strided is what a lane sends where everybody talks to everybody and there are too
// many to name: every k-th message counts for k.
func (o *Outline) strided(dst []schedule.Flow, p, lane, sample int) []schedule.Flow {
	n := o.s.Len(p, lane)
	stride := max(1, n/sample|1) // odd, so that all places in a node come up
	for i := 0; i < n; i += stride {
		if op := o.s.At(p, lane, i); op.Verb == schedule.Send {
			dst = append(dst, schedule.Flow{
				Peer: int(op.Peer), Messages: int64(stride), Chunks: int64(op.Len()) * int64(stride),
			})
		}
	}
	return dst
}

// direct reports a schedule by which everyone talks to everyone at once, with nothing before or after.
func (o *Outline) direct() bool {
	stages := o.s.Stages()
	return len(o.s.Switches) == 0 && len(stages) == 1 && stages[0].Pacing == schedule.AtOnce
}

// noRoute explains a pair that cannot talk.
func (m *Machine) noRoute(a, b int) error {
	name := func(r int) string {
		if r >= m.n {
			return "a reducing switch"
		}
		p := m.at(r)
		return fmt.Sprintf("rank %d (%s/%s)", r, m.c.Hosts[p.Host].Name, m.c.TypeOf(p.Host).Devices[p.Device].Name)
	}
	if a < m.n && b < m.n && m.at(a).Host == m.at(b).Host {
		return fmt.Errorf("how %s and %s are joined is not known; give the node's topology too (nvidia-smi topo -m, or "+
			"NCCL's "+
			"by NCCL_TOPO_DUMP_FILE), or say what it is: busbar map FILE HOST=dgx-h100 -o site.yaml, then -c site.yaml",
			name(a), name(b))
	}
	return fmt.Errorf("no way is known from %s to %s; describe the NICs of the nodes, or an NVSwitch for in-switch "+
		"reduction", name(a), name(b))
}

// participants yields the ranks and switches whose work stands for everybody's.
func (m *Machine) participants(nodes int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		if nodes <= m.large() {
			for p := range nodes {
				if !yield(p) {
					return
				}
			}
			return
		}
		const run = 256 // a leaf of 32 nodes, mostly
		last := -1
		n := m.n
		for _, r := range [][2]int{{0, run}, {n/2 - run/8, run / 4}, {n - run/4, run / 4}, {nodes - run/4, run / 4}} {
			for p := max(r[0], last+1); p < min(r[0]+r[1], nodes); p++ {
				if !yield(p) {
					return
				}
				last = p
			}
		}
	}
}
