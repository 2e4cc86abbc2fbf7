package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/doctor"
	"busbar.dev/doctor/hang"
	"busbar.dev/finding"
	"busbar.dev/input/ras"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/kube"
	"busbar.dev/internal/words"
)

// Hang asks which ranks hold a job up and how: of its RAS service, of the dumps of its flight recorder, of logs, stacks
// and Inspector's files. Everything that is given is taken for one job.
type Hang struct {
	Sources []string      `arg:"" optional:"" name:"path" page:"file" names:"files" help:"Recorder dumps, RAS answers, logs, stacks, Inspector files; folders and archives of them; - for standard input."`
	RAS     []string      `name:"ras" sep:"none" page:"-" placeholder:"ADDR" help:"Ask the RAS service there: HOST or HOST:PORT (default port 28028). One answer covers the whole job."`
	Hosts   string        `page:"-" placeholder:"HOSTLIST" help:"Ask the RAS service of these hosts: node[01-16]."`
	Job     string        `page:"-" placeholder:"ID" help:"Ask the hosts of this Slurm job."`
	Pods    string        `page:"-" placeholder:"NAMESPACE/SELECTOR" help:"Ask the pods of a Kubernetes job: a label selector (train/app=llama) or the job's name (train/llama). Credentials are those of KUBECONFIG, of a pod's service account, or of ~/.kube/config."`
	PID     int           `name:"pid" page:"-" least:"0" most:"4194304" placeholder:"PID" help:"A rank of the job on this machine: its processes' states are read, and their RAS service, recorder dumps and logs are found."`
	Dumps   string        `page:"-" placeholder:"DIR" help:"Also read the recorder's dumps of this folder (TORCH_FR_DUMP_TEMP_FILE)."`
	Trigger string        `page:"-" placeholder:"PREFIX" help:"First make the ranks of this machine write their dumps, through the pipes of TORCH_NCCL_DEBUG_INFO_PIPE_FILE=PREFIX."`
	Gap     time.Duration `page:"-" default:"2s" least:"100ms" most:"1m" help:"Time between the two RAS answers that tell a passing moment from a hang (default 2s)."`
	Watch   bool          `page:"-" help:"Ask again and again, and end when the job hangs, fails, or makes no progress for 30s (5m in a checkpoint, a compilation or an evaluation)."`
	Every   time.Duration `page:"-" default:"10s" least:"1s" most:"1h" help:"Time between questions with --watch (default 10s)."`
	FailOn  string        `name:"fail-on" page:"-" placeholder:"SEVERITY" enum:"note,warn,error,never" default:"warn" help:"Lowest severity that makes the exit code 1: note, warn, error or never (default warn)."`
}

// HangDoc is the answer to Hang.
type HangDoc struct {
	hang.Verdict

	Findings []finding.Finding `json:"findings"`
	Read     int               `json:"files_read"`
	Asked    []hangAsked       `json:"asked,omitempty"`
	Pods     []kube.Pod        `json:"pods,omitempty"`
	FailOn
}

// hangAsked is an address that was asked.
type hangAsked struct {
	Addr   string `json:"addr"`
	Bytes  int    `json:"bytes,omitempty"`
	Silent int    `json:"silent,omitempty"` // connections that were taken and never answered
	Error  string `json:"error,omitempty"`
}

// Wrong reports a verdict of the severity that was asked for, or a graver one.
func (d *HangDoc) Wrong() bool {
	return d.in(d.Findings)
}

// Undecided reports an answer that says neither that the job is healthy nor what is wrong with it: also of ranks that
// have not come yet.
func (d *HangDoc) Undecided() bool {
	return (d.State == hang.Unknown || d.Kind == hang.NeverJoined && d.State == hang.Stalled && d.MayPass && !d.Wrong()) &&
		d.Least != "never"
}

// check refuses a question that cannot be answered, before anything is read.
func (q *Hang) check() error {
	if err := prepare(q); err != nil {
		return err
	}
	idle := ""
	if !q.Watch {
		idle = "every"
	}
	if !q.live() {
		idle += " gap"
	}
	if err := unread(q, idle, "no running job is asked again"); err != nil {
		return err
	}
	switch {
	case !q.live() && len(q.Sources) == 0 && q.Dumps == "":
		return failure.In("path", errors.New("nothing to read and nobody to ask: give dumps, logs, stacks or RAS answers, "+
			"or ask a job with --pid, --ras localhost, --hosts, --job or --pods"))
	case q.Watch && !q.live() && q.Dumps == "":
		return errors.New("--watch asks a running job; give --pid, --ras, --hosts, --job, --pods or --dumps")
	}
	return nil
}

func (q *Hang) live() bool {
	return len(q.RAS) > 0 || q.Hosts != "" || q.Job != "" || q.Pods != "" || q.PID != 0
}

// Run reads all sources, asks the job, and judges.
func (q Hang) Run(ctx context.Context, env Env) (doc *HangDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := q.check(); err != nil {
		return nil, err
	}
	addrs, err := q.addresses(ctx, &env)
	if err != nil {
		return nil, err
	}
	pods, err := q.pods(ctx, &env)
	if err != nil {
		return nil, err
	}
	addrs = append(addrs, pods.addrs()...)
	var last *HangDoc
	var before []answer
	var since time.Time // of the stall
	for {
		doc, err := pods.told(q.once(ctx, &env, addrs, &before))
		switch {
		case !q.Watch:
			return doc, err
		case errors.Is(err, failure.ErrCannot) && last != nil:
			env.note(err.Error()) // a job that ended, or a network that comes back
		case err != nil:
			return nil, err
		case last == nil || doc.Title() != last.Title():
			env.note(env.now().Format(time.TimeOnly) + " " + doc.Title())
		}
		if err == nil {
			if last == nil || !doc.same(last) {
				since = env.now()
			}
			doc.Lasted(env.now().Sub(since))
			doc.Findings = orEmpty(doc.Verdict.Findings())
			if last = doc; finding.AtLeast(doc.Findings, finding.Error) || doc.State == hang.Stalled && !doc.MayPass {
				return doc, nil
			}
		}
		if err := pause(ctx, q.Every); err != nil {
			return last, err
		}
	}
}

// same reports that nothing has changed since the question before.
func (d *HangDoc) same(o *HangDoc) bool {
	return d.Title() == o.Title() && d.Op == o.Op && d.Sequence == o.Sequence
}

// addresses are those to ask.
func (q *Hang) addresses(ctx context.Context, e *Env) ([]string, error) {
	list := slices.Clone(q.RAS)
	hosts := q.Hosts
	if q.Job != "" {
		if e.JobHosts == nil {
			return nil, errors.New("--job cannot be asked for here; give --hosts")
		}
		found, err := e.JobHosts(ctx, q.Job)
		if err != nil {
			return nil, err
		}
		if hosts != "" {
			hosts += ","
		}
		hosts += found
	}
	if hosts != "" {
		names, err := cluster.ParseHosts(hosts)
		if err != nil {
			return nil, err
		}
		list = append(list, names...)
	}
	for i, a := range list {
		if _, _, err := net.SplitHostPort(a); err != nil {
			list[i] = net.JoinHostPort(strings.Trim(a, "[]"), ras.DefaultPort)
		}
	}
	return list, nil
}

// once reads and asks one time. Answers of the time before stand for the first of two.
func (q *Hang) once(ctx context.Context, e *Env, addrs []string, before *[]answer) (*HangDoc, error) {
	c := hang.NewCase()
	doc := &HangDoc{FailOn: failOn(q.FailOn)}
	here, err := q.processes(e)
	if err != nil {
		return nil, err
	}
	c.AddProcesses(here.Ranks)
	if q.live() {
		c.AskedAt(e.now())
	}
	began := time.Now()
	told, err := q.trigger(e, here.Pipes)
	if err != nil {
		return nil, err
	}
	rings := here.ReadRings(e.files(), c)
	addrs = slices.Compact(slices.Sorted(slices.Values(slices.Concat(addrs, here.Addrs))))
	first := *before
	if len(first) == 0 {
		first = askAll(ctx, e, addrs)
		if slices.ContainsFunc(first, func(a answer) bool { return a.Err == nil }) {
			if err := pause(ctx, max(q.Gap-time.Since(began), q.Gap/4)); err != nil {
				return nil, err
			}
		}
	}
	most := dumpTime
	if rings {
		most = q.Gap // the rings say what dumps would, of every rank
	}
	slow, err := q.awaitDumps(ctx, e, &here, told, began, most)
	if err != nil {
		return nil, err
	}
	if !rings {
		c.Slow(slow)
	}
	here.ReadRings(e.files(), c)
	sources := slices.Concat(q.Sources, here.Written(e.files()))
	if q.Dumps != "" {
		sources = append(sources, q.Dumps)
	}
	if len(addrs) > 0 {
		doc.Asked, *before, err = q.ask(ctx, e, c, addrs, first)
		switch {
		case err != nil && len(sources)+len(here.Ranks) == 0:
			return nil, err
		case err != nil && !errors.Is(err, failure.ErrCannot):
			e.note(err.Error()) // an answer that is cut off
		}
	}
	b := e.logBudget(ctx)
	for _, name := range sources {
		n, err := e.hangSource(ctx, b, c, name)
		if err != nil {
			return nil, err
		}
		doc.Read += n
	}
	if c.Empty() {
		return nil, fmt.Errorf("%s: nothing in it tells how a job is; expected recorder dumps, RAS answers, logs of "+
			"PyTorch or NCCL, stacks, or Inspector's files%s", strings.Join(sources, ", "), c.Unread())
	}
	doc.Verdict = *c.Judge()
	doc.Notes = append(doc.Notes, unanswered(doc.Asked)...)
	doc.Text = doctor.Secrets(doc.Text)
	for i := range doc.Evidence {
		doc.Evidence[i].Text = doctor.Secrets(doc.Evidence[i].Text)
	}
	doc.Findings = orEmpty(doc.Verdict.Findings())
	if len(doc.Findings) > 0 && len(q.Sources) > 0 && slices.Contains(doc.Signals, "log") {
		doc.Next = append(doc.Next, "Causes in the logs, such as GPU errors, links and settings: busbar doctor "+
			strings.Join(q.Sources, " "))
	}
	return doc, nil
}

// trigger has the ranks of this machine write their dumps. Pipes that were found without being asked for may have no
// reader.
func (q *Hang) trigger(e *Env, pipes []string) (int, error) {
	if q.Trigger != "" {
		pipes = append(pipes, q.Trigger)
	}
	told := 0
	for _, prefix := range pipes {
		if e.Trigger == nil {
			return 0, errors.New("--trigger cannot be asked for here")
		}
		n, err := e.Trigger(prefix)
		if told += n; err != nil && prefix == q.Trigger {
			return 0, err
		}
	}
	if told > 0 {
		e.note(fmt.Sprintf("%d ranks were told to write their dumps", told))
	}
	return told, nil
}

// pause waits, if there is anything to wait.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// hangSource reads a file, a folder or standard input into a case.
func (e *Env) hangSource(ctx context.Context, b *cluster.Budget, c *hang.Case, name string) (known int, err error) {
	err = e.eachInput(ctx, name, "the job", func(path string, in io.Reader, inFolder bool) error {
		err := unbroken(path, in, func(in io.Reader) error {
			n, err := c.Read(b, path, in)
			known += n
			return err
		})
		if inFolder && err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, cluster.ErrTooLarge) {
			e.note(err.Error())
			return nil
		}
		return err
	})
	return known, err
}

// answer is a RAS answer with the time it came, and what it says, unless others said it before: every answer is about
// the whole job.
type answer struct {
	ras.Answer

	at     time.Time
	size   int
	report *ras.Report
}

// ask asks all addresses a second time, and adds both answers. Those that did not answer would cost as much time again,
// and are asked only while a job is watched.
func (q *Hang) ask(ctx context.Context, e *Env, c *hang.Case, addrs []string, first []answer) (
	asked []hangAsked, second []answer, err error,
) {
	defer e.working("asking the RAS service again")()
	var well []string
	for _, a := range first {
		x := hangAsked{Addr: a.Addr, Bytes: a.size, Silent: a.Silent}
		if a.Err != nil {
			x.Error = a.Err.Error()
		} else {
			well = append(well, a.Addr)
		}
		if asked = append(asked, x); a.Silent > 0 {
			c.Silent(a.Addr)
		}
	}
	if !q.Watch {
		addrs = well
	}
	second = askAll(ctx, e, addrs)
	good := 0
	for _, a := range slices.Concat(first, second) {
		switch {
		case a.report != nil:
			c.AddRAS(a.report, a.at)
			good++
		case a.Err != nil && !errors.Is(err, errCut):
			err = a.Err
		}
	}
	switch {
	case good > 0:
		err = nil
	case err != nil && !errors.Is(err, errCut):
		err = failure.Cannot(fmt.Errorf("%w; the service listens on localhost unless NCCL_RAS_ADDR says otherwise, from "+
			"the first communicator on: on a node of the job run busbar hang --ras localhost", err))
	}
	return asked, second, err
}

// unanswered is a note about services that did not answer where others did. What was silent is told by the verdict.
func unanswered(list []hangAsked) []string {
	bad := slices.DeleteFunc(slices.Clone(list), func(a hangAsked) bool { return a.Error == "" || a.Silent > 0 })
	if len(bad) == 0 || len(bad) == len(list) {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d RAS services did not answer, first %s: %s.", len(bad), len(list), bad[0].Addr,
		bad[0].Error)}
}

// askAll asks several addresses at once, each for at most a few seconds, and reads the first two answers that are
// whole.
func askAll(ctx context.Context, e *Env, addrs []string) []answer {
	const each, all, atOnce, most = 1500 * time.Millisecond, 2500 * time.Millisecond, 64, 128 << 20
	ctx, stop := context.WithTimeout(ctx, all)
	defer stop()
	list := make([]answer, len(addrs))
	slots, room := make(chan struct{}, atOnce), ras.NewRoom(most)
	var wait sync.WaitGroup
	var mu sync.Mutex
	kept := 0
	for i := range addrs {
		slots <- struct{}{}
		wait.Go(func() {
			a := answer{Answer: ras.Ask(ctx, addrs[i], each, room), at: e.now()}
			mu.Lock()
			defer mu.Unlock()
			if a.size = len(a.Data); a.Err == nil && kept < 2 {
				if a.report, a.Err = ras.Read(a.Addr, a.Data); a.Err == nil {
					kept++
				} else {
					a.Err = fmt.Errorf("%w: %w", errCut, a.Err)
				}
			}
			a.Data = nil
			room.Free(a.size)
			list[i] = a
			<-slots
		})
	}
	wait.Wait()
	return list
}

// errCut marks an answer that begins as one and cannot be read.
var errCut = errors.New("RAS gave an answer that cannot be read")

// processes finds the ranks of the job of --pid.
func (q *Hang) processes(e *Env) (hang.Local, error) {
	if q.PID == 0 {
		return hang.Local{}, nil
	}
	if e.Processes == nil {
		return hang.Local{}, errors.New("--pid cannot be asked for here")
	}
	ranks, err := e.Processes(q.PID)
	return hang.NewLocal(ranks), err
}

// dumpTime is how long ranks get for writing their dumps. They look at their pipes once a second, and the first dump of
// a process that has not loaded torch._dynamo imports it, for seconds.
const dumpTime = 4100 * time.Millisecond

// awaitDumps waits until the ranks of this machine that were told to have written their dumps, all that run, and names
// those that have not.
func (q *Hang) awaitDumps(ctx context.Context, e *Env, l *hang.Local, told int, began time.Time,
	most time.Duration,
) (slow []int, err error) {
	for told > 0 && time.Since(began) < most {
		slow = nil
		for i := range l.Ranks {
			p := &l.Ranks[i]
			info, err := fs.Stat(e.files(), p.Dump)
			fresh := err == nil && info.ModTime().After(began.Add(-50*time.Millisecond))
			if p.Pipe != "" && !fresh && !strings.ContainsRune("TtZ", rune(p.State)) {
				slow = append(slow, p.Rank)
			}
		}
		if len(slow) == 0 && len(l.Ranks) > 0 {
			return nil, nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return slow, nil
}

// hangPods are the pods of a job of Kubernetes.
type hangPods struct {
	q    kube.Question
	list []kube.Pod
}

// pods lists those of --pods. Without credentials it says what to run where there are some.
func (q *Hang) pods(ctx context.Context, e *Env) (*hangPods, error) {
	if q.Pods == "" {
		return nil, nil
	}
	if e.Pods == nil {
		return nil, errors.New("--pods cannot be asked for here; give --hosts")
	}
	ask, err := kube.Parse(q.Pods)
	if err != nil {
		return nil, err
	}
	p := &hangPods{q: ask}
	p.list, err = e.Pods(ctx, ask)
	switch {
	case errors.Is(err, kube.ErrNone):
		return nil,
			failure.Cannot(fmt.Errorf("%w; where there are some, run\n  %s\n  %s", err, ask.Command(),
				p.within(&kube.Pod{Name: "POD"})))
	case err != nil:
		return nil, err
	case len(p.list) == 0:
		return nil, fmt.Errorf("--pods %s: no pod has these labels; %s lists them", q.Pods, ask.Command())
	case len(p.addrs()) == 0:
		return nil,
			failure.Cannot(fmt.Errorf("--pods %s: none of %s runs: %s", q.Pods, words.Plural(len(p.list), "pod"),
				strings.Join(p.idle(), "; ")))
	}
	return p, nil
}

// within is the command that asks from inside a pod, where the service listens on localhost by default.
func (p *hangPods) within(x *kube.Pod) string {
	at := "localhost"
	if port := rasPort(x); port != ras.DefaultPort {
		at += ":" + port
	}
	pod := x.Name
	if p.q.Namespace != "" {
		pod = "-n " + p.q.Namespace + " " + pod
	}
	return fmt.Sprintf("kubectl cp busbar %s:/tmp/busbar && kubectl exec %[1]s -- /tmp/busbar hang --ras %s", pod, at)
}

// rasPort is the port that a pod's container sets.
func rasPort(x *kube.Pod) string {
	if _, given, err := net.SplitHostPort(x.RAS); err == nil && given != "" {
		return given
	}
	return ras.DefaultPort
}

// addrs are the RAS services of the pods that run, at the port that their containers set.
func (p *hangPods) addrs() (list []string) {
	if p == nil {
		return nil
	}
	for i := range p.list {
		x := &p.list[i]
		if x.Phase != "Running" || net.ParseIP(x.IP) == nil {
			continue
		}
		list = append(list, net.JoinHostPort(x.IP, rasPort(x)))
	}
	return list
}

// idle are the pods that do not run, and those whose container ended before, with why.
func (p *hangPods) idle() (list []string) {
	for i := range p.list {
		x := &p.list[i]
		if x.Phase == "Running" && x.Reason == "" {
			continue
		}
		text := fmt.Sprintf("pod %s is %s", x.Name, strings.ToLower(x.Phase))
		if x.Node != "" {
			text += " on " + x.Node
		}
		if x.Reason != "" {
			text += " (" + x.Reason + ")"
		}
		list = append(list, text)
	}
	return list[:min(len(list), 8)]
}

// told adds the pods to an answer, and to an error what to run within them: the service listens on their localhost by
// default.
func (p *hangPods) told(doc *HangDoc, err error) (*HangDoc, error) {
	switch {
	case p == nil:
	case err == nil:
		doc.Pods = p.list
		doc.Notes = append(doc.Notes, p.idle()...)
	case errors.Is(err, failure.ErrCannot): // without one that runs nobody was asked
		first := &p.list[slices.IndexFunc(p.list, func(x kube.Pod) bool { return x.Phase == "Running" })]
		for _, text := range p.idle() {
			err = fmt.Errorf("%w; %s", err, text)
		}
		err = fmt.Errorf("%w\nwithin a pod it answers: %s; or start the job with NCCL_RAS_ADDR=0.0.0.0:%s", err,
			p.within(first), rasPort(first))
	}
	return doc, err
}
