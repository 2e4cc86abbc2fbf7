// Package failure tells what busbar could not do from what it was asked wrongly.
//
// An error is the input's fault unless it says otherwise: a file that cannot be read, a peer that died, a right that is
// missing and a limit that was reached are marked with Cannot, wherever they occur, and become exit code 3 instead of
// 2. A question whose context ended is no fault of its own either, see Is.
package failure

import (
	"context"
	"errors"
)

// ErrCannot is what errors marked by Cannot are, for errors.Is; ErrWrong what those marked by Wrong are.
var (
	ErrCannot = errors.New("could not do it")
	ErrWrong  = errors.New("something is wrong")
)

// Cannot marks an error that is not the input's fault. It keeps the error's text; nil stays nil.
func Cannot(err error) error { return Mark(err, ErrCannot) }

// Wrong marks an error that is the answer: what was asked about is wrong. It becomes exit code 1.
func Wrong(err error) error { return Mark(err, ErrWrong) }

// Is reports an error that is not the input's fault: one marked by Cannot, or the end of a context.
func Is(err error) bool {
	return errors.Is(err, ErrCannot) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// In says which parameter of a question an error is about: one that its text does not name by a flag. It keeps the
// error's text. An error that says it already, and the end of a context, which is about none, stay as they are.
func In(field string, err error) error {
	var named interface{ Field() string }
	if err == nil || errors.As(err, &named) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return inField{err, field}
}

type inField struct {
	error
	field string
}

func (f inField) Field() string { return f.field }
func (f inField) Unwrap() error { return f.error }

// Mark makes an error one that errors.Is finds to be another as well. It keeps the error's text; nil stays nil.
func Mark(err, as error) error {
	if err == nil {
		return nil
	}
	return marked{err, as}
}

type marked struct {
	error
	as error
}

func (m marked) Unwrap() error        { return m.error }
func (m marked) Is(target error) bool { return target == m.as }
