// Package hang says why a job does not go on: which ranks hold it up, what kind of fault that is, and how sure that is.
// It joins what a job tells about itself — NCCL's RAS service, PyTorch's flight recorder, stacks, NCCL's Inspector,
// the job's own output and the kernel's — because none of them suffices: RAS does not see the order of communicators,
// the recorder does not see a process that is gone, and a log names who noticed first.
//
//	c := hang.NewCase()
//	c.Add("ras.json", data)          // anything of the job; what is not known is told apart by its content
//	v := c.Judge()
//	fmt.Println(v.Kind, v.Ranks, v.Text)
//
// Everything that is added is taken for one job. Judge changes nothing and may be asked again after more was added.
package hang

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/finding"
	"busbar.dev/input"
	"busbar.dev/input/flightrec"
	"busbar.dev/input/inspector"
	"busbar.dev/input/joblog"
	"busbar.dev/input/procs"
	"busbar.dev/input/profile"
	"busbar.dev/input/ras"
	"busbar.dev/input/stacks"
	"busbar.dev/internal/unpack"
)

// State is how a job is.
type State string

// The states of a job.
const (
	Hung    State = "hung"    // it will not go on by itself
	Stalled State = "stalled" // it waits for something that may end, or did wait
	Slow    State = "slow"
	Healthy State = "healthy"
	Failed  State = "failed" // it ended, or gave wrong results
	Unknown State = "unknown"
)

// Kind is what is wrong.
type Kind string

// The kinds of faults.
const (
	Late         Kind = "late-rank"
	Exited       Kind = "exited"
	Killed       Kind = "killed"
	Stopped      Kind = "stopped"
	OpMismatch   Kind = "op-mismatch"
	SizeMismatch Kind = "size-mismatch"
	NoReport     Kind = "no-report" // no log, dump or answer of the rank: what became of it is not known
	NeverJoined  Kind = "never-joined"
	Order        Kind = "order-deadlock"
	Kernel       Kind = "gpu-kernel"
	GPUFault     Kind = "gpu-fault"
	Network      Kind = "network"
	Checkpoint   Kind = "checkpoint"
	DataLoading  Kind = "data-loading"
	Compiling    Kind = "compiling"
	Evaluation   Kind = "evaluation"
	NoKind       Kind = "none" // of a healthy job
	UnknownKind  Kind = "unknown"
)

// Culprit is a rank that holds the job up.
type Culprit struct {
	Rank int    `json:"rank"` // global
	Host string `json:"host,omitempty"`
	PID  int    `json:"pid,omitempty"`
	GPU  *int   `json:"gpu,omitempty"`
}

// Communicator is the process group that waits.
type Communicator struct {
	Name  string `json:"name"`
	Group string `json:"group,omitempty"` // what it is for, by its description: tp, dp, pp, …
	Hash  string `json:"hash,omitempty"`
	Ranks []int  `json:"ranks"`              // global
	Least bool   `json:"at_least,omitempty"` // there may be more: these are those of the job that were seen
}

// Verdict is the answer.
type Verdict struct {
	State        State           `json:"verdict"`
	Confidence   float64         `json:"confidence"`
	Kind         Kind            `json:"kind"`
	Ranks        []Culprit       `json:"ranks"`
	Nodes        []string        `json:"nodes,omitempty"` // hosts at fault, where their ranks are not known
	Communicator *Communicator   `json:"communicator,omitempty"`
	Op           string          `json:"op,omitempty"`
	Sequence     int             `json:"sequence,omitempty"`
	Waiting      []int           `json:"waiting,omitempty"` // ranks that wait for the culprits
	Stack        string          `json:"stack,omitempty"`   // what a culprit was doing
	Text         string          `json:"text"`
	Next         []string        `json:"next"`
	Evidence     []finding.Quote `json:"evidence"`
	World        int             `json:"world,omitempty"`
	Signals      []string        `json:"signals"`            // what was there to judge by
	MayPass      bool            `json:"may_pass,omitempty"` // a wait that may end by itself
	Notes        []string        `json:"notes,omitempty"`

	doubt bool // nothing that a host says of itself speaks against it
}

// Case is what is known of one job.
type Case struct {
	rec     *flightrec.Set
	ras     []*ras.Report
	asked   map[*ras.Report]bool // those of a running job
	inspect []inspection
	stacks  []stackFile
	logs    []*joblog.Log
	Runs    []finding.Quote // how those of a log of several ended, the newest first
	procs   []procs.Process
	rings   []ringFile
	now     time.Time // when the running job was asked; zero where it was not
	slow    []int     // ranks that were told to write a dump and have not
	silent  []string  // addresses whose service took a connection and did not answer
	notes   []string
	mixed   string // why what there is cannot be of one job

	ringMoved, ringStill bool // rings were read twice: operations came between, or not
}

type inspection struct {
	name    string
	records []inspector.Record
}

type stackFile struct {
	name string
	list []stacks.Stack
}

// NewCase knows nothing.
func NewCase() *Case { return &Case{rec: flightrec.NewSet(), asked: map[*ras.Report]bool{}} }

// AskedAt notes when the running job was asked.
func (c *Case) AskedAt(now time.Time) { c.now = now }

// Silent notes that the RAS service at an address took a connection and did not answer.
func (c *Case) Silent(addr string) { c.silent = append(c.silent, addr) }

// Slow notes ranks that were told to write a dump and have not done so yet.
func (c *Case) Slow(ranks []int) { c.slow = append(c.slow, ranks...) }

// Read takes a file or an archive of files, packed or not, and says how many of them tell something. A file that cannot
// be read is an error only where it is the only one; of an archive's members it becomes a note.
func (c *Case) Read(b *cluster.Budget, name string, in io.Reader) (known int, err error) {
	err = unpack.Walk(b, name, in, unpack.Visitor{
		File: func(f *unpack.File) error {
			ok, err := c.file(b, f)
			if ok && err == nil {
				known++
			}
			return err
		},
		Bad: func(err error) { c.note("%v", err) },
	})
	return known, err
}

// A text is held so far to tell what it is, and so far where stacks are in it; a longer log is read as it comes.
const (
	beginning = 4 << 20
	maxStacks = 32 << 20
)

// file takes a file of the job.
func (c *Case) file(b *cluster.Budget, f *unpack.File) (known bool, err error) {
	var data []byte
	hold := func(most int64) func() {
		rest, done, failed := unpack.Whole(b, io.LimitReader(f, most-int64(len(data))))
		if data = append(data, rest...); failed != nil {
			err = fmt.Errorf("%s: %w", f.Name, failed)
		}
		return done
	}
	defer hold(beginning)()
	all := input.Dump | input.State | input.Log
	kinds := input.Find(data, all)
	of := func(c input.Class) bool {
		return slices.ContainsFunc(kinds, func(k input.Kind) bool { return k.Class&c != 0 })
	}
	log := false
	switch {
	case err != nil, len(data) < beginning, len(bytes.TrimLeft(data, "\x00")) == 0: // zeros: no log begins so late
	case of(input.Dump):
		defer hold(math.MaxInt64)()
	case of(input.State):
		defer hold(maxStacks)()
		log = len(data) == maxStacks
	default:
		log = true
	}
	if err != nil {
		return false, err
	}
	if log {
		l, err := joblog.ReadStream(f.Name, io.MultiReader(bytes.NewReader(data), f))
		if err != nil {
			return false, err
		}
		if known, all = c.AddLog(l), input.State; !of(all) {
			return known, nil
		}
	}
	also, err := c.AddOf(all, f.Name, data)
	return known || also, err
}

func (c *Case) note(format string, args ...any) {
	if len(c.notes) < 64 {
		c.notes = append(c.notes, fmt.Sprintf(format, args...))
	}
}

// Add takes a file of the job. It reports whether the content is of a kind that tells something; an error says why a
// file of such a kind could not be read.
func (c *Case) Add(name string, data []byte) (known bool, err error) {
	return c.AddOf(input.Dump|input.State|input.Log, name, data)
}

// AddOf is Add for a file of which some classes of input alone are looked for.
func (c *Case) AddOf(classes input.Class, name string, data []byte) (known bool, err error) {
	kinds := input.Find(data, classes)
	if len(kinds) == 0 && flightrec.Torn(name, data) {
		c.note("%s: this recorder dump is empty: have it written again; was the disk full?", name)
	}
	for _, k := range kinds {
		x, err := k.Read(nil, name, data)
		if err != nil {
			return true, err
		}
		switch x := x.(type) {
		case *ras.Report:
			c.ras = append(c.ras, x)
		case input.Recorder:
			if err = c.rec.Add(name, x); err != nil && (flightrec.MatchJSON(x) || flightrec.Torn(name, x)) &&
				!errors.Is(err, flightrec.ErrSeveral) {
				c.note("%s: this recorder dump is torn: copy it again, or have it written again", name)
				return false, nil
			}
			return true, err
		case *profile.Ring:
			c.AddRing(name, x)
		case []inspector.Record:
			c.inspect = append(c.inspect, inspection{name, x})
		case []stacks.Stack:
			if len(x) == 0 {
				continue
			}
			c.stacks = append(c.stacks, stackFile{name, x})
		case *joblog.Log:
			if !c.AddLog(x) {
				continue
			}
		}
		known = true
	}
	return known, nil
}

// AddLog takes what a log says; it reports whether that is anything.
func (c *Case) AddLog(l *joblog.Log) bool {
	tells := len(l.Events) > 0 || l.First > 0
	if tells {
		c.lastRun(l)
		c.logs = append(c.logs, l)
	}
	return tells
}

// AddRAS takes an answer that the RAS service of a running job gave at that time.
func (c *Case) AddRAS(r *ras.Report, at time.Time) {
	r.Time = at.UTC().Format("2006-01-02 15:04:05.000000000")
	c.ras = append(c.ras, r)
	c.asked[r] = true
}

// Empty reports a case about which nothing is known.
func (c *Case) Empty() bool {
	return !c.Dumped() && len(c.logs) == 0
}

// Unread says which files could not be read, each on a line of its own.
func (c *Case) Unread() string {
	if len(c.notes) == 0 {
		return ""
	}
	return "\n" + strings.Join(c.notes, "\n")
}

// Dumped reports that more than logs is known: what the job's processes wrote or answered about themselves.
func (c *Case) Dumped() bool {
	return len(c.rec.Dumps)+len(c.ras)+len(c.inspect)+len(c.stacks)+len(c.procs)+len(c.silent)+len(c.rings) > 0
}

// Waits reports that something of the job says who waits for whom. What NCCL's log alone says of ranks that did not
// come does not: half of a log, or one of many hosts, looks the same.
func (c *Case) Waits() bool {
	return c.Dumped() || slices.ContainsFunc(c.logs, func(l *joblog.Log) bool {
		return l.Stack || slices.ContainsFunc(l.Events, func(e joblog.Event) bool {
			return e.Kind == joblog.Timeout || e.Kind == joblog.Status || e.Kind == joblog.DumpSignal
		})
	})
}

// Lasting is how long nobody may make progress before a wait that may end by itself is a fault; a checkpoint, a
// compilation or an evaluation has longer.
const (
	Lasting     = 30 * time.Second
	LastingWork = 5 * time.Minute
)

// Lasted notes how long nobody has made progress.
func (v *Verdict) Lasted(d time.Duration) {
	most := Lasting
	if works(v.Kind) {
		most = LastingWork
	}
	if v.State == Stalled && v.MayPass && d >= most {
		v.MayPass = false
		v.Text += fmt.Sprintf(" Nobody has made progress for %v.", d.Round(time.Second))
	}
}

// works reports what a rank does that ends by itself.
func works(k Kind) bool { return k == Checkpoint || k == Compiling || k == Evaluation }

// Severity is how grave a verdict is: what may pass by itself is a note.
func (v *Verdict) Severity() finding.Severity {
	switch {
	case v.State == Hung, v.State == Failed:
		return finding.Error
	case v.State == Slow, v.State == Stalled && !v.MayPass:
		return finding.Warn
	}
	return finding.Note
}

// Prefix begins the names of findings about a live job.
const Prefix = "job-"

// Findings is the verdict in the form that all findings have: none for a healthy job, and none where nothing is known.
func (v *Verdict) Findings() []finding.Finding {
	if v.State == Healthy || v.State == Unknown {
		return nil
	}
	f := finding.Finding{
		ID: Prefix + string(v.State), Kind: finding.Kind(v.Kind), Severity: v.Severity(), Confidence: v.Confidence,
		Title: v.title(), Cause: v.Text, Evidence: v.Evidence,
	}
	if v.Kind != UnknownKind {
		f.ID += ":" + string(v.Kind)
	}
	if len(v.Next) > 0 {
		f.Fix = v.Next[0]
	}
	f.Nodes = slices.Clone(v.Nodes)
	for _, r := range v.Ranks {
		f.Ranks = append(f.Ranks, r.Rank)
		if r.Host != "" {
			f.Nodes = append(f.Nodes, r.Host)
		}
	}
	return []finding.Finding{f}
}
