package web

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"busbar.dev/internal/lazyre"
)

// Bounds of what people send.
const (
	maxUpload  = 200 << 20
	maxShelf   = 1 << 30
	maxParts   = 2000            // files of an upload, and uploads
	uploadTime = 5 * time.Minute // it may take to arrive
)

// uploadStore keeps what was uploaded (a cluster's descriptions, a model's config, a job's logs) under the hash of what
// it holds, so that an address that names it can be shared. The oldest of who has sent the most make room for new ones,
// so that nobody drives out what others sent.
type uploadStore struct {
	dir string // of uploads, each a folder
	tmp string // of those that arrive

	mu    sync.Mutex        // guards following
	owner map[string]string // the token that sent an upload, by its folder; of those from before this start nobody's
}

// newUploadStore makes the folders, and removes what a server that was killed left of
// requests.
func newUploadStore(data string) (*uploadStore, error) {
	s := &uploadStore{dir: filepath.Join(data, "uploads"), tmp: filepath.Join(data, "tmp"), owner: map[string]string{}}
	if err := os.RemoveAll(s.tmp); err != nil {
		return nil, err
	}
	for _, d := range []string{s.dir, s.tmp} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	return s, nil
}

var (
	uploadWord = lazyre.New(`^@([0-9a-f]{32})(:[0-9]{1,6})?$`)
	strange    = lazyre.New(`[^A-Za-z0-9._+-]+`)
)

// safeName is a file name without anything that could lead elsewhere.
func safeName(name string) string {
	name = strings.ReplaceAll(name, "\\", "/")
	name = strange.ReplaceAllString(name[strings.LastIndexByte(name, '/')+1:], "_")
	name = strings.TrimLeft(name[max(0, len(name)-80):], ".-")
	if name == "" {
		return "file"
	}
	return name
}

// freeName is a name that is not taken: the name itself, or with a number.
func freeName(name string, taken func(name string) bool) string {
	end := filepath.Ext(name)
	free := name
	for n := 2; taken(free); n++ {
		free = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, end), n, end)
	}
	return free
}

// uploads are the files and folders that one question may name, and all that it may read of the server's disk: a name
// as whoever sent it knows it, and where it lies.
type uploads map[string]string

// add puts a file or folder in and gives the name it has there: its own, unless another has that already.
func (u uploads) add(name, path string) string {
	name = freeName(name, func(name string) bool { have, taken := u[name]; return taken && have != path })
	u[name] = path
	return name
}

// Open opens one of the files, or what lies in one of the folders; no other name is there. Errors do not tell where.
func (u uploads) Open(name string) (fs.File, error) {
	first, rest, _ := strings.Cut(name, "/")
	f, err := (*os.File)(nil), fs.ErrNotExist
	if path, ok := u[first]; ok && fs.ValidPath(name) {
		f, err = os.Open(filepath.Join(path, rest))
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return f, nil
}

// find puts what a word such as @3f…:4 names into a question's files, and gives the word that the question has for
// it. An upload of several files is their folder.
func (s *uploadStore) find(word string, into uploads) (string, error) {
	m := uploadWord.FindStringSubmatch(word)
	if m == nil {
		return "", fmt.Errorf("%.60q: expected an upload as POST /api/files names it, such as @ and 32 digits", word)
	}
	folder := filepath.Join(s.dir, m[1])
	list, err := os.ReadDir(folder)
	if err != nil || len(list) == 0 {
		return "", fmt.Errorf("the upload %s is not here any more; send the file again", m[0])
	}
	now := time.Now()
	_ = os.Chtimes(folder, now, now) // what is used stays
	if len(list) > 1 {
		return into.add("upload", folder) + m[2], nil
	}
	name := list[0].Name()
	return into.add(name, filepath.Join(folder, name)) + m[2], nil
}

// arriving is an upload whose files are written as they come: none is in memory whole.
type arriving struct {
	dir   string
	hash  hash.Hash
	names []string
	size  int64
}

// add takes one file; empty ones count for nothing.
func (a *arriving) add(name string, data io.Reader) error {
	if len(a.names) >= maxParts {
		return fmt.Errorf("more than %d files; send an archive of them", maxParts)
	}
	name = freeName(safeName(name), func(name string) bool { return slices.Contains(a.names, name) })
	path := filepath.Join(a.dir, name)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, _ = io.WriteString(a.hash, name+"\x00")
	size, err := io.Copy(io.MultiWriter(f, a.hash), data)
	if err = errors.Join(err, f.Close()); err != nil || size == 0 {
		return errors.Join(err, os.Remove(path))
	}
	fmt.Fprintf(a.hash, "\x00%d\x00", size)
	a.names, a.size = append(a.names, name), a.size+size
	return nil
}

// read takes what a request brings: the body as one file, or the files of a form; its fields are files of words.
func (a *arriving) read(r *http.Request) error {
	form, err := r.MultipartReader()
	if errors.Is(err, http.ErrNotMultipart) {
		return a.add(r.URL.Query().Get("name"), r.Body)
	}
	for parts := 0; err == nil && parts <= maxParts; parts++ { // empty ones too
		p, end := form.NextPart()
		if end == io.EOF {
			return nil
		}
		if err = end; err == nil && p.FileName() == "" {
			err = a.add("pasted.txt", p)
		} else if err == nil {
			err = a.add(p.FileName(), p)
		}
	}
	if _, e := r.Body.Read(make([]byte, 1)); tooLarge(e) {
		return e // and not what is wrong with a form that was cut off
	}
	return err
}

// keep puts an upload of a client on the shelf.
func (s *uploadStore) keep(client string, read func(*arriving) error) (id string, up *arriving, err error) {
	up = &arriving{hash: sha256.New()}
	if up.dir, err = os.MkdirTemp(s.tmp, "u-"); err != nil {
		return "", nil, err
	}
	defer os.RemoveAll(up.dir)
	if err := read(up); err != nil || up.size == 0 {
		return "", up, err
	}
	id = hex.EncodeToString(up.hash.Sum(nil)[:16])
	s.mu.Lock()
	defer s.mu.Unlock()
	folder := filepath.Join(s.dir, id)
	if _, err := os.Stat(folder); err == nil {
		return "@" + id, up, nil
	}
	if err := s.makeRoom(client, up.size); err != nil {
		return "", up, err
	}
	s.owner[id] = client
	return "@" + id, up, os.Rename(up.dir, folder)
}

// makeRoom removes uploads until there is room for more of a client: the oldest of whoever has the most. The caller
// holds mu.
func (s *uploadStore) makeRoom(client string, need int64) error {
	type old struct {
		id   string
		at   time.Time
		size int64
	}
	var all []old
	total := need
	held := map[string]int64{client: need}
	list, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, d := range list {
		info, err := d.Info()
		if err != nil {
			return err
		}
		size, _ := weigh(filepath.Join(s.dir, d.Name()))
		o := old{d.Name(), info.ModTime(), max(size, maxShelf/maxParts)} // at least: there are only so many
		total += o.size
		held[s.owner[o.id]] += o.size
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b old) int { return a.at.Compare(b.at) })
	for total > maxShelf && len(all) > 0 {
		most := client
		for c, n := range held {
			if n > held[most] {
				most = c
			}
		}
		i := max(0, slices.IndexFunc(all, func(o old) bool { return s.owner[o.id] == most }))
		o := all[i]
		if err := os.RemoveAll(filepath.Join(s.dir, o.id)); err != nil {
			return err
		}
		total -= o.size
		held[s.owner[o.id]] -= o.size
		delete(s.owner, o.id)
		all = slices.Delete(all, i, i+1)
	}
	return nil
}

// upload answers POST /api/files.
func (s *Server) upload(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadTime)) // where the connection has one
	leave, ok := s.sending.take(clientIn(r.Context()), 1)
	if !ok {
		w.Header().Set("Connection", "close") // or what is still to come would be waited for
		busy(w, "too many uploads arrive at the same time; try again in a moment")
		return
	}
	defer leave()
	id, up, err := s.shelf.keep(clientIn(r.Context()), func(a *arriving) error { return a.read(r) })
	var disk *fs.PathError
	switch {
	case tooLarge(err):
		Fail(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("more than %d MiB; send logs of a few ranks", maxUpload>>20))
	case errors.As(err, &disk):
		Fail(w, http.StatusInternalServerError, "the upload could not be kept: "+reason(err))
	case err != nil:
		Fail(w, http.StatusBadRequest, "the upload broke off: "+err.Error())
	case up.size == 0:
		Fail(w, http.StatusBadRequest, "nothing to read; expected a file that is not empty: curl -F file=@site.yaml, or "+
			"the file as the body: curl --data-binary @site.yaml")
	default:
		Reply(w, map[string]any{"id": id, "name": up.names[0], "files": len(up.names), "bytes": up.size})
	}
}

func tooLarge(err error) bool {
	var most *http.MaxBytesError
	return errors.As(err, &most)
}

// reason is an error without the server's paths.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
