package snapshot

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// entry is a file, a folder or a link.
type entry struct {
	fs.FileInfo
	data []byte
	link string
	kids []string // of a folder, names, unsorted
}

// newEntry makes an entry of a type of tar's.
func newEntry(name string, kind byte) *entry {
	return &entry{FileInfo: (&tar.Header{Name: name, Typeflag: kind}).FileInfo()}
}

// tree is an archive as a file system. Names are clean and relative.
type tree struct {
	entries map[string]*entry
}

// addEntry puts an archive's entry into the tree. Names that climb out are left out.
func (t *tree) addEntry(h *tar.Header, data []byte) {
	name := path.Clean(strings.TrimLeft(h.Name, "/"))
	if !fs.ValidPath(name) || name == "." {
		return
	}
	switch h.Typeflag {
	case tar.TypeDir:
		t.folder(name)
	case tar.TypeReg, tar.TypeSymlink:
		e := newEntry(name, h.Typeflag)
		e.data, e.link = data, h.Linkname
		t.put(name, e)
	}
}

func (t *tree) put(name string, e *entry) {
	dir := t.folder(path.Dir(name))
	if dir == nil {
		return
	}
	if old := t.entries[name]; old == nil {
		dir.kids = append(dir.kids, path.Base(name))
	} else if old.IsDir() {
		return
	}
	t.entries[name] = e
}

// folder finds or makes a folder; nil when a file is in the way.
func (t *tree) folder(name string) *entry {
	if e := t.entries[name]; e != nil {
		if !e.IsDir() {
			return nil
		}
		return e
	}
	up := t.folder(path.Dir(name))
	if up == nil {
		return nil
	}
	e := newEntry(name, tar.TypeDir)
	t.entries[name] = e
	up.kids = append(up.kids, path.Base(name))
	return e
}

// maxLinks bounds the links followed for one name.
const maxLinks = 40

// walk finds the entry of a name and where it is, following links in it; the last part's own
// link only when follow says so.
func (t *tree) walk(name string, follow bool) (string, *entry, error) {
	missing := &fs.PathError{Op: "find", Path: name, Err: fs.ErrNotExist}
	at, rest := ".", strings.Split(name, "/")
	for hops := 0; len(rest) > 0; {
		next := path.Join(at, rest[0])
		rest = rest[1:]
		e := t.entries[next] // none has a name that climbs out
		if e == nil {
			return "", nil, missing
		}
		if e.Mode()&fs.ModeSymlink != 0 && (len(rest) > 0 || follow) {
			if hops++; hops > maxLinks || path.IsAbs(e.link) {
				return "", nil, missing
			}
			rest = append(strings.Split(e.link, "/"), rest...)
			continue
		}
		at = next
	}
	return at, t.entries[at], nil
}

// Open opens a file or a folder.
func (t *tree) Open(name string) (fs.File, error) {
	at, e, err := t.walk(name, true)
	if err != nil {
		return nil, err
	}
	f := &file{entry: e, Reader: bytes.NewReader(e.data)}
	for _, k := range slices.Sorted(slices.Values(e.kids)) {
		f.list = append(f.list, fs.FileInfoToDirEntry(t.entries[path.Join(at, k)]))
	}
	return f, nil
}

// Lstat describes a name itself.
func (t *tree) Lstat(name string) (fs.FileInfo, error) {
	_, e, err := t.walk(name, false)
	return e, err
}

// ReadLink tells where a link leads.
func (t *tree) ReadLink(name string) (string, error) {
	_, e, err := t.walk(name, false)
	if err != nil {
		return "", err
	}
	if e.Mode()&fs.ModeSymlink == 0 {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	return e.link, nil
}

// file is an open file or folder.
type file struct {
	*entry
	*bytes.Reader
	list []fs.DirEntry
}

func (f *file) Stat() (fs.FileInfo, error) { return f.entry, nil }
func (f *file) Close() error               { return nil }

// ReadDir lists an open folder; all of it at once, since nobody here pages.
func (f *file) ReadDir(int) ([]fs.DirEntry, error) {
	list := f.list
	f.list = nil
	return list, nil
}
