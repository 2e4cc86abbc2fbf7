package query

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"busbar.dev/doctor/rates"
	"busbar.dev/finding"
	"busbar.dev/input"
	"busbar.dev/input/inspector"
	"busbar.dev/input/profile"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/unpack"
	"busbar.dev/predict"
)

// Jobs asks how fast the collectives of running jobs are, against what is expected of them, and who comes late to them.
type Jobs struct {
	Sources []string      `arg:"" optional:"" name:"path" page:"file" names:"files" help:"Rings of busbar's profiler plugin, files of NCCL's Inspector, and folders of them (default: the rings of /dev/shm)."`
	Cluster string        `short:"c" names:"cluster" placeholder:"CLUSTER" help:"Cluster to predict on: a preset (dgx-h100:4), a cluster file, or any file that map reads (default: this machine, where it has GPUs)."`
	NCCL    string        `name:"nccl" placeholder:"VERSION" help:"NCCL release, from 2.8 on (default: the newest known)."`
	Since   time.Duration `page:"-" default:"1m" least:"1s" most:"24h" help:"How far back to look, from the last operation on (default 1m)."`
	Watch   bool          `page:"-" help:"Read again and again, until interrupted."`
	Every   time.Duration `page:"-" default:"5s" least:"500ms" most:"1h" help:"Time between readings with --watch (default 5s)."`
	FailOn  string        `name:"fail-on" page:"-" placeholder:"SEVERITY" enum:"note,warn,error,never" default:"warn" help:"Lowest severity that makes the exit code 1: note, warn, error or never (default warn)."`
}

// JobsDoc is the answer to Jobs.
type JobsDoc struct {
	rates.Report

	Findings []finding.Finding `json:"findings"`
	Read     int               `json:"files_read"`
	Damaged  []string          `json:"damaged,omitempty"` // files that could not be read, and why
	Lost     uint64            `json:"lost,omitempty"`    // operations that a ring had no room for
	// Predicted names the cluster that expectations are of, empty where there are none; Unpredicted says why.
	Predicted   string `json:"predicted_on,omitempty"`
	Unpredicted string `json:"unpredicted,omitempty"`
	FailOn
	Noted
}

// Wrong reports a finding of the severity that was asked for, or a graver one.
func (d *JobsDoc) Wrong() bool {
	return d.in(d.Findings)
}

// check refuses a question that cannot be answered, before anything is read.
func (q *Jobs) check() error {
	if err := prepare(q); err != nil {
		return err
	}
	if !q.Watch {
		if err := unread(q, "every", "only --watch reads again"); err != nil {
			return err
		}
	}
	_, err := (&Env{}).parseNCCL(q.NCCL)
	return err
}

// localSamples are the calls that are compared of one rank, operation and size class.
const localSamples = 1 << 12

// Run reads and compares once.
func (q Jobs) Run(ctx context.Context, env Env) (doc *JobsDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := q.check(); err != nil {
		return nil, err
	}
	doc = &JobsDoc{FailOn: failOn(q.FailOn)}
	r := jobsReader{env: &env, doc: doc}
	sources := q.Sources
	if len(sources) == 0 {
		list, err := profile.Files(env.files(), profile.Folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, failure.Cannot(err)
		}
		if sources = list; len(list) == 0 {
			return nil,
				failure.Cannot(errors.New("no job here writes a ring (" + profile.Folder + "/busbar-*.ring): start its ranks " +
					"with busbar exec --profile, or give the folder of rings or of NCCL Inspector's files"))
		}
	}
	for _, name := range sources {
		if err := r.source(ctx, name); err != nil {
			return nil, err
		}
	}
	if doc.Read == 0 && len(doc.Damaged) > 0 {
		return nil, errors.New(strings.Join(doc.Damaged, "\n"))
	}
	if doc.Read == 0 {
		return nil, fmt.Errorf("%s: no rings of busbar's profiler plugin and no files of NCCL's Inspector in it",
			strings.Join(q.Sources, ", "))
	}
	joined, err := rates.Join(ctx, rates.Bounds{}, r.window(q.Since))
	if err != nil {
		return nil, err
	}
	doc.Report = *joined
	q.expect(ctx, &env, doc)
	if doc.Predicted == "" {
		if err := unread(&q, "nccl", "nothing is predicted: "+doc.Unpredicted); err != nil {
			return nil, err
		}
	}
	doc.Findings = doc.Report.Findings()
	for _, text := range doc.Damaged {
		name, _, _ := strings.Cut(text, ": ")
		doc.Findings = append(doc.Findings, finding.Finding{
			ID: "damaged-file:" + name, Kind: "damaged-file", Severity: finding.Warn, Confidence: 1, Where: name,
			Text: "This file could not be read, and its rank is not judged: " + text + ".",
			Fix:  "copy it again, or leave it out",
		})
	}
	slices.SortStableFunc(doc.Findings, finding.BySeverity)
	return doc, nil
}

// jobsReader collects rings and records, for the window is known when all were read.
type jobsReader struct {
	env     *Env
	doc     *JobsDoc
	rings   []*profile.Ring
	records [][]inspector.Record
}

func (r *jobsReader) source(ctx context.Context, name string) error {
	return r.env.eachFile(ctx, name, "the job", func(path string, inFolder bool) error {
		err := r.file(path)
		if inFolder && errors.Is(err, failure.ErrCannot) && !errors.Is(err, fs.ErrPermission) {
			r.env.note(err.Error()) // a ring that its job took away meanwhile
			return nil
		}
		return err
	})
}

// file reads one file; what is neither a ring nor Inspector's is passed over.
func (r *jobsReader) file(name string) error {
	f, err := r.env.files().Open(name)
	if err != nil {
		return failure.Cannot(err)
	}
	defer f.Close()
	head := make([]byte, 1<<14)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return failure.Cannot(err)
	}
	found := input.Find(head[:n], input.Rates)
	if len(found) == 0 {
		return nil
	}
	if r.doc.Read++; found[0].Name == input.Ring {
		return r.ring(name)
	}
	data, done, err := unpack.Whole(nil, io.MultiReader(bytes.NewReader(head[:n]), f))
	if err != nil {
		return failure.Cannot(err)
	}
	defer done()
	x, err := found[0].Read(nil, name, data)
	if list, ok := x.([]inspector.Record); ok {
		r.records = append(r.records, list)
	}
	return err
}

// ring reads a ring, which its job may take away meanwhile.
func (r *jobsReader) ring(name string) error {
	ring, err := profile.ReadFile(r.env.files(), name)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission):
		r.env.note(err.Error())
		r.doc.Read--
	case err != nil:
		r.doc.Damaged = append(r.doc.Damaged, err.Error())
		r.doc.Read--
	default:
		r.rings = append(r.rings, ring)
		r.doc.Lost += ring.Lost
	}
	return nil
}

// window is what happened last.
func (r *jobsReader) window(back time.Duration) *rates.Window {
	var last time.Time
	for _, x := range r.rings {
		if n := len(x.Ops); n > 0 && x.Ops[n-1].Launched.After(last) {
			last = x.Ops[n-1].Launched
		}
	}
	for _, list := range r.records {
		if n := len(list); n > 0 && time.UnixMicro(list[n-1].Time).After(last) {
			last = time.UnixMicro(list[n-1].Time)
		}
	}
	w := rates.NewWindow(localSamples)
	for _, x := range r.rings {
		w.AddRing(x, last.Add(-back))
	}
	for _, list := range r.records {
		w.AddInspector(list, last.Add(-back))
	}
	return w.Done()
}

// expect predicts every row. That some or all cannot be predicted is said, and no error: rates are known all the same.
func (q Jobs) expect(ctx context.Context, e *Env, doc *JobsDoc) {
	if q.Cluster == "" && e.Machine == nil {
		doc.Unpredicted = "no cluster was given (-c)"
		return
	}
	quiet := *e
	quiet.Note, quiet.Verbose = nil, nil
	of := rowPredictors(ctx, &quiet, &placement{cluster: q.Cluster}, q.NCCL)
	doc.Predicted, doc.Unpredicted = doc.Expect(of)
}

// rowPredictors predict the rows of jobs on a cluster, each layout made once.
func rowPredictors(ctx context.Context, e *Env, on *placement, release string,
) func(*rates.Row) (*predict.Predictor, error) {
	made, failed := map[Layout]*predict.Predictor{}, map[Layout]error{}
	return func(row *rates.Row) (*predict.Predictor, error) {
		l := LayoutOf(row.Shape())
		if made[l] == nil && failed[l] == nil && ctx.Err() == nil {
			place := *on
			place.layout = string(l)
			made[l], _, failed[l] = place.predictor(ctx, e, release)
		}
		return made[l], errors.Join(failed[l], ctx.Err())
	}
}
