package query

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"busbar.dev/doctor"
	"busbar.dev/doctor/cause"
	"busbar.dev/doctor/evidence"
	"busbar.dev/input"
	"busbar.dev/input/nccltests"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/unpack"
	"busbar.dev/result"
)

// Doctor asks why a job is slow, broken or hung, from logs, outputs of tools, settings and sentences. Everything that
// is given is taken for one job.
type Doctor struct {
	Sources []string `arg:"" optional:"" name:"path" page:"file" names:"files" help:"Logs, outputs of tools, environments, scripts, notes; folders and archives of them; - for standard input; or a sentence about what is seen."`
	Live    bool     `page:"-" help:"Also read this machine: topology, limits, kernel modules and settings. Nothing is changed."`
	Rules   string   `page:"-" placeholder:"DIR" help:"Weigh the causes of this folder too: files NAME.yaml as docs/doctor.md describes them. One of a known name replaces it."`
	// Against is the job that a training log is held against; nil: none. The page names its cluster and model alone.
	Against *Job   `kong:"-" page:"-"`
	On      string `kong:"-" name:"on" page:"c" names:"cluster" placeholder:"CLUSTER" help:"Cluster that a training log or a table is compared on."`
	Of      string `kong:"-" name:"of" page:"m" names:"model" placeholder:"MODEL" help:"Model that the log is of."`
	Mask    string `placeholder:"WHAT" help:"addresses: also hide host and e-mail addresses. Secrets are always hidden."`
	FailOn  string `name:"fail-on" page:"-" placeholder:"SEVERITY" enum:"note,warn,error,never" default:"warn" help:"Lowest severity that makes the exit code 1: note, warn, error or never (default warn)."`
}

// DoctorDoc is the answer to Doctor: findings, the most likely root first.
type DoctorDoc struct {
	*doctor.Report
	Predicted *StepRow `json:"predicted,omitempty"` // of a training log
	FailOn
	Noted
}

// Wrong reports a finding of the severity that was asked for, or a graver one, or a fault that was described.
func (d *DoctorDoc) Wrong() bool {
	least, ok := d.severity()
	return ok && d.Report.Wrong(least)
}

// Unexamined reports that nothing that was given is known, so that no finding says nothing.
func (d *DoctorDoc) Unexamined() bool { return !d.Examined() && d.Least != "never" }

// check refuses a question that cannot be answered, before anything is read.
func (q *Doctor) check() error {
	if err := prepare(q); err != nil {
		return err
	}
	switch {
	case q.Mask != "" && q.Mask != "addresses":
		return fmt.Errorf("--mask %s: expected addresses; secrets are always hidden", q.Mask)
	case len(q.Sources) == 0 && !q.Live:
		return failure.In("path", errors.New("nothing to read: give files, folders, archives or - for standard input; "+
			"--live reads this machine"))
	}
	return nil
}

// Kind is what the sources are: "trace" where most are a profiler's, "measured" where the only one is a table of bench
// or nccl-tests, which Trace and DoctorBench are for; else "doctor". A log around a table is measured where a cluster
// is given to hold it against. Standard input is looked at where it is buffered.
func (q Doctor) Kind(ctx context.Context, env Env, cluster string) string {
	var traces, tables, others int
	look := func(_ string, in io.Reader, inFolder bool) error {
		r, ok := in.(*bufio.Reader)
		if !ok {
			var err error
			if r, _, err = unpack.Plain(env.logBudget(ctx), in); err != nil {
				return err
			}
		}
		head, _ := r.Peek(1 << 16) // what is shorter is all there is
		has := func(text string) bool { return bytes.Contains(head, []byte(text)) }
		switch {
		case len(input.Find(head, input.Trace)) > 0:
			traces++
		case inFolder:
			others++
		case result.Match(head),
			nccltests.Match(head) && hasRows(head) && (cluster != "" ||
				!slices.ContainsFunc([]string{"NCCL INFO", "NCCL WARN", "failure", "died", "Traceback"}, has)),
			bytes.HasPrefix(head, []byte("{")) && (has(`"bus_bw"`) || has(`"time_us"`) || has(`"time_s"`)):
			tables++
		default:
			others++
		}
		return nil
	}
	for _, name := range q.Sources {
		if err := env.eachInput(ctx, name, "the sources", look); err != nil {
			others++
		}
	}
	switch {
	case traces > others+tables:
		return "trace"
	case tables == 1 && traces+others == 0:
		return "measured"
	}
	return "doctor"
}

// hasRows reports a table of nccl-tests that got beyond its head: one of a run that hangs is no measurement.
func hasRows(text []byte) bool {
	out, err := nccltests.ReadOutput("", bytes.NewReader(text))
	return err == nil && slices.ContainsFunc(out.Tables, func(t nccltests.Table) bool { return len(t.Sweeps) > 0 })
}

// Run reads all sources and examines them.
func (q Doctor) Run(ctx context.Context, env Env) (doc *DoctorDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := q.check(); err != nil {
		return nil, err
	}
	if q.Against == nil && q.On+q.Of != "" {
		q.Against = &Job{Cluster: q.On, Model: q.Of}
	}
	var more []*cause.Cause // the user's, beside the built-in ones
	if q.Rules != "" {
		if more, err = cause.Load(env.files(), q.Rules); err != nil {
			return nil, fmt.Errorf("--rules: %w", err)
		}
	}
	m, err := doctor.NewModel(more...)
	if err != nil {
		return nil, err
	}
	set, err := q.read(ctx, &env, m.LinePatterns()...)
	if err != nil {
		return nil, err
	}
	if q.Against != nil && q.Against.Cluster != "" {
		quiet := env
		quiet.Note, quiet.Verbose = nil, nil
		if set.Given, err = LoadCluster(ctx, quiet, q.Against.Cluster); err != nil {
			return nil, err
		}
	}
	report := doctor.Weigh(m, set)
	report.Mask(q.Mask == "addresses")
	doc = &DoctorDoc{Report: report, FailOn: failOn(q.FailOn)}
	if q.Against != nil {
		err = doc.against(ctx, &env, *q.Against, set)
	}
	return doc, err
}

// read reads all sources, and looks for patterns of the user's causes besides.
func (q *Doctor) read(ctx context.Context, env *Env, patterns ...*regexp.Regexp) (*evidence.Set, error) {
	r := evidence.NewReader()
	r.Budget, r.Patterns = env.logBudget(ctx), patterns
	for _, name := range q.Sources {
		if err := env.evidence(ctx, r, name); err != nil {
			return nil, err
		}
	}
	if q.Live {
		if err := env.liveEvidence(ctx, r); err != nil {
			return nil, err
		}
	}
	return r.Set()
}

// liveEvidence reads this machine: its topology as map does, what the kernel says,
// and the environment.
func (e *Env) liveEvidence(ctx context.Context, r *evidence.Reader) error {
	if e.Machine == nil || e.State == nil {
		return failure.Cannot(errors.New("--live cannot be asked for here; run busbar doctor --live on the machine"))
	}
	frags, err := e.Machine(ctx)
	if err != nil {
		return err
	}
	for _, f := range frags {
		r.Fragment(f)
	}
	names, texts := e.State()
	for i, name := range names {
		if err := r.ReadOutput(name, strings.NewReader(texts[i])); err != nil {
			return err
		}
	}
	return nil
}

// sentence reports an argument that is no file's name but what somebody says.
func sentence(arg string) bool {
	return len(strings.Fields(arg)) > 1 && !strings.HasPrefix(arg, "/") && !strings.HasPrefix(arg, "./")
}

// evidence reads a file, a folder or standard input.
func (e *Env) evidence(ctx context.Context, r *evidence.Reader, name string) error {
	switch _, err := fs.Stat(e.files(), name); {
	case name == "-":
	case err != nil && sentence(name):
		return r.ReadSentence(name)
	case errors.Is(err, fs.ErrNotExist):
		return missing{fmt.Errorf("%s: no such file or folder; expected files or folders, or a description of the problem "+
			"in quotes", name)}
	}
	read := 0
	err := e.eachInput(ctx, name, "the logs", func(path string, in io.Reader, inFolder bool) error {
		// a file that grows as fast as it is read has no end; those of /proc have no size
		if f, ok := in.(fs.File); ok {
			if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
				in = io.LimitReader(f, info.Size())
			}
		}
		err := unbroken(path, in, func(in io.Reader) error { return r.Read(path, in) })
		if err == nil {
			read++
		}
		// Without a log that xz packed the rest may look healthy; a picture or a core dump among the logs is no log.
		if inFolder && err != nil && !errors.Is(err, failure.ErrCannot) && !errors.Is(err, unpack.ErrXZ) {
			if e.Verbose != nil {
				e.Verbose("note: " + err.Error())
			}
			return nil
		}
		return err
	})
	if err == nil && read == 0 {
		return fmt.Errorf("%s: no text in this folder that can be read", name)
	}
	return err
}
