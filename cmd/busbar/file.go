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
)

// writeFile writes a file whole or not at all. A link is followed, an existing
// file keeps its mode, a new one gets what the umask allows, and what is no plain
// file (a pipe, a terminal, a device) is written to, never replaced.
func (e *env) writeFile(name string, write func(io.Writer) error) error {
	switch {
	case isStdout(name):
		return write(e.stdout)
	case filepath.Clean(name) == "/dev/stderr":
		return write(e.stderr)
	}
	target, through, err := linkEnd(name)
	if err != nil {
		return cannotWrite(name, err)
	}
	info, err := os.Stat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return e.replace(name, target, 0, write)
	case err != nil:
		return cannotWrite(name, err)
	case info.IsDir():
		return fmt.Errorf("%s: a folder; give a file name in it", name)
	case through || !info.Mode().IsRegular():
		return writeThrough(name, write)
	}
	// A file that may not be written may not be replaced either, though the right
	// to its folder would do for that.
	f, err := os.OpenFile(target, os.O_WRONLY, 0)
	if err != nil {
		return cannotWrite(name, err)
	}
	if err := f.Close(); err != nil {
		return cannotWrite(name, err)
	}
	return e.replace(name, target, info.Mode().Perm(), write)
}

// isStdout reports a name that stands for standard output.
func isStdout(name string) bool { return name == "-" || filepath.Clean(name) == "/dev/stdout" }

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
	if err := write(tmp); err != nil {
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
