package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// writeOut writes to a file, or to standard output where none is named.
func (e *env) writeOut(file string, write func(io.Writer) error) error {
	if file == "" || file == "-" {
		return write(e.stdout)
	}
	return e.writeFile(file, write)
}

// bytesOf writes data that is there already.
func bytesOf(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

// writeFile writes a file whole or not at all. A link is followed, an existing
// file keeps its mode, a new one gets what the umask allows, and what is no plain
// file (a pipe, a terminal, a device) is written to, never replaced.
func (e *env) writeFile(name string, write func(io.Writer) error) error {
	switch {
	case isStdout(name):
		return write(e.stdout)
	case isStderr(name):
		return write(e.stderr)
	}
	if err := e.fence.keeps(name); err != nil {
		return err
	}
	target, mode, through, err := destination(name)
	switch {
	case err != nil:
		return err
	case through:
		return writeThrough(name, write)
	}
	return e.replace(name, target, mode, write)
}

// writable tries whether writeFile could write, before something is done whose
// result goes there. It leaves nothing behind and changes nothing. No name is
// nothing to write.
func (e *env) writable(name string) error {
	if name == "" || isStdout(name) || isStderr(name) {
		return nil
	}
	if err := e.fence.keeps(name); err != nil {
		return err
	}
	target, _, through, err := destination(name)
	switch {
	case err != nil:
		return err
	case through:
		// To open it may wait for a reader, or be seen by one.
		if err := syscall.Access(name, 2); err != nil {
			return cannotWrite(name, err)
		}
		return nil
	}
	tmp, err := e.unfinished.begin(target)
	if err != nil {
		return cannotWrite(name, err)
	}
	defer e.unfinished.drop()
	if err := tmp.Close(); err != nil {
		return cannotWrite(name, err)
	}
	return nil
}

// destination is where a name leads: a file to replace, with the mode of the one
// that is there, or something that can only be written through.
func destination(name string) (target string, mode fs.FileMode, through bool, err error) {
	target, through, err = linkEnd(name)
	if err != nil {
		return "", 0, false, cannotWrite(name, err)
	}
	info, err := os.Stat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return target, 0, false, nil
	case err != nil:
		return "", 0, false, cannotWrite(name, err)
	case info.IsDir():
		return "", 0, false, fmt.Errorf("%s: a folder; give a file name in it", name)
	case through || !info.Mode().IsRegular():
		return target, 0, true, nil
	}
	// A file that may not be written may not be replaced either, though the right
	// to its folder would do for that.
	f, err := os.OpenFile(target, os.O_WRONLY, 0)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return "", 0, false, cannotWrite(name, err)
	}
	return target, info.Mode().Perm(), false, nil
}

// isStdout reports a name that stands for standard output.
func isStdout(name string) bool { return name == "-" || filepath.Clean(name) == "/dev/stdout" }

// isStderr reports a name that stands for standard error.
func isStderr(name string) bool { return filepath.Clean(name) == "/dev/stderr" }

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
		return cannotWrite(name, err)
	}
	if _, err := f.Write(b.Bytes()); err != nil {
		f.Close()
		return cannotWrite(name, err)
	}
	if err := f.Close(); err != nil {
		return cannotWrite(name, err)
	}
	return nil
}

// replace writes a file beside the target and then gives it the target's name.
// mode is that of the file it replaces, 0 when there is none.
func (e *env) replace(name, target string, mode fs.FileMode, write func(io.Writer) error) error {
	tmp, err := e.unfinished.begin(target)
	if err != nil {
		return cannotWrite(name, err)
	}
	defer e.unfinished.drop()
	out := &output{w: tmp}
	err = write(out)
	if out.err != nil { // the disk, not what was to be written
		err = cannotWrite(name, out.err)
	}
	if err != nil {
		tmp.Close()
		return err
	}
	if mode != 0 {
		if err := tmp.Chmod(mode); err != nil {
			tmp.Close()
			return cannotWrite(name, err)
		}
	}
	if err := tmp.Close(); err != nil {
		return cannotWrite(name, err)
	}
	if err := e.unfinished.finish(target); err != nil {
		return cannotWrite(name, err)
	}
	return nil
}

// cannotWrite names the file that the user gave: an error of the system may name
// a temporary one, or the end of a link.
func cannotWrite(name string, err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		err = p.Err
	case errors.As(err, &l):
		err = l.Err
	}
	return cannotError{fmt.Errorf("%s: cannot write there: %w", name, err)}
}
