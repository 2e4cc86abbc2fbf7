package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"busbar.dev/internal/failure"
	"busbar.dev/report"
	"busbar.dev/result"
)

// keepFlag is where measured results are kept.
type keepFlag struct {
	Output string `short:"o" placeholder:"FILE" help:"Append the results to FILE, one JSON object per line, for bench diff (GPU results also for calibrate and validate); - for standard output instead of the table."`
}

// refused says before the work that its results could not be kept.
func (f *keepFlag) refused(e *env, json bool) error {
	switch {
	case f.Output == "-" && json:
		return errors.New("-o - and --json both want standard output; take one of them")
	case f.Output == "" || f.Output == "-":
		return nil
	}
	if err := e.writable(f.Output); err != nil {
		return err
	}
	_, err := e.kept(f.Output)
	return err
}

// append adds results to the file.
func (f *keepFlag) append(e *env) func([]byte) error {
	return func(data []byte) error { return e.addTo(f.Output, data) }
}

// keepShown prints a document, unless its records have standard output, and keeps its results.
func keepShown[D any](e *env, o common, f *keepFlag, document D, text func(*report.Page, D), results result.Sweeps,
	add func([]byte) error,
) error {
	if o.JSON || !f.toStdout() {
		if err := show(e, o, document, text); err != nil {
			return err
		}
	}
	return f.keep(e, results, add)
}

// toStdout says that records go to standard output instead of a table.
func (f *keepFlag) toStdout() bool { return f.Output == "-" }

// keep gives results to whoever adds them to the file.
func (f *keepFlag) keep(e *env, list result.Sweeps, add func([]byte) error) error {
	switch f.Output {
	case "":
		return nil
	case "-":
		return result.Write(e.stdout, list...)
	}
	var b bytes.Buffer
	if err := result.Write(&b, list...); err != nil {
		return err
	}
	return add(b.Bytes())
}

// kept is what a file of records holds already; nothing where there is none yet.
func (e *env) kept(name string) ([]byte, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, nil // a device or a pipe holds nothing to be kept
	}
	data, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0:
		return nil, nil
	case err != nil:
		return nil, failure.Cannot(err)
	case !result.Match(data):
		return nil, fmt.Errorf("-o %s: the file is there and holds no results of busbar; give another name", name)
	}
	if data[len(data)-1] != '\n' {
		data = append(data, '\n')
	}
	return data, nil
}

// addTo adds to a file of records: afterwards it holds all of them or is as it was.
func (e *env) addTo(name string, more []byte) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return e.writeFile(name, bytesOf(more))
	}
	old, err := e.kept(name)
	if err != nil {
		return err
	}
	return e.writeFile(name, func(w io.Writer) error {
		_, err := w.Write(append(old, more...))
		return err
	})
}
