package main

import (
	"io"
	"path/filepath"
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

// into writes data to a file.
func (e *env) into(name string) func([]byte) error {
	return func(data []byte) error { return e.writeFile(name, bytesOf(data)) }
}

// writeFile writes a file whole or not at all, or to a stream where the name stands for one.
func (e *env) writeFile(name string, write func(io.Writer) error) error {
	switch {
	case isStdout(name):
		return write(e.stdout)
	case isStderr(name):
		return write(e.stderr)
	}
	return e.files.Write(name, write)
}

// writable tries whether writeFile could write, before something is done whose
// result goes there. No name is nothing to write.
func (e *env) writable(name string) error {
	if name == "" || isStdout(name) || isStderr(name) {
		return nil
	}
	return e.files.Check(name)
}

// isStdout reports a name that stands for standard output.
func isStdout(name string) bool { return name == "-" || filepath.Clean(name) == "/dev/stdout" }

// isStderr reports a name that stands for standard error.
func isStderr(name string) bool { return filepath.Clean(name) == "/dev/stderr" }
