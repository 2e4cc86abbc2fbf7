package query

import (
	"context"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/engine/ranks"
	"busbar.dev/fleet"
	"busbar.dev/input/procs"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/kube"
	"busbar.dev/step"
	"busbar.dev/unit"
)

// Env is what a question may touch of the world. The zero value reads the machine's files, knows nothing of the machine
// itself, and tells nobody anything.
type Env struct {
	// Files are the files that a question may name; nil is the machine's own, under the names its programs use.
	Files fs.FS
	// Clusters are clusters that a question may name beside files and presets, by their names. A question works on a copy.
	Clusters map[string]*cluster.Cluster
	// Stdin is what the name - reads; nil is nothing.
	Stdin io.Reader
	// Machine reads the machine itself, for questions that name no cluster; nil refuses them.
	Machine func(ctx context.Context) ([]*cluster.Fragment, error)
	// State is what the machine's kernel and environment say, by where it comes from; nil refuses questions about it.
	State func() (names, texts []string)
	// Note is told what is worth knowing beside the answer, when it is found; documents have the same in their Notes.
	Note func(text string)
	// Flags makes notes and errors name parameters as the command line has them (--size) instead of by their names (size).
	Flags bool
	// Verbose is told how inputs were recognised.
	Verbose func(text string)
	// Progress is told what is being done and how far it is. The empty text ends what was told before. It is called by one
	// goroutine at a time, and never twice in a row with one text; the question waits for it.
	Progress func(text string)
	// Steps is told how much of the work is done, in what the question counts (layouts, sizes, settings, numbers of
	// nodes), where the amount is known. It is called as Progress is. Work of several parts begins again with each. A
	// search may end before all is done: it leaves out what cannot win.
	Steps func(done, total int64)
	// Version is that of the program that asks, which results that it measures carry.
	Version string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Fleet is the server that questions about a fleet are asked of; nil refuses them.
	Fleet fleet.Server
	// Watch is told how an order goes that a question waits for.
	Watch func(OrderProgress)
	// JobHosts is the hostlist of a scheduler's job; nil refuses questions about one.
	JobHosts func(ctx context.Context, job string) (string, error)
	// Pods are those of a Kubernetes cluster that a question is about, with the credentials that are here; nil refuses it.
	Pods func(ctx context.Context, q kube.Question) ([]kube.Pod, error)
	// Processes are the ranks on this machine of the job that a process belongs to; nil refuses questions about them.
	Processes func(pid int) ([]procs.Process, error)
	// Trigger makes the ranks of this machine write the dumps of their recorders, and counts them; nil refuses it.
	Trigger func(prefix string) (int, error)
	// Limits bound what others may ask of this process: what the sources of a question describe together, whatever their
	// form.
	Limits cluster.Limits

	// loaded is told a cluster before anything is assumed of it.
	loaded func(*cluster.Cluster)

	told     string // the last of Progress
	question any    // that is being answered
	notes    *notes
}

// logBudget is what documents among logs may cost. Logs themselves are longer than any of those.
func (e *Env) logBudget(ctx context.Context) *cluster.Budget {
	l := e.Limits
	l.Bytes = 0
	return cluster.NewBudget(l, func() error { return failure.Cannot(ctx.Err()) })
}

// budget is what the sources of a question may cost; reading ends with the context.
func (e *Env) budget(ctx context.Context) *cluster.Budget {
	return cluster.NewBudget(e.Limits, func() error { return failure.Cannot(ctx.Err()) })
}

// progress says what is being done; the empty text ends it.
func (e *Env) progress(text string) {
	if e.Progress != nil && e.told != text {
		e.told = text
		e.Progress(text)
	}
}

// steps says how much is done.
func (e *Env) steps(done, total int) {
	if e.Steps != nil {
		e.Steps(int64(done), int64(total))
	}
}

// working says what is being done until done is called.
func (e *Env) working(text string) (done func()) {
	e.progress(text)
	return func() { e.progress("") }
}

// now is the time.
func (e *Env) now() time.Time {
	if e.Now == nil {
		return time.Now()
	}
	return e.Now()
}

// files are those that may be named.
func (e *Env) files() fs.FS {
	if e.Files == nil {
		return machineFiles{}
	}
	return e.Files
}

// stdin is what - reads.
func (e *Env) stdin() io.Reader {
	if e.Stdin == nil {
		return strings.NewReader("")
	}
	return e.Stdin
}

// exists reports a cluster, file or folder of that name.
func (e *Env) exists(name string) bool {
	if _, ok := e.Clusters[name]; ok {
		return true
	}
	_, err := fs.Stat(e.files(), name)
	return err == nil
}

// root is a folder as a file system of its own. Links that lead out of it lead nowhere: what they would show is
// another machine's. The caller closes it.
func (e *Env) root(name string) (fs.FS, func(), error) {
	files := e.files()
	if _, ok := files.(machineFiles); !ok {
		sub, err := fs.Sub(files, name)
		return sub, func() {}, err
	}
	r, err := os.OpenRoot(name)
	if err != nil {
		return nil, nil, err
	}
	return r.FS(), func() { r.Close() }, nil
}

// machineFiles are the files of the machine, by any name that the operating system takes; fs.FS's own rule (no leading
// slash, no dots) is for trees that have an end.
type machineFiles struct{}

func (machineFiles) Open(name string) (fs.File, error)          { return os.Open(name) }
func (machineFiles) Stat(name string) (fs.FileInfo, error)      { return os.Stat(name) }
func (machineFiles) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }

// PageLimits bound what others may send to a server: 20,000 nodes, whatever the form of their description.
var PageLimits = cluster.Limits{
	Hosts: 20_000, Names: 640_000, Devices: 200_000, Ends: 256, Pairs: 4 << 20, Switches: 1 << 15, Links: 1 << 20,
	Steps: 1 << 27, Bytes: 32 << 20, Unpacked: 1 << 30,
}

// Ranks is who measures, and how the process that asks is connected to them. With ranks.DefaultJob and nothing else,
// ranks of this process measure.
//
// Of a question that measures, RunOn returns a document in the process that is rank 0. In others it returns nil:
// another process, which has the same question, gives the answer.
type Ranks[D any] struct {
	Job     ranks.Job
	Process ranks.Process
	// Ready is asked before anything is started, in the process that the user started: could Keep keep what is left?
	Ready func() error
	// Keep takes what the rank that answers gives to the keep of Answer, in the process that the user started.
	Keep func(data []byte) error
	// Row is told, where rank 0 is, that the document has one more row.
	Row func(D) error
	// Answer is told the document while the ranks are still there; what it gives to keep reaches Keep.
	Answer func(d D, keep func(data []byte) error) error
}

// task has the functions that all measurements share.
func (r *Ranks[D]) task() ranks.Task { return ranks.Task{Ready: r.Ready, Keep: r.Keep} }

func (r *Ranks[D]) row(d D) error {
	if r.Row == nil {
		return nil
	}
	return r.Row(d)
}

func (r *Ranks[D]) answer(d D, keep func([]byte) error) error {
	if r.Answer == nil {
		return nil
	}
	return r.Answer(d, keep)
}

// run does the task. The document is that of the rank that answers, if it is in this process.
func (r *Ranks[D]) run(ctx context.Context, t ranks.Task) error {
	return r.Job.Run(ctx, r.Process, t)
}

// alone measures between ranks of this process, over plain memory.
func alone[Q, D any](ctx context.Context, env Env, q Q,
	on func(Q, context.Context, Env, Ranks[*D]) (*D, error),
) (doc *D, err error) {
	defer prepared(&q, &env, &doc, &err)()
	if err != nil {
		return nil, err
	}
	return on(q, ctx, env, Ranks[*D]{Job: ranks.DefaultJob()})
}

// Noted is what is worth knowing beside an answer, as part of a document.
type Noted struct {
	Notes []string `json:"notes,omitempty"` // worth knowing beside the answer: what was assumed, left out or not used
	// On is the cluster that the answer is about, as it was resolved.
	On *resolvedCluster `json:"resolved_cluster,omitempty"`
}

// resolvedCluster is what a source says of a cluster with all that was assumed and changed.
type resolvedCluster struct {
	Name string `json:"name"`
	cluster.Summary
	Types   []resolvedNode `json:"types"`
	Changed []string       `json:"changed,omitempty"` // by --set, --nic and --gpu: nic=100G
}

// resolvedNode is a kind of nodes.
type resolvedNode struct {
	Name  string    `json:"name"`
	Nodes int       `json:"nodes"`
	GPU   string    `json:"gpu,omitempty"`
	GPUs  int       `json:"gpus"`
	Ports int       `json:"nic_ports"`          // whose rate is known
	Rate  unit.Rate `json:"nic_GBps,omitempty"` // of the slowest of them
}

func newResolvedCluster(c *cluster.Cluster, changed []string) *resolvedCluster {
	r := &resolvedCluster{Name: c.Name, Summary: c.Summary(), Changed: changed, Types: make([]resolvedNode, len(c.Types))}
	for i, t := range c.Types {
		n := &r.Types[i]
		n.Name = t.Name
		n.Rate, n.Ports = step.NodePorts(t)
		gpus := t.Of(cluster.GPU)
		if n.GPUs = len(gpus); n.GPUs > 0 {
			n.GPU = t.Devices[gpus[0]].Model.Value
		}
	}
	for _, h := range c.Hosts {
		if h.Type >= 0 {
			r.Types[h.Type].Nodes++
		}
	}
	return r
}

func (n *Noted) setNotes(from *notes) { n.Notes, n.On = from.list, from.on }

// notes are those of a question while it is answered. Those of a question that another one asks are the other's too.
type notes struct {
	above *notes
	mu    sync.Mutex
	list  []string
	on    *resolvedCluster
}

func (n *notes) add(text string) {
	for ; n != nil; n = n.above {
		n.mu.Lock()
		if !slices.Contains(n.list, text) {
			n.list = append(n.list, text)
		}
		n.mu.Unlock()
	}
}

// resolved says which cluster the answer is about.
func (n *notes) resolved(c *resolvedCluster) {
	for ; n != nil; n = n.above {
		n.on = c
	}
}

// begin begins the answer to a question. What it returns ends it: the document gets its notes, and the error the names
// of parameters that its reader knows.
func begin[D any](question any, env *Env, doc **D, err *error) (end func()) {
	env.question, env.notes = question, &notes{above: env.notes}
	return func() {
		if *doc != nil {
			if d, ok := any(*doc).(interface{ setNotes(*notes) }); ok {
				d.setNotes(env.notes)
			}
		}
		*err = env.spelled(*err)
	}
}

// prepared begins the answer to a question whose fields are prepared first; err is what is wrong with them.
func prepared[D any](question any, env *Env, doc **D, err *error) (end func()) {
	end = begin(question, env, doc, err)
	*err = prepare(question)
	return end
}

// note tells something beside the answer.
func (e *Env) note(texts ...string) {
	for _, t := range texts {
		plain := t
		if e.question != nil {
			plain, _ = unflagged(t, Params(e.question))
		}
		e.notes.add(plain)
		switch {
		case e.Note == nil:
		case e.Flags:
			e.Note(t)
		default:
			e.Note(plain)
		}
	}
}
