// Package query answers busbar's questions. Every question is a struct whose fields have defaults where they are zero,
// every answer a document:
//
//	doc, err := query.Predict{Cluster: "dgx-h100:4", Size: "1G"}.Run(ctx, query.Env{})
//	fmt.Println(doc.Rows[0].Time, doc.Rows[0].Bottleneck.Text)
//
// # The questions
//
// Every type with a method Run or RunOn is one. Where to begin:
//   - what there is, and what will slow jobs down: [Map], [Audit]
//   - measurements, and what changed since: [Bench], [Diff], [Check]
//   - how long a collective or a training step takes, and what limits it: [Predict], [Step]
//   - parallel degrees, placement, launch files: [Plan], [Place]
//   - why a job is slow, broken or hung: [Doctor], [Hang]
//   - a fleet's nodes and jobs, through a server that Env.Fleet reaches: [Nodes], [Jobs]
//   - how accurate predictions are, and how to fit them: [Validate], [Calibrate]
//
// # Texts and values
//
// Fields are texts as the command line has them: Size: "64M", Op: "all_gather". Programs that have values write
// Op(coll.AllGather.String()), LayoutOf(2, 8), Recompute: workload.Full. The same structs are the flags of the commands
// and the parameters of the page of busbar serve.
//
// # Clusters and logs in memory
//
// Env.Files is where names of files are looked up: bytes in memory are an fstest.MapFS or any other fs.FS. A cluster
// that is a value is named by Env.Clusters: LoadCluster reads one, or hosts are put together from the node types of
// package hardware.
//
// # Documents
//
// The documents are what the commands print with --json. Fields are only ever added within a version (see Version), and
// JSON names keep their meaning and their unit: names end in _s, _bytes or _GBps where the number has a unit. A
// document is its data: one that was read from JSON says the same by Wrong, Undecided and Request, and package report
// prints and draws the same of it. A document that says that something is wrong with what was asked about has a method
// Wrong; where there is no document to say so, the error is ErrWrong.
//
// # Errors
//
// An error is about the question unless Cannot(err) says that it could not be answered: a file that cannot be read, a
// context that ended, one of Env's Limits, something of Env that is nil and that the question asks for (Doctor.Live), a
// peer that died. A file that is not there is bad input, as is anything that is wrong inside a file; errors.Is(err,
// fs.ErrNotExist) tells it from others. Commands end with exit code 2 for a bad question and 3 for one that could not
// be answered; busbar serve answers 400 and 422, and 503 where the time was up.
//
// An error about one parameter of a question is a *FieldError, which names it. Its text, too, names parameters as
// Params does (size, global-batch); Env.Flags asks for the flags of the command.
package query

import (
	"io/fs"

	"busbar.dev/finding"
	"busbar.dev/internal/failure"
)

// Version is that of the documents' shapes. It grows when a field changes its meaning or goes.
const Version = 1

// Cannot reports an error that is not the question's fault: one that is ErrCannot, or the end of a context.
func Cannot(err error) bool { return failure.Is(err) }

// ErrCannot is what errors are that are not the question's fault, for errors.Is (see Cannot, which knows contexts too);
// ErrWrong what errors are that say that something is wrong with what was asked about.
var (
	ErrCannot = failure.ErrCannot
	ErrWrong  = failure.ErrWrong
)

// FailOn is the least severity of a finding that makes a document's Wrong true, where it is not warn: note, error or
// never. It is part of the document, so that Wrong says the same wherever the document is read.
type FailOn struct {
	Least string `json:"fail_on,omitempty"`
}

// failOn keeps what was asked for.
func failOn(least string) FailOn {
	if least == finding.Warn.String() {
		return FailOn{}
	}
	return FailOn{least}
}

// severity is the least severity; ok is false for never.
func (f FailOn) severity() (least finding.Severity, ok bool) {
	if f.Least == "" {
		return finding.Warn, true
	}
	least, err := finding.ParseSeverity(f.Least)
	return least, err == nil
}

// in reports a finding that is at least as severe.
func (f FailOn) in(list []finding.Finding) bool {
	least, ok := f.severity()
	return ok && finding.AtLeast(list, least)
}

// missing is an error about a file that is not there, in words of its own.
type missing struct{ error }

func (m missing) Unwrap() error        { return m.error }
func (m missing) Is(target error) bool { return target == fs.ErrNotExist }
