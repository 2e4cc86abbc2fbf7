package web

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// uploads are the files that one question may name, and all that it may read of the server's disk: a name as whoever
// sent it knows it, and where the file lies.
type uploads map[string]string

// add puts a file in and gives the name it has there: its own, unless another has that already.
func (u uploads) add(name, path string) string {
	end := filepath.Ext(name)
	for n, free := 2, name; ; n++ {
		if have, taken := u[free]; !taken || have == path {
			u[free] = path
			return free
		}
		free = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, end), n, end)
	}
}

// Open opens one of the files; no other name is there.
func (u uploads) Open(name string) (fs.File, error) {
	path, ok := u[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist} // and not where it lay
	}
	return upload{f}, nil
}

// upload is a file whose errors do not tell where it lies.
type upload struct{ fs.File }

func (u upload) Read(p []byte) (int, error) {
	n, err := u.File.Read(p)
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return n, err
}
