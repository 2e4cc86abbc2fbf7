package sysfs

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing/fstest"
)

// linkFS is files in memory with symbolic links that may form circles, as a
// kernel resolves them: forty links and no more. (fstest.MapFS follows a circle
// for ever.)
type linkFS struct {
	files fstest.MapFS
	links map[string]string
}

// grow makes a linkFS from lines "path = contents" (| is a new line) and
// "path -> target".
func grow(text string) linkFS {
	l := linkFS{fstest.MapFS{}, map[string]string{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, to, ok := strings.Cut(line, " -> "); ok && fs.ValidPath(name) {
			l.links[name] = to
		} else if name, data, ok := strings.Cut(line, " = "); ok && fs.ValidPath(name) {
			l.files[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(data, "|", "\n") + "\n"), Mode: 0o444}
		}
	}
	return l
}

// resolve follows the links in a path, all but the last part's when last is false.
func (l linkFS) resolve(op, name string, last bool) (string, error) {
	todo := strings.Split(name, "/")
	at, followed := ".", 0
	for i := 0; i < len(todo); i++ {
		next := path.Join(at, todo[i])
		to, ok := l.links[next]
		if !ok || !last && i == len(todo)-1 {
			at = next
			continue
		}
		if followed++; followed > 40 || len(to) > 4096 {
			return "", &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
		}
		todo, i = append(strings.Split(to, "/"), todo[i+1:]...), -1
	}
	if !fs.ValidPath(at) {
		return "", &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return at, nil
}

func (l linkFS) Open(name string) (fs.File, error) {
	at, err := l.resolve("open", name, true)
	if err != nil {
		return nil, err
	}
	return l.files.Open(at)
}

func (l linkFS) Stat(name string) (fs.FileInfo, error) {
	at, err := l.resolve("stat", name, true)
	if err != nil {
		return nil, err
	}
	return fs.Stat(l.files, at)
}

func (l linkFS) Lstat(name string) (fs.FileInfo, error) { return l.Stat(name) }

func (l linkFS) ReadLink(name string) (string, error) {
	at, err := l.resolve("readlink", name, false)
	if err != nil {
		return "", err
	}
	if to, ok := l.links[at]; ok {
		return to, nil
	}
	return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
}

func (l linkFS) ReadDir(name string) ([]fs.DirEntry, error) {
	at, err := l.resolve("readdir", name, true)
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(l.files, at)
	for link := range l.links {
		if path.Dir(link) == at {
			entries = append(entries, entry(path.Base(link)))
			err = nil
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// entry is a link in a folder's list.
type entry string

func (e entry) Name() string               { return string(e) }
func (e entry) IsDir() bool                { return false }
func (e entry) Type() fs.FileMode          { return fs.ModeSymlink }
func (e entry) Info() (fs.FileInfo, error) { return nil, fs.ErrInvalid }
