package query

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"busbar.dev/internal/failure"
)

// maxFiles bounds a folder.
const maxFiles = 100000

// eachFile gives a file, or every file of a folder, to read. What may not be read in a folder is named and passed over; what
// names the folder that should have been given instead.
func (e *Env) eachFile(ctx context.Context, name, what string, read func(path string, inFolder bool) error) error {
	info, err := fs.Stat(e.files(), name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing{fmt.Errorf("%s: no such file or folder", name)}
	case err != nil:
		return failure.Cannot(err)
	}
	defer e.working("reading " + name)()
	if !info.IsDir() {
		return read(name, false)
	}
	files := 0
	return e.walk(name, func(path string, folder bool, err error) error {
		if err == nil && !folder {
			if files++; files > maxFiles {
				return fmt.Errorf("%s: more than %d files; give the folder of %s", name, maxFiles, what)
			}
			err = read(path, true)
		}
		if errors.Is(err, fs.ErrPermission) {
			e.note(path + ": may not be read; left out")
			err = nil
		}
		if err == nil {
			err = ctx.Err()
		}
		return err
	})
}

// walk visits a folder: the folders in it before their files. Links to files elsewhere count, as in the folders of containers'
// logs; those to folders do not, for they may go round. A visit of a folder that returns fs.SkipDir leaves it out.
func (e *Env) walk(name string, visit func(path string, folder bool, err error) error) error {
	if _, ok := e.files().(machineFiles); !ok {
		return fs.WalkDir(e.files(), name, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.Type().IsRegular() && !d.IsDir() {
				return nil
			}
			return visit(path, d != nil && d.IsDir(), err)
		})
	}
	root := name
	if to, err := filepath.EvalSymlinks(name); err == nil {
		root = to
	}
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		path = filepath.Join(name, strings.TrimPrefix(path, root))
		switch {
		case err != nil || d.IsDir():
		case d.Type()&fs.ModeSymlink != 0:
			if !fileElsewhere(path, root) {
				return nil
			}
		case !d.Type().IsRegular():
			return nil
		}
		return visit(path, d != nil && d.IsDir(), err)
	})
}

// fileElsewhere reports a link to a file that the walk through root does not meet
// by itself.
func fileElsewhere(link, root string) bool {
	to, err := filepath.EvalSymlinks(link)
	if err != nil {
		return false
	}
	if info, err := os.Stat(to); err != nil || !info.Mode().IsRegular() {
		return false
	}
	rel, err := filepath.Rel(root, to)
	return err != nil || rel == ".." || strings.HasPrefix(rel, "../")
}
