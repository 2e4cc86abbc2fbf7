package query

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"busbar.dev/internal/failure"
)

// inputName is what errors call an input.
func inputName(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}

// measuredText reads a file of measurements.
func (e *Env) measuredText(name string) ([]byte, error) {
	if info, err := fs.Stat(e.files(), name); name != "-" && err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s: a folder; expected a file of measured points", name)
	}
	return e.readWhole(name)
}

// maxMeasured bounds a file of measurements.
const maxMeasured = 256 << 20

// readWhole reads a file of measurements, or standard input.
func (e *Env) readWhole(name string) ([]byte, error) {
	if name == "" {
		return nil, errors.New("no file given; expected what nccl-tests printed, or measured points as JSON lines")
	}
	in := e.stdin()
	if name != "-" {
		f, err := e.files().Open(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil,
				missing{fmt.Errorf("%s: no such file; expected what nccl-tests printed, or measured points as JSON lines", name)}
		case err != nil:
			return nil, failure.Cannot(err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxMeasured+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxMeasured {
		return nil, fmt.Errorf("%s: more than %d MiB of measurements", name, maxMeasured>>20)
	}
	return data, nil
}
