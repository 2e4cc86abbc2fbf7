package engine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// maxFile is the most that is read of a file: those of certificates and of where to meet are
// far smaller, and a device may have no end.
const maxFile = 1 << 20

var errLong = errors.New("longer than 1 MiB")

// readFile reads a small file whole.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s: %w", name, errLong)
	}
	return b, err
}

// plainFile reports a file to meet in that is there and is no plain one. Rank 0 puts a new
// file in its place: a device, which root may replace, would be lost to the whole host, and to
// open a pipe may take for ever.
func plainFile(name string) error {
	i, err := os.Stat(name)
	if err != nil || i.Mode().IsRegular() {
		return nil // opening it will say what else is wrong
	}
	what := "a device or a socket"
	switch {
	case i.IsDir():
		what = "a folder"
	case i.Mode()&fs.ModeNamedPipe != 0:
		what = "a pipe"
	}
	return fmt.Errorf("meet at %q: %s; expected the path of a plain file, which rank 0 writes", name, what)
}
