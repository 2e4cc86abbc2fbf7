package query

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"slices"
	"strings"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/doctor"
	"busbar.dev/doctor/hang"
	"busbar.dev/finding"
	"busbar.dev/input/ras"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/kube"
)

// Hang asks which ranks hold a job up and how: of its RAS service, of the dumps of its flight recorder, of logs, stacks and
// Inspector's files. Everything that is given is taken for one job.
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
	Watch   bool          `page:"-" help:"Ask again and again, and end when the job hangs or fails."`
	Every   time.Duration `page:"-" default:"10s" least:"1s" most:"1h" help:"Time between questions with --watch (default 10s)."`
	FailOn  string        `name:"fail-on" page:"-" placeholder:"SEVERITY" default:"warn" help:"Lowest severity that makes the exit code 1: note, warn, error or never (default warn)."`
}

// HangDoc is the answer to Hang.
type HangDoc struct {
	hang.Verdict

	Findings []finding.Finding `json:"findings"`
	Read     int               `json:"files_read"`
	Asked    []HangAsked       `json:"asked,omitempty"`
	Pods     []kube.Pod        `json:"pods,omitempty"`
	FailOn
}

// HangAsked is an address that was asked.
type HangAsked struct {
	Addr   string `json:"addr"`
	Bytes  int    `json:"bytes,omitempty"`
	Silent int    `json:"silent,omitempty"` // connections that were taken and never answered
	Error  string `json:"error,omitempty"`
}

// Wrong reports a verdict of the severity that was asked for, or a graver one.
func (d *HangDoc) Wrong() bool {
	return d.in(d.Findings)
}

// Undecided reports an answer that says neither that the job is healthy nor what is wrong with it.
func (d *HangDoc) Undecided() bool { return d.State == hang.Unknown && d.Least != "never" }

// Check refuses a question that cannot be answered, before anything is read.
func (q Hang) Check() error {
	if err := prepare(&q); err != nil {
		return err
	}
	_, err := finding.ParseSeverity(q.FailOn)
	switch {
	case err != nil && q.FailOn != "never":
		return fmt.Errorf("--fail-on %s: expected note, warn, error or never", q.FailOn)
	case !q.live() && len(q.Sources) == 0 && q.Dumps == "":
		return failure.In("path", errors.New("nothing to read and nobody to ask: give dumps, logs, stacks or RAS answers, or ask a job with --pid, --ras localhost, --hosts, --job or --pods"))
	case q.Watch && !q.live() && q.Dumps == "":
		return errors.New("--watch asks a running job; give --pid, --ras, --hosts, --job, --pods or --dumps")
	case q.Pods != "":
		_, err := kube.Parse(q.Pods)
		return err
	}
	return nil
}

func (q *Hang) live() bool {
	return len(q.RAS) > 0 || q.Hosts != "" || q.Job != "" || q.Pods != "" || q.PID != 0
}

// Run reads all sources, asks the job, and judges.
func (q Hang) Run(ctx context.Context, env Env) (doc *HangDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := q.Check(); err != nil {
		return nil, err
	}
	if err := prepare(&q); err != nil {
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
	if !q.Watch {
		return pods.told(q.once(ctx, &env, addrs, nil))
	}
	var last *HangDoc
	var before []answer
	for {
		doc, err := pods.told(q.once(ctx, &env, addrs, &before))
		switch {
		case errors.Is(err, failure.ErrCannot) && last != nil:
			env.note(err.Error()) // a job that ended, or a network that comes back
		case err != nil:
			return nil, err
		case last == nil || doc.State != last.State || doc.Kind != last.Kind:
			env.note(env.now().Format(time.TimeOnly) + " " + doc.Title())
		}
		if err == nil {
			if last = doc; finding.AtLeast(doc.Findings, finding.Error) {
				return doc, nil
			}
		}
		select {
		case <-ctx.Done():
			return last, ctx.Err()
		case <-time.After(q.Every):
		}
	}
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
	c.Unpacked = int(e.Limits.Unpacked)
	doc := &HangDoc{FailOn: failOn(q.FailOn)}
	here, err := q.processes(e)
	if err != nil {
		return nil, err
	}
	c.AddProcesses(here.ranks)
	began := time.Now()
	told, err := q.trigger(e, here.pipes)
	if err != nil {
		return nil, err
	}
	most := dumpTime
	if here.readRings(e, c) {
		most = q.Gap // the rings say what dumps would, of every rank
	}
	addrs = unique(slices.Concat(addrs, here.addrs))
	first := q.firstAnswers(ctx, e, addrs, before)
	if answered(first) && (before == nil || len(*before) == 0) {
		if err := pause(ctx, max(q.Gap-time.Since(began), q.Gap/4)); err != nil {
			return nil, err
		}
	}
	slow, err := q.awaitDumps(ctx, e, &here, told, began, most)
	if err != nil {
		return nil, err
	}
	if most == dumpTime {
		c.Slow(slow)
	}
	here.readRings(e, c)
	if len(addrs) > 0 {
		if err := q.ask(ctx, e, c, doc, addrs, first, before); err != nil {
			if len(q.Sources) == 0 && q.Dumps == "" && len(here.ranks) == 0 {
				return nil, err
			}
			if !errors.Is(err, failure.ErrCannot) {
				e.note(err.Error()) // an answer that is cut off
			}
		}
	}
	sources := slices.Concat(q.Sources, here.written(e))
	if q.Dumps != "" {
		sources = append(sources, q.Dumps)
	}
	for _, name := range sources {
		n, err := e.hangSource(ctx, c, name)
		if err != nil {
			return nil, err
		}
		doc.Read += n
	}
	if c.Empty() {
		if err := c.Torn(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s: nothing in it tells how a job is; expected recorder dumps, RAS answers, logs of PyTorch or NCCL, stacks, or Inspector's files", strings.Join(sources, ", "))
	}
	if err := c.Mixed(); err != nil {
		return nil, err
	}
	doc.Verdict = *c.Judge()
	doc.Notes = append(doc.Notes, unanswered(doc.Asked)...)
	doc.Text = doctor.Secrets(doc.Text)
	for i := range doc.Evidence {
		doc.Evidence[i].Text = doctor.Secrets(doc.Evidence[i].Text)
	}
	doc.Next = append(doc.Next, toDoctor(&doc.Verdict, q.Sources)...)
	doc.Findings = doc.Verdict.Findings()
	if doc.Findings == nil {
		doc.Findings = []finding.Finding{}
	}
	return doc, nil
}

// toDoctor is the command that finds causes in the same files: what a log says of GPUs, links and settings beside who waits for whom.
func toDoctor(v *hang.Verdict, sources []string) []string {
	if v.State == hang.Healthy || v.State == hang.Unknown || !slices.Contains(v.Signals, "log") || len(sources) == 0 || slices.Contains(sources, "-") {
		return nil
	}
	return []string{"Causes in the logs, such as GPU errors, links and settings: busbar doctor " + strings.Join(sources, " ")}
}

// trigger has the ranks of this machine write their dumps. Pipes that were found without being asked for may have no reader.
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
		if err != nil && prefix == q.Trigger {
			if len(q.Sources) == 0 && q.Dumps == "" && !q.live() {
				return 0, err
			}
			e.note(err.Error()) // of a job whose ranks are gone, the rest still tells something
		}
		told += n
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

// maxHangFile bounds one file.
const maxHangFile = 1 << 30

// hangSource reads a file, a folder or standard input into a case.
func (e *Env) hangSource(ctx context.Context, c *hang.Case, name string) (int, error) {
	if name == "-" {
		return e.hangFrom(c, "standard input", e.stdin(), 0)
	}
	known := 0
	err := e.eachFile(ctx, name, "the job", func(path string, inFolder bool) error {
		n, err := e.hangFile(c, path)
		known += n
		if inFolder && err != nil && !errors.Is(err, fs.ErrPermission) {
			e.note(err.Error())
			return nil
		}
		return err
	})
	return known, err
}

func (e *Env) hangFile(c *hang.Case, name string) (int, error) {
	f, err := e.files().Open(name)
	if err != nil {
		return 0, failure.Cannot(err)
	}
	defer f.Close()
	size := int64(0)
	if info, err := f.Stat(); err == nil {
		size = info.Size()
	}
	return e.hangFrom(c, name, f, size)
}

// hangFrom reads what is about so long; a job has thousands of dumps, and buffers that grow took a fifth of the time.
func (e *Env) hangFrom(c *hang.Case, name string, in io.Reader, size int64) (int, error) {
	var b bytes.Buffer
	b.Grow(int(max(0, min(size, maxHangFile))) + bytes.MinRead)
	_, err := b.ReadFrom(io.LimitReader(in, maxHangFile+1))
	data := b.Bytes()
	switch {
	case err != nil:
		return 0, failure.Cannot(fmt.Errorf("%s: %w", name, err))
	case len(data) > maxHangFile:
		return 0, fmt.Errorf("%s: more than %d MiB; give the part around the hang", name, maxHangFile>>20)
	}
	return c.AddFile(name, data)
}
