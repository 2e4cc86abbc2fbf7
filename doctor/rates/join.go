package rates

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"busbar.dev/coll"
	"busbar.dev/internal/stats"
	"busbar.dev/unit"
)

// Report is what all nodes' windows say together.
type Report struct {
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
	Jobs []Job     `json:"jobs"`

	cut       []string   // hosts that have more than the bounds
	contested [][]string // hosts that claim the same rank
}

// Job is a set of processes that share communicators.
type Job struct {
	Name  string `json:"name,omitempty"` // the scheduler's
	World int    `json:"world"`
	Ranks []Rank `json:"ranks"`
	Rows  []Row  `json:"rows"`
	// Seconds is the span that was seen.
	Seconds float64 `json:"seconds"`
	// Waiting is the share of that span that the median rank waited for others within collectives.
	Waiting float64 `json:"waiting"`
	Late    *Late   `json:"late,omitempty"`
}

// Rank is one process of a job.
type Rank struct {
	Rank  int    `json:"rank"` // of the job, or of its largest communicator
	Host  string `json:"host,omitempty"`
	PID   int    `json:"pid,omitempty"`
	local int    // on its host, -1 unknown
	// Wait is the share of the span that it waited for others; Calls the collectives that this is of.
	Wait  float64 `json:"wait"`
	Calls int     `json:"calls"`
	// Open are operations that have not ended, Oldest what the oldest is and how long ago it was launched.
	Open    int     `json:"open,omitempty"`
	Oldest  string  `json:"oldest,omitempty"`
	OldestS float64 `json:"oldest_s,omitempty"`
}

// Row is one operation and size class on one communicator.
type Row struct {
	Comm  string     `json:"comm"`
	Group string     `json:"group"` // its name, or its ranks in words
	Ranks int        `json:"ranks"`
	Nodes int        `json:"nodes,omitempty"`
	Seen  int        `json:"seen"` // ranks that reported
	Op    string     `json:"op"`
	Bytes unit.Bytes `json:"bytes"` // mean
	Class int        `json:"class"` // sizes from 2^class on
	Algo  string     `json:"algo,omitempty"`
	Proto string     `json:"proto,omitempty"`
	Count int        `json:"count"` // calls
	// Time is the median call over all ranks, Transfer the median of the least of all ranks, Wait the mean of what the
	// others take longer: the first call after compute waits, those behind it do not. The last two need the same call of
	// two ranks.
	Time     unit.Time `json:"time_s"`
	Transfer unit.Time `json:"transfer_s,omitzero"`
	Fast     unit.Time `json:"fast_s,omitzero"` // the transfer of the fastest tenth of the calls
	Wait     unit.Time `json:"wait_s,omitzero"`
	BusBW    unit.Rate `json:"busbw_GBps,omitzero"`
	Compared int       `json:"compared,omitempty"` // calls of which several ranks are known
	LateRank int       `json:"late_rank"`          // the rank of the job that was waited for longest, LateOf its share; -1 none
	LateOf   float64   `json:"late_share,omitempty"`
	Expected *Expected `json:"expected,omitempty"`
	Verdict  Verdict   `json:"verdict"`
	Against  Standard  `json:"against,omitempty"` // what the transfer was judged by
	Peers    float64   `json:"peers,omitempty"`   // transfer against the median of communicators of the same shape, by the fastest tenth where that is less

	hosts  []string // of the ranks that reported, by their rank in the communicator
	locals []int
	woken  bool // it is slower than its peers by no more than a thread takes to wake up
}

// Expected is what package predict says of a row.
type Expected struct {
	Time  unit.Time `json:"time_s"`
	Low   unit.Time `json:"low_s"`
	High  unit.Time `json:"high_s"`
	BusBW unit.Rate `json:"busbw_GBps"`
	Algo  string    `json:"algo"`
	Proto string    `json:"proto"`
	Limit string    `json:"limit,omitempty"`
	// Calibrated says that this collective was measured on this layout, so that the bar is narrow.
	Calibrated bool `json:"calibrated,omitempty"`
}

// Verdict is what takes the time of a row.
type Verdict string

// Standard is what a transfer is held against.
type Standard string

// The standards, the best that there is first.
const (
	ByCalibrated Standard = "calibrated prediction"
	ByPeers      Standard = "communicators of the same shape"
	ByPrediction Standard = "prediction" // whose bar is wide
	ByNothing    Standard = ""
)

// The verdicts.
const (
	AsExpected  Verdict = "as expected"
	SlowNetwork Verdict = "slow network"
	Waits       Verdict = "waits" // for a rank
	Both        Verdict = "slow network, waits"
	Unjudged    Verdict = ""
)

// together are the collectives that all ranks end at nearly the same time.
var together = []coll.Kind{coll.AllReduce, coll.AllGather, coll.ReduceScatter, coll.AllToAll}

// call is the same operation as several ranks saw it.
type call struct {
	at     int64
	procs  []int
	us     []float64
	weight float64 // calls that this one stands for
}

// least is the shortest, which is the transfer.
func (c *call) least() (at int, us float64) {
	for i, v := range c.us {
		if i == 0 || v < us {
			at, us = i, v
		}
	}
	return at, us
}

type proc struct {
	host string
	pid  int
}

// Bounds are what one host may have in a report; 0 is as much as it says.
type Bounds struct{ Processes, Members, Rows int }

// joiner puts windows together.
type joiner struct {
	Bounds

	procs   map[proc]int
	list    []proc
	members [][]member // of each process
	known   map[memberKey]bool
	group   []int // union of processes that share a communicator
	comms   map[string]*comm
	hosts   map[string]*charge
}

// member is a rank, and for how long its oldest operation had run by its own host's clock.
type member struct {
	Member

	age float64
}

// charge is what a host has in the report.
type charge struct {
	Bounds

	cut bool // it had more
}

type comm struct {
	hash  string
	first Member
	ranks map[int]int // process by rank; nobody where hosts claim the same rank
	// members are all processes; a profiler's traces may not say which rank is whose.
	members []rankOf
	rows    map[partKey]*rowParts
	group   string // see words
}

type rankOf struct{ rank, proc int }

const nobody = -1

type rowParts struct {
	op     string
	class  int
	parts  []Part
	owners []int // process of each part
}

// Join is what windows of one or several hosts say together, the newest of a host first. Windows of different times
// may be joined; only the same calls are compared. A rank that two hosts claim belongs to neither. What takes longer
// than the context is an error.
func Join(ctx context.Context, most Bounds, windows ...*Window) (*Report, error) {
	j := &joiner{
		Bounds: most, procs: map[proc]int{}, known: map[memberKey]bool{}, comms: map[string]*comm{},
		hosts: map[string]*charge{},
	}
	r := &Report{Jobs: []Job{}}
	for _, w := range windows {
		if r.From.IsZero() || !w.From.IsZero() && w.From.Before(r.From) {
			r.From = w.From
		}
		if w.To.After(r.To) {
			r.To = w.To
		}
		for i := range w.Members {
			j.addMember(&w.Members[i], w.To, r)
		}
	}
	for _, w := range windows {
		j.addParts(w)
	}
	for _, host := range slices.Sorted(maps.Keys(j.hosts)) {
		if j.hosts[host].cut {
			r.cut = append(r.cut, host)
		}
	}
	jobs, comms := j.grouped()
	for _, root := range slices.Sorted(maps.Keys(jobs)) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		r.Jobs = append(r.Jobs, j.job(jobs[root], comms[root]))
	}
	slices.SortStableFunc(r.Jobs, func(a, b Job) int {
		return cmp.Or(-cmp.Compare(len(a.Ranks), len(b.Ranks)), cmp.Compare(a.Name, b.Name))
	})
	return r, nil
}

// grouped are the processes and the communicators of each job, the largest communicators first.
func (j *joiner) grouped() (jobs map[int][]int, comms map[int][]*comm) {
	jobs, comms = map[int][]int{}, map[int][]*comm{}
	one := map[*comm]int{} // a process of each communicator
	for _, c := range j.comms {
		for _, m := range c.members {
			if c.ranks[m.rank] == nobody {
				continue
			}
			if _, ok := one[c]; !ok {
				one[c] = m.proc
			}
			a, b := j.root(one[c]), j.root(m.proc)
			j.group[max(a, b)] = min(a, b)
		}
	}
	for p := range j.list {
		jobs[j.root(p)] = append(jobs[j.root(p)], p)
	}
	for _, c := range slices.SortedFunc(maps.Keys(one), func(a, b *comm) int {
		return cmp.Or(-cmp.Compare(a.first.Ranks, b.first.Ranks), cmp.Compare(a.hash, b.hash))
	}) {
		comms[j.root(one[c])] = append(comms[j.root(one[c])], c)
	}
	return jobs, comms
}

// charged is whether a host may have one more, of which it has n.
func (c *charge) charged(n *int, most int) bool {
	if most > 0 && *n >= most {
		c.cut = true
		return false
	}
	*n++
	return true
}

func (j *joiner) addMember(m *Member, now time.Time, r *Report) {
	key := memberKey{m.Comm, m.Rank, m.PID, m.Host}
	if j.known[key] {
		return // a newer window told of it
	}
	host := j.hosts[m.Host]
	if host == nil {
		host = &charge{}
		j.hosts[m.Host] = host
	}
	k := proc{m.Host, m.PID}
	p, ok := j.procs[k]
	if !ok && !host.charged(&host.Processes, j.Processes) || !host.charged(&host.Members, j.Members) {
		return
	}
	if !ok {
		p = len(j.list)
		j.procs[k] = p
		j.list, j.members, j.group = append(j.list, k), append(j.members, nil), append(j.group, p)
	}
	j.known[key] = true
	j.members[p] = append(j.members[p], member{*m, now.Sub(m.Since).Seconds()})
	c := j.comms[m.Comm]
	if c == nil {
		c = &comm{hash: m.Comm, first: *m, ranks: map[int]int{}, rows: map[partKey]*rowParts{}}
		j.comms[m.Comm] = c
	}
	switch old, claimed := c.ranks[m.Rank]; {
	case !claimed:
		c.ranks[m.Rank] = p
	case old == nobody:
		return
	case j.list[old].host != m.Host:
		r.contested = append(r.contested, unique([]string{j.list[old].host, m.Host}))
		c.ranks[m.Rank] = nobody
		return
	}
	c.members = append(c.members, rankOf{m.Rank, p})
	c.first.Ranks, c.first.Nodes = max(c.first.Ranks, m.Ranks), max(c.first.Nodes, m.Nodes)
}

func (j *joiner) addParts(w *Window) {
	for i := range w.Parts {
		p := &w.Parts[i]
		m := &w.Members[p.Member]
		c := j.comms[m.Comm]
		if !j.known[memberKey{m.Comm, m.Rank, m.PID, m.Host}] || c.ranks[m.Rank] == nobody {
			continue
		}
		k := partKey{op: p.Op, class: p.Class}
		if c.rows[k] == nil {
			if host := j.hosts[m.Host]; !host.charged(&host.Rows, j.Rows) {
				continue
			}
			c.rows[k] = &rowParts{op: p.Op, class: p.Class}
		}
		c.rows[k].parts = append(c.rows[k].parts, *p)
		c.rows[k].owners = append(c.rows[k].owners, j.procs[proc{m.Host, m.PID}])
	}
}

func (j *joiner) root(p int) int {
	for j.group[p] != p {
		j.group[p] = j.group[j.group[p]]
		p = j.group[p]
	}
	return p
}

// job is what the processes of one job did.
func (j *joiner) job(list []int, comms []*comm) Job {
	job := Job{Rows: []Row{}}
	index := map[int]int{} // place in Ranks by process
	largest := 0
	for _, p := range list {
		for i := range j.members[p] {
			m := &j.members[p][i]
			largest = max(largest, m.Ranks)
			job.World = max(job.World, m.World)
			job.Name = cmp.Or(job.Name, m.Job)
		}
	}
	job.World = max(job.World, largest, len(list))
	ranks := map[int]Rank{}
	for _, p := range list {
		ranks[p] = j.rank(p, largest)
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(ranks[a].Rank, ranks[b].Rank) })
	for at, p := range list {
		job.Ranks, index[p] = append(job.Ranks, ranks[p]), at
	}
	var calls []call
	for _, c := range comms {
		c.group = c.words(&job, index)
		for _, k := range slices.SortedFunc(maps.Keys(c.rows),
			func(a, b partKey) int { return cmp.Or(cmp.Compare(a.op, b.op), cmp.Compare(a.class, b.class)) }) {
			row, more := c.row(c.rows[k], &job, index)
			job.Rows = append(job.Rows, row)
			calls = append(calls, more...)
		}
	}
	job.late(calls)
	job.compare()
	for i := range job.Rows {
		job.Rows[i].judge()
	}
	return job
}

func (j *joiner) rank(p, largest int) Rank {
	r := Rank{Rank: -1, Host: j.list[p].host, PID: j.list[p].pid, local: -1}
	for i := range j.members[p] {
		m := &j.members[p][i]
		if m.Global >= 0 {
			r.Rank = m.Global
		} else if r.Rank < 0 && m.Ranks == largest {
			r.Rank = m.Rank
		}
		r.local = max(r.local, m.Local)
		r.Open += m.Open
		if m.Open > 0 && !m.Since.IsZero() && m.age > r.OldestS {
			r.OldestS, r.Oldest = m.age, m.Waits
		}
	}
	return r
}

// row is one line, and the calls that can be compared.
func (c *comm) row(parts *rowParts, job *Job, index map[int]int) (Row, []call) {
	r := Row{
		Comm: c.hash, Group: c.group, Ranks: c.first.Ranks, Nodes: c.first.Nodes, Op: parts.op, Class: parts.class,
		LateRank: -1,
	}
	var us []float64
	var size, count float64
	byCall, calls := map[uint64]*call{}, map[int]int{}
	for i := range parts.parts {
		p := &parts.parts[i]
		size, count = size+float64(p.Bytes), count+float64(p.Count)
		calls[parts.owners[i]] += p.Count
		r.Algo, r.Proto = cmp.Or(r.Algo, p.Algo), cmp.Or(r.Proto, p.Proto)
		for _, s := range p.Samples {
			us = append(us, s.Us)
			x := byCall[s.Seq]
			if x == nil {
				x = &call{at: s.At}
				byCall[s.Seq] = x
			}
			x.procs, x.us = append(x.procs, index[parts.owners[i]]), append(x.us, s.Us)
		}
	}
	r.Bytes, r.Seen = unit.Bytes(size/max(count, 1)), len(calls)
	for _, rank := range slices.Sorted(maps.Keys(c.ranks)) {
		p := c.ranks[rank]
		if p == nobody || calls[p] == 0 {
			continue
		}
		r.Count = max(r.Count, calls[p])
		at := &job.Ranks[index[p]]
		r.hosts, r.locals = append(r.hosts, at.Host), append(r.locals, at.local)
	}
	if len(us) > 0 {
		r.Time = unit.Micros(stats.Median(us))
	}
	kind, err := coll.ParseKind(r.Op)
	// NCCL stamps the end of a kernel by its first thread. In a ring that is the operation's end; on a leaf of a tree it
	// has sent its part up and is done while the others wait for the result (seen with 2.28.9), and other algorithms give
	// threads parts of their own.
	if err != nil || !slices.Contains(together, kind) || c.first.Ranks < 2 || r.Algo != "ring" && r.Algo != "" {
		return r, nil
	}
	same := make([]call, 0, len(byCall))
	for _, seq := range slices.Sorted(maps.Keys(byCall)) {
		if x := byCall[seq]; len(x.us) > 1 {
			same = append(same, *x)
		}
	}
	for i := range same {
		same[i].weight = float64(r.Count) / float64(len(same))
	}
	r.weigh(same, job)
	at := cmp.Or(r.Transfer, r.Time)
	if at > 0 {
		r.BusBW = unit.Rate(float64(r.Bytes) / at.Seconds() * kind.BusFactor(r.Ranks))
	}
	return r, same
}

// weigh tells waiting from transfer, and finds the rank that is waited for longest.
func (r *Row) weigh(calls []call, job *Job) {
	if r.Compared = len(calls); r.Compared == 0 {
		return
	}
	caused := map[int]float64{} // by process: what the others waited for it
	var transfer []float64
	wait, all := 0.0, 0.0
	for i := range calls {
		c := &calls[i]
		last, least := c.least()
		sum := 0.0
		for _, us := range c.us {
			sum += us - least
		}
		caused[c.procs[last]] += sum
		transfer = append(transfer, least)
		wait, all = wait+sum/float64(len(c.us)-1), all+sum
	}
	r.Transfer, r.Fast = unit.Micros(stats.Median(transfer)), unit.Micros(stats.Quantile(transfer, 0.1))
	r.Wait = unit.Micros(wait / float64(len(calls)))
	most := 0.0
	for _, p := range slices.Sorted(maps.Keys(caused)) {
		if caused[p] > most {
			most = caused[p]
			r.LateRank, r.LateOf = job.Ranks[p].Rank, most/all
		}
	}
}

// words name a communicator: by its name, or by its ranks.
func (c *comm) words(job *Job, index map[int]int) string {
	switch {
	case c.first.Name != "":
		return c.first.Name
	case c.first.Ranks > 1 && c.first.Ranks == job.World:
		return "world"
	}
	var list []int
	for _, p := range c.ranks {
		if p != nobody {
			list = append(list, job.Ranks[index[p]].Rank)
		}
	}
	slices.Sort(list)
	text := ""
	for i, r := range list {
		if i == 4 {
			text += ",…"
			break
		}
		if i > 0 {
			text += ","
		}
		text += fmt.Sprint(r)
	}
	return "ranks " + text
}
