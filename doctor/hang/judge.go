package hang

import (
	"fmt"
	"math"
	"slices"
	"time"

	"busbar.dev/finding"
	"busbar.dev/input/flightrec"
	"busbar.dev/input/joblog"
	"busbar.dev/input/ras"
)

// judge holds what the sources say while they are joined.
type judge struct {
	c      *Case
	job    *job
	rec    *table   // the recorder's dumps, or the profiler's rings where those have more ranks
	tables []*table // rec first, and what other sources say in its form
	ras    []*ras.Report
	log    *logView
	moved  bool // RAS or the rings saw the job launch collectives between two looks
	still  bool // they saw that it did not
	once   bool // RAS was asked at one moment, and the recorder not at all
}

// Judge joins everything that was added. Causes come before what follows from them: a GPU's error before a process that
// ends of it, a process that is gone before ranks that wait for it, and only then what waiting alone can tell.
func (c *Case) Judge() *Verdict {
	c = c.oneRun()
	j := newJob(c)
	x := &judge{c: c, job: j, ras: c.ras, log: newLogView(c, j)}
	x.once = looks(x.ras) == 1 && len(c.rec.Dumps) == 0
	yes, known := moved(x.ras)
	x.moved = yes || c.ringMoved
	x.still = !x.moved && (c.ringStill || known && !c.launchedAfter(whole(x.ras)))
	for _, s := range []struct {
		source string
		set    *flightrec.Set
	}{
		{fromRecorder, c.rec},
		{fromProfiler, c.ringSet()},
		{fromRAS, j.rasSet(whole(x.ras))},
		{fromLog, x.log.logSet()},
		{fromInspector, c.inspectorSet(j)},
	} {
		t := newTable(s.source, s.set, j)
		if x.tables = append(x.tables, t); s.source == fromProfiler && len(t.order) > len(x.tables[0].order) {
			slices.Reverse(x.tables) // dumps come late or not at all
		}
	}
	x.rec = x.tables[0]
	x.of(fromLog).cite = x.log.cite
	v := x.decide()
	v.World = j.world
	v.MayPass = v.State == Stalled &&
		(v.MayPass || x.running() || x.once || works(v.Kind))
	v.Signals = x.signals()
	v.Notes = append(v.Notes, c.notes...)
	for _, a := range c.silent {
		v.Notes = append(v.Notes, "RAS at "+a+" took a connection and did not answer: a process there is stopped, or the "+
			"node is swamped.")
	}
	if len(c.slow) > 0 {
		v.Notes = append(v.Notes, rankList(c.slow)+" has not written its dump yet. A process's first dump takes seconds "+
			"where torch._dynamo is not loaded: ask again.")
		if v.Kind == Late && len(x.rec.order) == 0 {
			v.Confidence = min(v.Confidence, 0.6) // without dumps a collective of another size looks the same
		}
	}
	v.Confidence = math.Round(100*v.Confidence) / 100
	x.advise(v)
	if !x.moved {
		v.Lasted(x.waited())
	}
	return v
}

// signals lists what there was to judge by.
func (x *judge) signals() []string {
	list := []string{}
	for _, s := range []struct {
		name string
		is   bool
	}{
		{fromRAS, len(x.c.ras) > 0},
		{fromRecorder, len(x.c.rec.Dumps) > 0},
		{fromLog, len(x.c.logs) > 0},
		{fromStacks, len(x.c.stacks) > 0},
		{fromInspector, len(x.c.inspect) > 0},
		{fromProcess, len(x.c.procs) > 0},
		{fromProfiler, len(x.of(fromProfiler).order) > 0},
	} {
		if s.is {
			list = append(list, s.name)
		}
	}
	return list
}

// decide asks for each cause in turn.
func (x *judge) decide() *Verdict {
	if x.c.mixed != "" {
		return x.verdict(claim{kind: UnknownKind, why: x.c.mixed}, Unknown)
	}
	hung, failed := func() State { return Hung }, func() State { return Failed }
	for _, try := range []struct {
		claim func() (claim, bool)
		state func() State
	}{
		{x.log.gpuFault, x.ended},
		{x.stoppedHere, hung},
		{x.log.rendezvous, failed},
		{x.mismatch, func() State { return x.waitingState(Failed) }},
		{x.log.died, x.ended},
		{x.gone, x.ended},
		{x.log.network, x.ended},
		{x.log.neverJoined, hung},
	} {
		if c, ok := try.claim(); ok {
			return x.verdict(c, try.state())
		}
	}
	if !x.moved {
		if c, ok := x.rec.deadlock(); ok {
			return x.verdict(c, Hung)
		}
		if c, ok := x.late(); ok {
			if c, ok := x.creating(c); ok {
				return x.verdict(c, Hung)
			}
			return x.verdict(c, x.waitingState(Stalled))
		}
		if c, ok := x.first((*table).missing); ok && !x.answers(c.ranks) {
			return x.verdict(c, x.waitingState(Stalled))
		}
		if c, ok := x.stuck(); ok && (x.timedOut() || x.still) {
			if c.kind == Network && !x.timedOut() {
				return x.verdict(c, Stalled) // a collective may take longer than the time between two answers
			}
			return x.verdict(c, Hung)
		}
	}
	if c, ok := x.log.exits(true); ok {
		return x.verdict(c, x.ended())
	}
	return x.passing()
}

// of is what one source says.
func (x *judge) of(source string) *table {
	return x.tables[slices.IndexFunc(x.tables, func(t *table) bool { return t.source == source })]
}

// first is what the first source concludes that concludes anything, with those that agree.
func (x *judge) first(conclude func(*table) (claim, bool)) (claim, bool) {
	var list []claim
	for _, t := range x.tables {
		if c, ok := conclude(t); ok && (t.source != fromRAS || !x.moved) {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return claim{}, false
	}
	return x.agree(list[0], list[1:]), true
}

// mismatch is what the sources say about collectives that ranks call differently.
func (x *judge) mismatch() (claim, bool) { return x.first((*table).mismatch) }

// stuck is a collective that all launched and none ends. Which GPU has not begun it only the profiler's rings say
// without TORCH_NCCL_ENABLE_TIMING.
func (x *judge) stuck() (claim, bool) {
	if c, ok := x.of(fromProfiler).stuck(); ok {
		return c, true
	}
	return x.rec.stuck()
}

// agree raises a claim's confidence by those of other sources that name the same ranks, and takes over their evidence.
func (x *judge) agree(c claim, others []claim) claim {
	for _, o := range others {
		if o.source == c.source || !slices.Equal(sorted(o.ranks), sorted(c.ranks)) {
			continue
		}
		c.sure = min(max(c.sure, c.most()), c.sure+0.04)
		c.quotes = append(c.quotes, o.quotes...)
		if c.comm == nil {
			c.comm, c.op, c.seq = o.comm, o.op, o.seq
		} else if c.comm.Hash == "" && o.comm != nil && slices.Equal(c.comm.Ranks, o.comm.Ranks) {
			c.comm.Hash = o.comm.Hash
		}
		if len(c.waiting) == 0 {
			c.waiting = o.waiting
		}
	}
	return c
}

func sorted(list []int) []int { return slices.Sorted(slices.Values(list)) }

// waited is how long the ranks of a job that was asked while it ran have waited, as far as its dumps or rings tell; of
// a job that has made no communicator yet, how long all of its processes are there.
func (x *judge) waited() time.Duration {
	if x.c.now.IsZero() {
		return 0
	}
	var since time.Time
	for _, h := range x.rec.order {
		if e := h.pending(); e != nil && e.Created > 0 && (since.IsZero() || since.UnixNano() > e.Created) {
			since = time.Unix(0, e.Created)
		}
	}
	if since.IsZero() && !x.communicated() {
		for i := range x.c.procs {
			if at := x.c.procs[i].Started; at.After(since) {
				since = at
			}
		}
	}
	if since.IsZero() {
		return 0
	}
	return x.c.now.Sub(since)
}

// running reports a job that was asked while it ran: a healthy one looks the same in the seconds that it evaluates or
// saves.
func (x *judge) running() bool {
	return len(x.c.asked)+len(x.c.procs) > 0 || x.c.ringMoved || x.c.ringStill
}

// timedOut reports that a watchdog gave up.
func (x *judge) timedOut() bool { return len(x.log.by[joblog.Timeout]) > 0 }

// ended is Failed where the others took themselves down too, Hung where they wait or stay.
func (x *judge) ended() State {
	if x.timedOut() {
		return Hung
	}
	down := map[int]bool{}
	for _, t := range x.log.of(joblog.Down, joblog.Exception, joblog.CUDAError) {
		down[t.rank] = true
	}
	switch {
	case len(x.log.by[joblog.Down]) > 0, len(x.log.by[joblog.Exit]) > 0, len(down) >= x.job.world:
		return Failed
	case len(x.ras) > 0, len(x.c.rec.Dumps) > 0 && len(x.c.logs) > 0:
		return Hung
	}
	return Failed
}

// waitingState is Hung where something shows that the wait does not end by itself, else what is given.
func (x *judge) waitingState(otherwise State) State {
	if x.timedOut() || x.still && otherwise == Failed {
		return Hung
	}
	if otherwise == Failed {
		for _, h := range x.rec.order {
			if h.pending() != nil && !x.rec.running && !x.moved {
				return Hung
			}
		}
	}
	return otherwise
}

// unanswered is what the silence of processes says: RAS has none of theirs, or there is no dump of them.
func (x *judge) unanswered() (list []claim) {
	for _, ask := range []func() (claim, bool){x.rasGone, x.rec.missing} {
		if c, ok := ask(); ok && !x.moved {
			list = append(list, c)
		}
	}
	return list
}

// gone finds processes that are no more, or do not run, without those that left because another had. Who says most of
// how a process went is asked first.
func (x *judge) gone() (claim, bool) {
	others := x.unanswered()
	exits := func() (claim, bool) { return x.log.exits(false) }
	for _, ask := range []func() (claim, bool){exits, x.goneHere} {
		if c, ok := ask(); ok {
			return x.agree(c, others), true
		}
	}
	c, ok := x.log.vanished()
	switch {
	case ok:
		c = x.log.unread(c)
		c.ranks = x.notHere(c.ranks)
	// a file that is not there alone says nothing of the process
	case len(others) == 0, others[0].kind == NoReport && !x.log.peersGone():
		return claim{}, false
	default:
		c, others = others[0], others[1:]
		if c.ranks = x.log.unnoticed(c.ranks); x.answers(c.ranks) {
			return claim{}, false // its dump is missing, but it answers
		}
	}
	return x.agree(x.closing(c), others), true
}

// notHere are those of ranks whose process is not seen to go on: one that runs and did not take itself down has not
// ended, it only has not noticed yet.
func (x *judge) notHere(ranks []int) []int {
	return unless(ranks, func(r int) bool {
		p := x.processOf(r)
		alive := p != nil && p.State != 'Z' || x.answers([]int{r})
		return alive && !x.log.orderly(r)
	})
}

// closing decides how a process went: with closed connections it ended, in order or not; with open ones it only
// stopped.
func (x *judge) closing(c claim) claim {
	broken := x.log.peersGone() || x.closed() && !x.timedOut()
	switch {
	case !broken && len(x.c.logs)+len(x.ras) > 0:
		c.kind = Stopped
		c.why += "; its connections are still open: it is stopped, not gone"
	case c.kind == NoReport || c.kind == Stopped:
		c.kind = Killed
		c.doubtful(0.65) // only its own log or a launcher says how
	}
	for _, r := range c.ranks {
		if c.kind == Killed && x.log.orderly(r) {
			c.kind = Exited
		}
	}
	return c
}

// late finds ranks that have not launched what the others wait for. RAS counts what was launched at a moment: one
// answer alone may be a passing one.
func (x *judge) late() (claim, bool) {
	c, ok := x.first(func(t *table) (claim, bool) {
		if t.source == fromRAS && !x.still && !x.timedOut() && !x.once {
			return claim{}, false
		}
		return t.straggler()
	})
	if ok && c.source == fromRAS && x.once && !x.timedOut() {
		c.doubtful(0.5)
		c.why += "; one answer alone may be a passing moment: ask again"
	}
	return c, ok
}

// passing is the verdict on a job that goes on, or about which nothing tells.
func (x *judge) passing() *Verdict {
	if c, ok := x.slow(); ok {
		if len(x.rec.absent) > 0 { // who waits for one of them comes late elsewhere
			c.doubtful(0.5)
		}
		return x.verdict(c, Slow)
	}
	if x.timedOut() {
		return x.verdict(x.log.gaveUp(), Hung)
	}
	if c, ok := x.rec.stuck(); ok && !x.moved {
		c.doubtful(0.4)
		v := x.verdict(c, Stalled)
		v.MayPass = true // it may have ended since
		return v
	}
	for _, find := range []func() (claim, bool){x.notCome, x.notBegun} {
		if c, ok := find(); ok {
			return x.verdict(c, Stalled)
		}
	}
	w := x.rec.waits
	if len(w.absent) > 0 && !x.rec.running && !x.moved && !x.still {
		return x.uncollected()
	}
	for _, o := range []struct {
		is    bool
		state State
		kind  Kind
		sure  float64
		text  string
	}{
		{x.moved, Healthy, NoKind, 0.9, "The job launches collectives: more of them were counted the second time."},
		{
			x.rec.running, Healthy, NoKind, 0.85,
			"The dumps were taken while the job ran: collectives completed that a member's dump does not have yet.",
		},
		{
			x.rec.idle(), Healthy, NoKind, 0.6,
			"Every collective that the recorder has is completed. A rank that waits elsewhere, as in the creation of a " +
				"communicator, is not in it.",
		},
		{
			x.still, Stalled, UnknownKind, 0.4,
			"No rank launched a collective between two answers of RAS, and nothing differs between ranks: all of them " +
				"compute, load, save or compile, or a GPU is stuck. The recorder's dumps tell which (--trigger, --dumps)",
		},
		{
			len(x.rec.order) > 0 || len(x.ras) > 0 && len(x.of(fromRAS).order) == 0, Unknown, UnknownKind, 0,
			"No rank has launched a collective yet: the job starts, or waits for ranks that do not come. NCCL_DEBUG=INFO and " +
				"stacks tell which.",
		},
		{
			len(x.log.by[joblog.Exit]) > 1 && x.log.unlaunched(&x.log.by[joblog.Exit][0]), Unknown, UnknownKind, 0,
			"Several tasks ended alike, and no rank made a communicator: the launch failed, and no rank holds the others up. " +
				"busbar doctor says why",
		},
		{
			len(x.ras) > 0, Healthy, NoKind, 0.6,
			"RAS reports nothing that differs between ranks. It does not see the order of communicators, kernels and sizes.",
		},
	} {
		if o.is {
			return x.verdict(claim{kind: o.kind, sure: o.sure, why: o.text}, o.state)
		}
	}
	return x.verdict(claim{
		kind: UnknownKind,
		why: "Nothing that was read tells who waits for whom: give the dumps of PyTorch's flight recorder, RAS answers, " +
			"or the logs of all ranks",
	}, Unknown)
}

// uncollected is the verdict on ranks that wait for some whose dumps were not given.
func (x *judge) uncollected() *Verdict {
	absent := x.rec.waits.absent
	c := x.rec.waitFor(UnknownKind, absent)
	c.ranks = nil
	c.why = fmt.Sprintf("%s waits for %s, and there is no dump of %[2]s. Who holds it up is not known: give the dumps of "+
		"all ranks", c.what(), rankList(absent))
	return x.verdict(c, Unknown)
}

// verdict turns a claim into the answer, with places of ranks and what their stacks show.
func (x *judge) verdict(c claim, state State) *Verdict {
	v := &Verdict{
		State: state, Kind: c.kind, Confidence: c.sure, Ranks: x.job.culprits(c.ranks), Nodes: c.nodes, Communicator: c.comm,
		Op: c.op, Sequence: c.seq,
		Waiting: c.waiting, Text: c.why, Evidence: append([]finding.Quote{}, c.quotes...), doubt: c.doubt,
	}
	if len(c.ranks) > 0 && len(c.ranks) < 64 {
		v.Evidence = append(x.lastWords(c), v.Evidence...)
		x.lookAtStacks(v, c)
	}
	return v
}
