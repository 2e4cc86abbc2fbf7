// Package failure tells what busbar could not do from what it was asked wrongly.
//
// An error is the input's fault unless it says otherwise: a file that cannot be read, a peer that died, a right that is
// missing and a limit that was reached are marked with Cannot, wherever they occur, and become exit code 3 instead of 2.
package failure

import "errors"

// ErrCannot is what errors marked by Cannot are, for errors.Is.
var ErrCannot = errors.New("could not do it")

// Cannot marks an error that is not the input's fault. It keeps the error's text; nil stays nil.
func Cannot(err error) error {
	if err == nil {
		return nil
	}
	return cannot{err}
}

type cannot struct{ error }

func (c cannot) Unwrap() error        { return c.error }
func (c cannot) Is(target error) bool { return target == ErrCannot }
