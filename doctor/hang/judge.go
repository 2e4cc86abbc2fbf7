package hang

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"busbar.dev/finding"
	"busbar.dev/input/joblog"
	"busbar.dev/input/ras"
)

// judge holds what the sources say while they are joined.
type judge struct {
	c       *Case
	job     *job
	rec     *recorder
	rings   *recorder // what the profiler's rings say; nil without
	ras     []*rasView
	rasSays []claim // what RAS alone concludes
	log     *logView
	inspect *recorder // what Inspector's lines say
	moved   bool      // RAS saw the job launch collectives between two answers
	still   bool      // RAS saw that it did not
	notes   []string
}

// Judge joins everything that was added. Causes come before what follows from them: a GPU's error before a process that
// ends of it, a process that is gone before ranks that wait for it, and only then what waiting alone can tell.
func (c *Case) Judge() *Verdict {
	one, err := c.oneRun()
	if err != nil {
		return &Verdict{
			State: Unknown, Kind: UnknownKind, Text: sentence(err.Error()), Ranks: []Culprit{}, Evidence: []finding.Quote{},
			Next: []string{}, Signals: []string{fromRecorder}, Notes: c.notes,
		}
	}
	c = one
	j := newJob(c)
	x := &judge{
		c: c, job: j, rec: newRecorder(fromRecorder, c.rec, j), ras: rasViews(c, j), log: newLogView(c, j),
		inspect: newRecorder(fromInspector, c.inspectorSet(j), j),
	}
	x.rec.torn, x.rasSays = c.torn, rasClaims(x.ras, j)
	if s := c.ringSet(); s != nil {
		x.rings = newRecorder(fromProfiler, s, j)
		if len(s.Dumps) > len(x.rec.order) { // dumps come late or not at all
			x.rec = x.rings
		}
	}
	yes, known := moved(x.ras)
	yes, known = yes || c.ringMoved, known || c.ringStill
	x.moved, x.still = yes, known && !yes
	v := x.decide()
	v.World = j.world
	over := v.MayPass
	v.MayPass = v.State == Stalled && (over || x.running() || len(x.ras) == 1 && len(c.rec.Dumps) == 0 || works(v.Kind))
	v.Signals = x.signals()
	v.Notes = append(append(v.Notes, c.notes...), x.notes...)
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
	if v.Ranks == nil {
		v.Ranks = []Culprit{}
	}
	if v.Evidence == nil {
		v.Evidence = []finding.Quote{}
	}
	v.Confidence = math.Round(100*v.Confidence) / 100
	x.advise(v)
	if !over && !x.moved {
		v.Lasted(x.waited())
	}
	if c.mixed {
		v.Text += " The dumps are of several runs, and only the newest was judged: see the notes."
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
		{"gpu", len(x.c.gpus) > 0},
		{fromProcess, len(x.c.procs) > 0},
		{fromProfiler, x.rings != nil},
	} {
		if s.is {
			list = append(list, s.name)
		}
	}
	return list
}

// decide asks for each cause in turn.
func (x *judge) decide() *Verdict {
	hung, failed := func() State { return Hung }, func() State { return Failed }
	for _, try := range []struct {
		claim func() (claim, bool)
		state func() State
	}{
		{x.log.gpuFault, x.ended},
		{x.gpuState, x.ended},
		{x.stoppedHere, hung},
		{x.log.differing, failed},
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
		if c, ok := x.rec.missing(); ok && !x.answers(c.ranks) {
			return x.verdict(c, x.waitingState(Stalled))
		}
		if c, ok := x.stuck(); ok && (x.timedOut() || x.still) {
			if c.kind == Network && !x.timedOut() {
				return x.verdict(c, Stalled) // a collective may take longer than the time between two answers
			}
			return x.verdict(c, Hung)
		}
	}
	return x.passing()
}

// stuck is a collective that all launched and none ends. Which GPU has not begun it only the profiler's rings say
// without TORCH_NCCL_ENABLE_TIMING.
func (x *judge) stuck() (claim, bool) {
	if x.rings != nil {
		if c, ok := x.rings.stuck(); ok {
			return c, true
		}
	}
	return x.rec.stuck()
}

// mismatch is what the sources say about collectives that ranks call differently.
func (x *judge) mismatch() (claim, bool) {
	others := slices.Clone(x.rasSays)
	told, ok := x.log.gaveUpDiffering()
	if ok {
		others = append(others, told)
	}
	if c, ok := x.rec.mismatches(); ok {
		return x.agree(c, others), true
	}
	for _, c := range others {
		if c.kind == OpMismatch {
			return c, true
		}
	}
	return x.inspect.mismatches()
}

// agree raises a claim's confidence by those of other sources that name the same ranks, and takes over their evidence.
func (x *judge) agree(c claim, others []claim) claim {
	for _, o := range others {
		if o.source == c.source || !slices.Equal(sorted(o.ranks), sorted(c.ranks)) {
			continue
		}
		c.sure = min(max(c.sure, cmp.Or(c.most, 0.98)), c.sure+0.04)
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
			if h.pending() != nil && x.rec.running == 0 && !x.moved {
				return Hung
			}
		}
	}
	return otherwise
}

// gone finds processes that are no more, or do not run: what the recorder, RAS and the logs say, without those that
// left because another had.
func (x *judge) gone() (claim, bool) {
	if c, ok := x.log.exits(); ok {
		return x.agree(c, x.rasSays), true
	}
	if c, ok := x.goneHere(); ok {
		return c, true
	}
	fromLogs, logOK := x.log.vanished()
	var list []claim
	for _, c := range x.rasSays {
		if c.kind == Stopped || c.kind == Killed {
			list = append(list, c)
		}
	}
	absent, recOK := x.rec.missing()
	// a file that is not there alone says nothing of the process
	if recOK && !x.moved && (len(list) > 0 || logOK || x.log.peersGone()) {
		list = append(list, absent)
	}
	if logOK {
		fromLogs.ranks = x.notHere(fromLogs.ranks)
		return x.agree(x.closing(x.log.unread(fromLogs)), list), true
	}
	if len(list) == 0 {
		return claim{}, false
	}
	c := list[0]
	c.ranks = slices.DeleteFunc(slices.Clone(c.ranks), func(r int) bool {
		_, ok := x.log.noticed[r]
		return ok && len(c.ranks) > 1 // it noticed that another is gone, so it is not the first
	})
	if len(c.ranks) == 0 {
		c.ranks = list[0].ranks
	}
	if x.answers(c.ranks) {
		return claim{}, false // its dump is missing, but it answers
	}
	return x.agree(x.closing(c), list), true
}

// notHere are those of ranks whose process is not seen to go on: one that runs and did not take itself down has not
// ended, it only has not noticed yet. Where that leaves nobody, all of them are.
func (x *judge) notHere(ranks []int) []int {
	few := slices.DeleteFunc(slices.Clone(ranks), func(r int) bool {
		p := x.processOf(r)
		alive := p != nil && p.State != 'Z' || x.answers([]int{r}) || x.log.goesOn(r)
		return alive && !x.log.orderly(r)
	})
	if len(few) == 0 {
		return ranks
	}
	return few
}

// closing decides how a process went: with closed connections it ended, in order or not; with open ones it only
// stopped.
func (x *judge) closing(c claim) claim {
	broken := x.log.peersGone()
	for _, v := range x.ras {
		broken = broken || v.broken && !x.timedOut()
	}
	switch {
	case !broken && len(x.c.logs)+len(x.ras) > 0:
		c.kind = Stopped
		c.why += "; its connections are still open: it is stopped, not gone"
	case c.kind == NoReport || c.kind == Stopped:
		c.kind = Killed
		if c.source != fromLog { // only its own log or a launcher says how
			c.sure, c.most = min(c.sure, 0.65), 0.7
		}
	}
	for _, r := range c.ranks {
		if c.kind == Killed && x.log.orderly(r) {
			c.kind = Exited
		}
	}
	return c
}

// late finds ranks that have not launched what the others wait for, and what they do instead.
func (x *judge) late() (claim, bool) {
	if c, ok := x.rec.straggler(); ok {
		others := slices.Clone(x.rasSays)
		if b, ok := x.log.behind(); ok {
			others = append(others, b)
		}
		return x.agree(c, others), true
	}
	b, logOK := x.log.behind()
	for _, c := range x.rasSays {
		if c.kind == Late && (x.still || x.timedOut()) {
			if logOK {
				return x.agree(c, []claim{b}), true
			}
			return c, true
		}
	}
	if logOK && b.kind != UnknownKind {
		if absent, ok := x.rec.missing(); ok {
			b = x.agree(b, []claim{absent})
		}
		return b, true
	}
	for _, c := range x.rasSays {
		if c.kind == Late && len(x.ras) == 1 && len(x.c.rec.Dumps) == 0 {
			c.sure = 0.5
			c.why += "; one answer alone may be a passing moment: ask again"
			return c, true
		}
	}
	return claim{}, false
}

// passing is the verdict on a job that goes on, or about which nothing tells.
func (x *judge) passing() *Verdict {
	if c, wait, ok := x.log.cameLate(); ok {
		return x.past(c, time.Duration(wait*float64(time.Second)))
	}
	if c, wait, ok := x.rec.stall(); ok {
		return x.past(c, wait)
	}
	if c, wait, ok := x.inspect.stall(); ok {
		return x.past(c, wait)
	}
	if c, ok := x.slow(); ok {
		if len(x.rec.absent) > 0 { // who waits for one of them comes late elsewhere
			c.sure = min(c.sure, 0.5)
		}
		return x.verdict(c, Slow)
	}
	if x.timedOut() {
		if b, ok := x.log.behind(); ok {
			return x.verdict(b, Hung)
		}
	}
	if c, ok := x.rec.stuck(); ok && !x.moved && len(x.inspect.order) == 0 && len(x.ras) == 0 && len(x.c.logs) == 0 {
		c.sure = min(c.sure, 0.4)
		return x.verdict(c, Stalled)
	}
	for _, find := range []func() (claim, bool){x.notCome, x.notBegun} {
		if c, ok := find(); ok {
			return x.verdict(c, Stalled)
		}
	}
	unread, waits := x.unread()
	if waits && !x.moved && x.rec.running == 0 && !x.rec.idle() && !x.still {
		return unread
	}
	newest := &ras.Report{}
	if n := len(x.ras); n > 0 {
		newest = x.ras[n-1].report
	}
	for _, o := range []struct {
		is   bool
		v    Verdict
		text string
	}{
		{
			x.moved,
			Verdict{State: Healthy, Kind: NoKind, Confidence: 0.9},
			"The job launches collectives: RAS counted more of them in a later answer.",
		},
		{
			x.rec.running > 0,
			Verdict{State: Healthy, Kind: NoKind, Confidence: 0.85},
			"The dumps were taken while the job ran: collectives completed that a member's dump does not have yet.",
		},
		{
			x.rec.idle(),
			Verdict{State: Healthy, Kind: NoKind, Confidence: 0.6},
			"Every collective that the recorder has is completed. A rank that waits elsewhere, as in the creation of a " +
				"communicator, is not in it.",
		},
		{
			x.still,
			Verdict{State: Stalled, Kind: UnknownKind, Confidence: 0.4},
			"No rank launched a collective between two answers of RAS, and nothing differs between ranks: all of them " +
				"compute, load, save or compile, or a GPU is stuck. The recorder's dumps tell which (--trigger, --dumps)",
		},
		{len(newest.Comms) == 0 && newest.JSON, Verdict{State: Unknown, Kind: UnknownKind}, noneYet("communicator exists")},
		{
			len(x.ras) > 0,
			Verdict{State: Healthy, Kind: NoKind, Confidence: 0.6},
			"RAS reports nothing that differs between ranks. It does not see the order of communicators, kernels and sizes.",
		},
		{len(x.rec.order) > 0, Verdict{State: Unknown, Kind: UnknownKind}, noneYet("rank has launched a collective")},
		{
			len(x.inspect.order) > 0,
			Verdict{State: Healthy, Kind: NoKind, Confidence: 0.6},
			"All ranks completed the same collectives.",
		},
	} {
		if o.is {
			o.v.Text = o.text
			return &o.v
		}
	}
	v := &Verdict{State: Unknown, Kind: UnknownKind, Text: "Nothing that was read tells how the job is."}
	x.stacksAlone(v)
	return v
}

// noneYet is said of a job that has not come to its first collective.
func noneYet(what string) string {
	return "No " + what +
		" yet: the job starts, or waits for ranks that do not come. NCCL_DEBUG=INFO and stacks tell which."
}

// past is the verdict on a wait that is over.
func (x *judge) past(c claim, wait time.Duration) *Verdict {
	v := x.verdict(c, Stalled)
	v.MayPass = true
	v.Notes = append(v.Notes, fmt.Sprintf("The wait of %v is over.", wait.Round(time.Second/10)))
	return v
}

// verdict turns a claim into the answer, with places of ranks and what their stacks show.
func (x *judge) verdict(c claim, state State) *Verdict {
	v := &Verdict{
		State: state, Kind: c.kind, Confidence: c.sure, Ranks: x.job.culprits(c.ranks), Nodes: c.nodes, Communicator: c.comm,
		Op: c.op, Sequence: c.seq,
		Waiting: c.waiting, Text: c.why, Evidence: c.quotes, doubt: c.doubt,
	}
	if len(c.ranks) > 0 && len(c.ranks) < 64 {
		v.Evidence = append(x.lastWords(c), v.Evidence...)
		x.lookAtStacks(v, c)
	}
	v.Text += x.addresses(v.Evidence)
	return v
}
