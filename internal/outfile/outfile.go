// Package outfile writes files whole or not at all.
//
// A file appears under its own name when all of it is written. What a killed process left is removed by the next writer
// in the same folder.
package outfile

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"busbar.dev/internal/failure"
	"busbar.dev/internal/osdep"
)

// Writer writes files, one at a time. The zero value is ready.
type Writer struct {
	mu        sync.Mutex
	name      string // of the file that is being written, until it is whole
	abandoned bool
}

// begin makes a file in the target's folder with the mode that the umask gives
// to new files; os.CreateTemp makes private ones.
func (w *Writer) begin(target string) (*os.File, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.abandoned {
		return nil, context.Canceled
	}
	removeStale(filepath.Dir(target))
	for try := 0; ; try++ {
		name := filepath.Join(filepath.Dir(target), fmt.Sprintf(".busbar-%d-%d", os.Getpid(), try))
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil {
			w.name = name
			_ = osdep.Lock(f, false) // for removeStale of others
		}
		if err == nil || !errors.Is(err, fs.ErrExist) || try == 100 {
			return f, err
		}
	}
}

// finish gives the file its own name.
func (w *Writer) finish(target string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.abandoned {
		return context.Canceled
	}
	if err := os.Rename(w.name, target); err != nil {
		return err
	}
	w.name = ""
	return nil
}

// drop removes the file when it was not finished.
func (w *Writer) drop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.name != "" {
		os.Remove(w.name)
		w.name = ""
	}
}

// Abandon removes the file and lets no other begin.
func (w *Writer) Abandon() {
	w.mu.Lock()
	w.abandoned = true
	w.mu.Unlock()
	w.drop()
}

// Write writes a file whole or not at all. A link is followed, an existing
// file keeps its mode and, where root writes, its owner, a new one gets what the umask allows, and what is no plain
// file (a pipe, a terminal, a device) is written to, never replaced.
func (w *Writer) Write(name string, write func(io.Writer) error) error {
	target, old, through, err := destination(name)
	switch {
	case err != nil:
		return err
	case through:
		return writeThrough(name, write)
	}
	return w.replace(name, target, old, write)
}

// Check tries whether Write could write, before something is done whose result goes
// there. It leaves nothing behind and changes nothing.
func (w *Writer) Check(name string) error {
	target, _, through, err := destination(name)
	switch {
	case err != nil:
		return err
	case through:
		// To open it may wait for a reader, or be seen by one.
		return CannotWrite(name, osdep.Writable(name))
	}
	tmp, err := w.begin(target)
	if err != nil {
		return CannotWrite(name, err)
	}
	defer w.drop()
	return CannotWrite(name, tmp.Close())
}

// destination is where a name leads: a file to replace, with the old one where
// there is one, or something that can only be written through.
func destination(name string) (target string, old fs.FileInfo, through bool, err error) {
	target, through, err = linkEnd(name)
	if err != nil {
		return "", nil, false, CannotWrite(name, err)
	}
	info, err := os.Stat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return target, nil, false, nil
	case err != nil:
	case info.IsDir():
		return "", nil, false, fmt.Errorf("%s: a folder; give a file name in it", name)
	case through || !info.Mode().IsRegular():
		return target, nil, true, nil
	default:
		// A file that may not be written may not be replaced either, though the right
		// to its folder would do for that.
		err = osdep.Writable(target)
	}
	return target, info, false, CannotWrite(name, err)
}

// linkEnd follows links to the name of a file that need not exist yet. through
// says that a link leads into /proc or /dev, to a file that a process holds open:
// to replace it would leave that process with another.
func linkEnd(name string) (target string, through bool, err error) {
	for range 40 {
		through = through || strings.HasPrefix(name, "/proc/") || strings.HasPrefix(name, "/dev/")
		to, err := os.Readlink(name)
		if err != nil || through {
			return name, through, nil // no link, or nothing there
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(name), to)
		}
		name = to
	}
	return "", false, errors.New("links that lead to each other without end")
}

// writeThrough writes to what a name stands for, after all of it is known.
func writeThrough(name string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return CannotWrite(name, err)
	}
	_, err = f.Write(b.Bytes())
	return CannotWrite(name, cmp.Or(err, f.Close()))
}

// replace writes a file beside the target and then gives it the target's name.
// old is the file it replaces, nil when there is none.
func (w *Writer) replace(name, target string, old fs.FileInfo, write func(io.Writer) error) error {
	tmp, err := w.begin(target)
	if err != nil {
		return CannotWrite(name, err)
	}
	defer w.drop()
	out := &watched{w: tmp}
	err = write(out)
	if out.err != nil { // the disk, not what was to be written
		err = CannotWrite(name, out.err)
	}
	if err != nil {
		tmp.Close()
		return err
	}
	if old != nil {
		if owner, known := osdep.Owner(old); known {
			_ = tmp.Chown(owner, -1)
		}
		if err := tmp.Chmod(old.Mode().Perm()); err != nil {
			tmp.Close()
			return CannotWrite(name, err)
		}
	}
	if err := tmp.Close(); err != nil {
		return CannotWrite(name, err)
	}
	return CannotWrite(name, w.finish(target))
}

// CannotWrite names the file that the user gave: an error of the system may name
// a temporary one, or the end of a link.
func CannotWrite(name string, err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &p):
		err = p.Err
	case errors.As(err, &l):
		err = l.Err
	}
	return failure.Cannot(fmt.Errorf("%s: cannot write there: %w", name, err))
}

// watched remembers that writing failed: that is the disk's fault, whatever the caller makes of it.
type watched struct {
	w   io.Writer
	err error
}

func (o *watched) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}
