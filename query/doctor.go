package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/doctor"
	"busbar.dev/doctor/cause"
	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/natural"
	"busbar.dev/internal/unpack"
)

// Doctor asks why a job is slow, broken or hung, from logs, outputs of tools, settings and sentences. Everything that
// is given is taken for one job.
type Doctor struct {
	Sources []string `arg:"" optional:"" name:"path" page:"file" names:"files" help:"Logs, outputs of tools, environments, scripts, notes; folders and archives of them; - for standard input; or a sentence about what is seen."`
	Live    bool     `page:"-" help:"Also read this machine: topology, limits, kernel modules and settings. Nothing is changed."`
	Rules   string   `page:"-" placeholder:"DIR" help:"Weigh the causes of this folder too: files NAME.yaml as docs/doctor.md describes them. One of a known name replaces it."`
	// Answers are those to questions of an earlier document, by their names; Skip names questions that nobody can answer.
	Answers map[string]bool `kong:"-" page:"-"`
	Skip    []string        `kong:"-" page:"-"`
	Mask    string          `placeholder:"WHAT" help:"addresses: also hide host and e-mail addresses. Secrets are always hidden."`
	FailOn  string          `name:"fail-on" page:"-" placeholder:"SEVERITY" default:"warn" help:"Lowest severity that makes the exit code 1: note, warn, error or never (default warn)."`
}

// DoctorDoc is the answer to Doctor: findings, the most likely root first.
type DoctorDoc struct {
	doctor.Document

	Report *doctor.Report `json:"-"`
	FailOn
	Noted
}

// Wrong reports a finding of the severity that was asked for, or a graver one, or a problem that was described and
// whose cause is unknown.
func (d *DoctorDoc) Wrong() bool {
	least, ok := d.severity()
	return ok && (d.Asked && d.Undecided && least <= finding.Warn || finding.AtLeast(d.Findings, least))
}

// Unexamined reports that nothing that was given is known, so that no finding says nothing.
func (d *DoctorDoc) Unexamined() bool { return !d.Report.Examined() && d.Least != "never" }

// Check refuses a question that cannot be answered, before anything is read.
func (q Doctor) Check() error {
	if err := prepare(&q); err != nil {
		return err
	}
	_, err := finding.ParseSeverity(q.FailOn)
	switch {
	case q.Mask != "" && q.Mask != "addresses":
		return fmt.Errorf("--mask %s: expected addresses; secrets are always hidden", q.Mask)
	case len(q.Sources) == 0 && !q.Live:
		return failure.In("path", errors.New("nothing to read: give files, folders, archives or - for standard input; "+
			"--live reads this machine"))
	case err != nil && q.FailOn != "never":
		return fmt.Errorf("--fail-on %s: expected note, warn, error or never", q.FailOn)
	}
	return nil
}

// Run reads all sources and examines them.
func (q Doctor) Run(ctx context.Context, env Env) (doc *DoctorDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	set, err := q.Read(ctx, env)
	if err != nil {
		return nil, err
	}
	return q.Weigh(env, set)
}

// Read reads all sources.
func (q Doctor) Read(ctx context.Context, env Env) (doc *evidence.Set, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := q.Check(); err != nil {
		return nil, err
	}
	r := evidence.NewReader()
	r.Budget = env.logBudget(ctx)
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

// Weigh examines what was read; it may be asked again with further answers.
func (q Doctor) Weigh(env Env, set *evidence.Set) (*DoctorDoc, error) {
	if err := prepare(&q); err != nil {
		return nil, err
	}
	report, err := q.weigh(&env, set)
	if err != nil {
		return nil, err
	}
	report.Mask(q.Mask == "addresses")
	return &DoctorDoc{Document: report.Document(), Report: report, FailOn: failOn(q.FailOn)}, nil
}

// weigh asks the doctor, with the user's causes beside the built-in ones.
func (q *Doctor) weigh(env *Env, set *evidence.Set) (*doctor.Report, error) {
	if q.Rules == "" && q.Answers == nil {
		return doctor.Examine(set), nil
	}
	var more []*cause.Cause
	if q.Rules != "" {
		list, err := cause.Load(env.files(), q.Rules)
		if err != nil {
			return nil, fmt.Errorf("--rules: %w", err)
		}
		more = list
	}
	m, err := doctor.NewModel(more...)
	if err != nil {
		return nil, err
	}
	return doctor.Weigh(m, set, q.Answers, q.Skip...), nil
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
	if name == "-" {
		return evidenceFrom(r, "standard input", e.stdin())
	}
	if _, err := fs.Stat(e.files(), name); err != nil && sentence(name) {
		return r.ReadSentence(name)
	} else if errors.Is(err, fs.ErrNotExist) {
		return missing{fmt.Errorf("%s: no such file or folder; expected files or folders, or a description of the problem "+
			"in quotes", name)}
	}
	read := 0
	err := e.eachFile(ctx, name, "the logs", func(path string, inFolder bool) error {
		err := e.evidenceFile(r, path)
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

func (e *Env) evidenceFile(r *evidence.Reader, name string) error {
	f, err := e.files().Open(name)
	if err != nil {
		return failure.Cannot(err)
	}
	defer f.Close()
	// a file that grows as fast as it is read has no end; those of /proc have no size
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		return evidenceFrom(r, name, io.LimitReader(f, info.Size()))
	}
	return evidenceFrom(r, name, f)
}

// evidenceFrom reads a stream. One that breaks off is not the input's fault.
func evidenceFrom(r *evidence.Reader, name string, in io.Reader) error {
	s := &stream{r: in}
	err := r.Read(name, s)
	if s.err != nil {
		return failure.Cannot(fmt.Errorf("%s: %w", name, s.err))
	}
	return err
}

// strangers warns of nodes whose inside one source describes and which no fabric names, as where a fabric calls its
// hosts otherwise: they would stand beside the fabric's own hosts, without a network.
func strangers(read []source) []cluster.Warning {
	inside, named := map[string]string{}, map[string]string{} // by the name that is compared
	var fabrics []string
	for i := range read {
		s := &read[i]
		gpus, links := false, false
		for _, f := range s.frags {
			links = links || len(f.Network.Links) > 0
			for h := range f.Hosts {
				t := f.TypeOf(h)
				gpus = gpus || t != nil && t.Count(cluster.GPU) > 0
			}
		}
		to := inside
		switch {
		case links && !gpus:
			to, fabrics = named, append(fabrics, s.word)
		case links || !gpus:
			continue
		}
		for _, f := range s.frags {
			for h := range f.Hosts {
				if name := f.Hosts[h].Name; name != "" {
					to[cluster.ShortHost(name)] = name
				}
			}
		}
	}
	if len(named) == 0 {
		return nil
	}
	var missing, theirs []string
	for short, name := range inside {
		if _, ok := named[short]; !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	for _, name := range named {
		theirs = append(theirs, name)
	}
	missing, theirs = natural.Sort(missing), natural.Sort(theirs)
	w := cluster.Warning{Text: fmt.Sprintf("does not name %s: how they reach the network is unknown", cutList(missing))}
	if len(missing) == len(inside) {
		w.Text = fmt.Sprintf("names none of %s, which other sources describe; its hosts are %s and are listed as further "+
			"nodes. Use its names before the =, as in %s=FILE",
			cutList(missing), cutList(theirs), theirs[0])
	}
	if len(fabrics) == 1 {
		w.Source = fabrics[0]
	} else {
		w.Text = "no fabric among the sources " + w.Text
	}
	return []cluster.Warning{w}
}

// cutList is a hostlist that fits a line.
func cutList(names []string) string {
	const most = 60
	list := cluster.FormatHosts(names)
	if len(list) <= most {
		return list
	}
	return fmt.Sprintf("%s and %d others", names[0], len(names)-1)
}
