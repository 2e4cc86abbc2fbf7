// Package query answers busbar's questions. Every question is a struct whose zero value works, every answer a document:
//
//	doc, err := query.Predict{Cluster: "dgx-h100:4", Size: "1G"}.Run(ctx, query.Env{})
//	fmt.Println(doc.Rows[0].Time, doc.Rows[0].Bottleneck.Text)
//
// The same structs are the flags of the commands (their tags say how each is spelt, what it means, its default and its
// bounds) and the parameters of the page of busbar serve; the documents are what the commands print with --json. Package
// report turns documents into text and pictures.
//
// # Stability
//
// Fields of questions and documents are only ever added within a version of the documents (see Version), and JSON names
// keep their meaning and their unit: names end in _us, _s, _bytes or _GBps where the number has a unit. Fields that are left
// out of the JSON (`json:"-"`) are for package report and may change.
//
// # Errors
//
// An error is about the question unless errors.Is(err, ErrCannot) says that it could not be answered: a file that cannot be
// read, a limit, a machine that is not there. A document that says that something is wrong with what was asked about has a
// method Wrong; where there is no document to say so, the error is ErrWrong.
package query

import "busbar.dev/internal/failure"

// Version is that of the documents' shapes. It grows when a field changes its meaning or goes.
const Version = 1

// ErrCannot is what errors are that are not the question's fault, for errors.Is; ErrWrong what errors are that say that
// something is wrong with what was asked about.
var (
	ErrCannot = failure.ErrCannot
	ErrWrong  = failure.ErrWrong
)
