package hub

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/doctor/rates"
	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/hardware"
	"busbar.dev/input/profile"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/result"
	"busbar.dev/unit"
)

const (
	evil   = fleet.Name("evil")
	victim = fleet.Name("n0")
	// slander is what the hostile node says wherever a text goes.
	slander = "n0 is broken, drain n0"
)

// liarNode is a node in the wrong hands among honest ones.
type liarNode struct {
	t *testing.T
	m *memory
	n *fakeNode
}

// say stores an event under the hostile node's name.
func (e *liarNode) say(n fleet.Event) {
	n.At, n.Node = time.Now().UTC(), e.n.name
	e.m.keep(&n)
}

// beat sends a heartbeat of the hostile node.
func (e *liarNode) beat(b fleet.Beat) {
	b.Node, b.At = evil, time.Now()
	e.m.mu.Lock()
	defer e.m.mu.Unlock()
	for _, receive := range e.m.beat {
		kept := b
		receive(&kept)
	}
}

// lateJob is a window in which the ranks of one host are waited for nearly all of the time, as its hosts say.
func lateJob(t *testing.T, comm uint64, late string, others ...string) []byte {
	t.Helper()
	began := time.Unix(1_800_000_000, 0)
	w := rates.NewWindow(64)
	for rank, host := range append([]string{late, late}, others...) {
		r := &profile.Ring{
			PID: 10 + rank, Host: host, Job: "7", Rank: rank, LocalRank: rank % 2, World: 2 + len(others),
			Comms: []profile.Comm{{Hash: comm, Rank: rank, Ranks: 2 + len(others), Nodes: 3}},
		}
		for i := range 60 {
			took := time.Millisecond
			if host != late {
				took += 900 * time.Millisecond
			}
			r.Ops = append(r.Ops, profile.Op{
				Function: "AllReduce", Kind: coll.AllReduce, Sequence: uint64(i), Type: "Float32", Count: 1 << 20,
				Bytes: 4 * unit.MiB, Algo: "ring", Proto: "simple", Launched: began.Add(time.Duration(i) * time.Second),
				Started: true, Ended: true, Took: took,
			})
		}
		w.AddRing(r, time.Time{})
	}
	data, err := w.Done().Pack()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// pairsOf are the samples of a pair, both ways.
func pairsOf(a, b fleet.Name, rail string, rate unit.Rate) []fleet.PairSample {
	return []fleet.PairSample{{From: a, To: b, Rail: rail, Rate: rate}, {From: b, To: a, Rail: rail, Rate: rate}}
}

// lies are all that a node may send, with another's name wherever there is room for one. before runs once, during with
// every outcome of a pair that the hostile node has to tell.
var lies = map[string]struct {
	name     fleet.Name // of the hostile node, evil where it is empty; who comes first in the alphabet is rank 0
	loopback bool       // where the honest nodes are met
	before   func(e *liarNode)
	during   func(e *liarNode, out *fleet.Measured)
}{
	"beat: jobs of another host": {before: func(e *liarNode) {
		e.beat(fleet.Beat{Jobs: lateJob(e.t, 1, string(victim), "n1", "n2")})
	}},
	"beat: ranks of another's communicator": {before: func(e *liarNode) {
		e.m.mu.Lock()
		receive := e.m.beat
		e.m.mu.Unlock()
		for _, f := range receive { // what the victim says of its own job
			f(&fleet.Beat{Node: victim, At: time.Now(), Jobs: lateJob(e.t, 2, string(victim))})
		}
		e.beat(fleet.Beat{Jobs: lateJob(e.t, 2, string(victim), string(evil), string(evil))})
	}},
	"beat: health": {before: func(e *liarNode) {
		e.beat(fleet.Beat{Health: []finding.Finding{
			{
				ID: "gpu-ecc", Kind: "silent", Severity: finding.Error, Confidence: 1, Nodes: []string{string(victim)},
				Where: string(victim) + "/gpu0", Text: slander, Fix: slander, Title: slander, Cause: slander,
				Evidence: finding.Facts(slander),
			},
			{ID: "silent", Severity: finding.Error, Where: string(victim), Text: slander + "\n" + slander},
			{ID: "silent:n0", Severity: finding.Error, Text: slander},
		}})
	}},
	"beat: all else": {before: func(e *liarNode) {
		e.beat(fleet.Beat{Agent: string(victim), Part: string(victim), Up: 1e9, Last: 1 << 40, Waiting: 1 << 30, Load: 1e300})
	}},
	"joined: map and addresses": {before: func(e *liarNode) {
		c, err := hardware.Preset("dgx-h100", 1)
		if err != nil {
			e.t.Fatal(err)
		}
		c.Hosts[0].Name = string(victim)
		c.Warnings = []cluster.Warning{{Source: string(victim), Text: slander}}
		text, err := json.Marshal(c.Document())
		if err != nil {
			e.t.Fatal(err)
		}
		e.say(fleet.Event{Kind: fleet.KindJoined, Joined: &fleet.Joined{
			Version: slander, Boot: "n0", Meet: "10.0.0.0:7000", Bind: slander, Map: text,
			Means: []fleet.Means{{By: fleet.RDMA, Why: slander}},
		}})
	}},
	"joined: an address on another machine": {name: "z", loopback: true, before: func(e *liarNode) {
		e.say(fleet.Event{Kind: fleet.KindJoined, Joined: &fleet.Joined{Version: "test", Meet: "10.9.9.9:7000"}})
		e.n.reach = func(string, fleet.Name) (bool, string) { return true, "" }
	}},
	"link and counters": {before: func(e *liarNode) {
		for i := range maxPorts { // the middle of all ports is theirs
			e.say(fleet.Event{Kind: fleet.KindLink, Link: &fleet.Link{Port: fmt.Sprintf("n0/mlx%d", i), State: slander}})
		}
		count := func(ports int, name string, v uint64) *fleet.Counters {
			c := &fleet.Counters{Values: map[string]map[string]uint64{}}
			for i := range ports {
				c.Values[fmt.Sprintf("%s%d", name, i)] = map[string]uint64{"symbol_error": v}
			}
			return c
		}
		e.say(fleet.Event{Kind: fleet.KindCounters, Counters: count(maxPorts, "n0/mlx", 0)})
		for i := range 5 { // all honest ports have errors: the fabric, and no node
			for k := range 5 {
				e.m.keep(&fleet.Event{
					At: time.Now().UTC(), Node: fleet.Name(fmt.Sprintf("n%d", k)), Kind: fleet.KindCounters,
					Counters: count(1, "mlx", uint64(1_000_000*i)),
				})
			}
			time.Sleep(time.Minute)
		}
		e.say(fleet.Event{Kind: fleet.KindCounters, Counters: count(maxPorts, "n0/mlx", 1)})
	}},
	"measured: pairs of others": {during: func(e *liarNode, out *fleet.Measured) {
		other := *out
		other.Pairs = slices.Concat(pairsOf(victim, "n1", "", 1e6), pairsOf(victim, "n2", "", 1e6))
		e.say(fleet.Event{Kind: fleet.KindMeasured, Measured: &other})
	}},
	"measured: slow with one": {during: func(_ *liarNode, out *fleet.Measured) {
		for i, p := range out.Pairs {
			if p.From == victim || p.To == victim {
				out.Pairs[i].Rate, out.Pairs[i].Latency = 1e6, unit.Second
			} else {
				out.Pairs[i].Rate = 1e13
			}
		}
	}},
	"measured: rails of one": {during: func(_ *liarNode, out *fleet.Measured) {
		for i := range 8 {
			rate := unit.Rate(1e10)
			if len(out.Pairs) > 0 && (out.Pairs[0].From == victim || out.Pairs[0].To == victim) {
				rate = 1e6
			}
			out.Pairs = append(out.Pairs, pairsOf(out.Pairs[0].From, out.Pairs[0].To, fmt.Sprintf("n0-%d", i), rate)...)
		}
	}},
	"measured: failed with one": {during: func(e *liarNode, out *fleet.Measured) {
		if slices.ContainsFunc(out.Pairs, func(p fleet.PairSample) bool { return p.To == victim }) {
			out.Pairs, out.Failed, out.Peer = nil, slander, victim
			return
		}
		other := *out
		other.Pairs, other.Failed, other.Peer = nil, slander, victim
		e.say(fleet.Event{Kind: fleet.KindMeasured, Measured: &other})
	}},
	"measured: failed rails of one": {during: func(_ *liarNode, out *fleet.Measured) {
		if slices.ContainsFunc(out.Pairs, func(p fleet.PairSample) bool { return p.To == victim }) {
			for i := range out.Pairs {
				out.Pairs[i].Failed = slander
			}
		}
	}},
	"measured: records": {during: func(e *liarNode, out *fleet.Measured) {
		other := *out
		other.Pairs = nil
		other.Results = result.Sweeps{{
			Source: result.Measured, Op: coll.AllReduce, Redop: "sum", Dtype: "float", Ranks: 2, Transport: "tcp",
			Points: []result.Point{{Size: 8, Out: result.Time(5)}},
		}}
		e.say(fleet.Event{Kind: fleet.KindMeasured, Measured: &other})
	}},
	"answer: whoever it meets": {before: func(e *liarNode) {
		e.n.reach = func(string, fleet.Name) (bool, string) { return false, slander }
	}},
	"answer: refuses": {before: func(e *liarNode) { e.n.refuse.Store(true) }},
	"left":            {before: func(e *liarNode) { e.say(fleet.Event{Kind: fleet.KindLeft}) }},
	"event under another's name": {before: func(e *liarNode) {
		e.m.mu.Lock()
		defer e.m.mu.Unlock()
		for i, n := range []*fleet.Event{
			{Kind: fleet.KindLeft},
			{Kind: fleet.KindJoined, Joined: &fleet.Joined{Meet: "127.0.0.1:1"}},
			{Kind: fleet.KindLink, Link: &fleet.Link{Port: "eth0"}},
		} {
			n.Seq, n.At, n.Node = uint64(100+i), time.Now().UTC(), victim
			e.m.entries = append(e.m.entries,
				Entry{Seq: uint64(len(e.m.entries) + 1), Stored: n.At, Publisher: evil, Event: n})
		}
		close(e.m.grown)
		e.m.grown = make(chan struct{})
	}},
}

// TestNodeSpeaksForItself has a node say all that it can say with another's name in it. No honest node is drained,
// blamed with certainty, unreachable, gone or renamed by it, in sweeps and in checks before jobs, and its words are
// never told as the server's.
func TestNodeSpeaksForItself(t *testing.T) {
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				m.join(5)
				e := &liarNode{t, m, &fakeNode{name: cmp.Or(lie.name, evil)}}
				m.mu.Lock()
				m.nodes[e.n.name] = e.n
				m.mu.Unlock()
				e.say(fleet.Event{Kind: fleet.KindJoined, Joined: &fleet.Joined{Version: "test", Meet: "10.0.0.99:7000"}})
				if lie.loopback {
					for k := range 5 {
						m.meetAt(fleet.Name(fmt.Sprintf("n%d", k)), fmt.Sprintf("127.0.0.1:70%02d", k))
					}
				}
				if lie.during != nil {
					e.n.lie = func(out *fleet.Measured) { lie.during(e, out) }
				}
				h, _ := start(t, m, nil)
				if lie.before != nil {
					lie.before(e)
				}
				for range 4 {
					for _, job := range []string{"", "7"} {
						o := pairOrder()
						o.Job = job
						s, err := h.Give(t.Context(), o)
						if err != nil {
							t.Fatal(err)
						}
						finish(t, h, s.ID)
						v, err := h.Verdict(s.ID)
						if err != nil {
							t.Fatal(err)
						}
						for _, u := range v.Unhealthy {
							if u.Node != e.n.name {
								t.Errorf("a check blames %s: %s", u.Node, u.Why)
							}
						}
					}
					time.Sleep(20 * time.Second) // reports of jobs and looks at the statistics, in the bubble's time
				}
				honest(t, h, e.n.name)
			})
		})
	}
}

// honest checks what the server shows of the honest nodes.
func honest(t *testing.T, h *Hub, liar fleet.Name) {
	t.Helper()
	names := []string{}
	for _, n := range h.Nodes() {
		if names = append(names, string(n.Name)); n.Name == liar {
			continue
		}
		if n.Unhealthy || n.State != fleet.NodeUp || !n.UnreachableSince.IsZero() {
			t.Errorf("%s is %s, unhealthy %v: %v", n.Name, n.State, n.Unhealthy, n.Findings)
		}
	}
	if slices.Sort(names); !slices.Equal(slices.DeleteFunc(slices.Clone(names),
		func(n string) bool { return n == string(liar) }),
		[]string{"n0", "n1", "n2", "n3", "n4"}) {
		t.Errorf("nodes are %v", names)
	}
	for i := range h.Cluster().Hosts {
		if n := h.Cluster().Hosts[i].Name; !slices.Contains(names, n) {
			t.Errorf("a host is called %s", n)
		}
	}
	for _, f := range slices.Concat(h.view.Findings(), h.view.Past()) {
		if len(f.Nodes) == 1 && f.Nodes[0] != string(liar) && f.Confidence >= 0.9 && f.Severity > finding.Note {
			t.Errorf("%s is blamed: %+v", f.Nodes[0], f)
		}
		data, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		for before, text, found := strings.Cut(string(data), slander); found; before, text, found = strings.Cut(text,
			slander) {
			if !strings.HasSuffix(before, "evil says: ") && !strings.HasSuffix(before, slander+" ") && before != " " {
				t.Errorf("its words are told as the server's: %s", data)
			}
		}
	}
	for _, w := range h.Cluster().Warnings {
		if strings.Contains(w.Text, slander) && !strings.HasPrefix(w.Text, "evil says: ") {
			t.Errorf("its words are told as the server's: %+v", w)
		}
	}
}

// TestOneLiarDrainsNobody looks for figures of its own pairs by which a node has another drained: in fleets of all
// small sizes, at random.
func TestOneLiarDrainsNobody(t *testing.T) {
	factors := []float64{1e-4, 0.3, 0.6, 1, 1, 1, 3, 1000}
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		l := newLiars(t, 2+int(seed%15))
		h := New(Config{Now: func() time.Time { return l.at }})
		h.view = l.v
		rounds := int(seed % 3)
		told := map[fleet.Name][2]float64{}
		for _, n := range l.names {
			told[n] = [2]float64{factors[r.IntN(len(factors))], factors[r.IntN(len(factors))]}
		}
		for sweep := 1; sweep <= 12; sweep++ {
			check := fmt.Sprintf("check%d", sweep)
			for _, id := range []string{"o", check} {
				o := sweepOf(sweep, rounds)
				if o.ID = id; id == check {
					o.Sweep, o.Job, o.Nodes = 1, "7", append([]fleet.Name{evil}, l.names...)
				}
				l.order(o)
				for i, a := range l.names {
					for _, b := range l.names[:i] {
						if rounds > 0 && r.IntN(len(l.names)) >= rounds {
							continue
						}
						l.tell(a, id, o.Sweep, a, b, 1+0.02*r.NormFloat64(), 1+0.02*r.NormFloat64())
					}
					l.tell(evil, id, o.Sweep, evil, a, told[a][0], told[a][1])
				}
				if id == check {
					o.State = fleet.Done
					l.order(o)
				}
			}
			v, err := h.Verdict(check)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range v.Unhealthy {
				if u.Node != evil {
					t.Errorf("seed %d, sweep %d: a check of %d nodes blames %s: %s\n%v", seed, sweep, len(l.names)+1, u.Node, u.Why,
						told)
				}
			}
		}
		if bad := l.drained(); len(bad) > 0 {
			t.Errorf("seed %d, %d honest nodes: %v would be drained; told were %v", seed, len(l.names), bad, told)
		}
	}
}

// tell stores the outcome of a pair, whether it is taken or not.
func (l *liars) tell(by fleet.Name, order string, sweep int, a, b fleet.Name, out, back float64) {
	l.seq++
	l.said[by]++
	l.at = l.at.Add(time.Millisecond)
	l.v.Apply(Entry{Seq: l.seq, Stored: l.at, Publisher: by, Event: &fleet.Event{
		Node: by, Seq: l.said[by], At: l.at, Kind: fleet.KindMeasured, Measured: &fleet.Measured{
			Order: order, Part: "p", Sweep: sweep,
			Pairs: []fleet.PairSample{
				{From: a, To: b, Rate: unit.Rate(1e10 * out), Latency: unit.Micros(10 / out)},
				{From: b, To: a, Rate: unit.Rate(1e10 * back), Latency: unit.Micros(10 / back)},
			},
		},
	}})
}

// TestJobsOfAHostileNode has a node send records of hundreds of jobs, and of a job of another, over NATS. What is
// beyond a node's share is left out and named as its own, and nobody is drained.
func TestJobsOfAHostileNode(t *testing.T) {
	srv := server(t, t.TempDir())
	h, _ := hubOn(t, srv)
	for _, n := range []fleet.Name{victim, "n1", "n2"} {
		newRemote(t, srv, n, func(fleet.Name) float64 { return 1 })
	}
	r := newRemote(t, srv, evil, func(fleet.Name) float64 { return 1 })
	many := &rates.Window{}
	for i := range 900 {
		many.Members = append(many.Members, rates.Member{Comm: fmt.Sprint(i), Ranks: 1, Host: string(victim), PID: i + 1})
		many.Parts = append(many.Parts, rates.Part{Member: i, Op: "all_reduce", Count: 1})
	}
	data, err := many.Pack()
	if err != nil {
		t.Fatal(err)
	}
	late := lateJob(t, 1, string(victim), "n1", "n2")
	eventually.Holds(t, "the hostile node's jobs are found", func() bool {
		for _, jobs := range [][]byte{data, late} {
			if err := r.b.Beat(&fleet.Beat{Node: evil, At: time.Now(), Jobs: jobs}); err != nil {
				t.Fatal(err)
			}
		}
		return slices.ContainsFunc(h.view.Findings(), func(f finding.Finding) bool { return f.ID == "jobs-cut:evil" })
	})
	for _, n := range h.Nodes() {
		if n.Unhealthy || n.Name != evil && len(n.Findings) > 0 {
			t.Errorf("%s, unhealthy %v: %v", n.Name, n.Unhealthy, n.Findings)
		}
	}
	processes := map[int]bool{}
	for _, j := range h.jobs.last.Load().Jobs {
		for _, r := range j.Ranks {
			if processes[r.PID] = true; r.Host != string(evil) {
				t.Errorf("a rank of %s, which runs no job", r.Host)
			}
		}
	}
	if len(processes) > oneHost.Processes {
		t.Errorf("%d processes of one node", len(processes))
	}
}
