package web

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
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
	maxUpload = 16 << 20
	maxShelf  = 256 << 20
	maxLogs   = 200 << 20
	maxParts  = 2000
)

// uploadStore keeps uploaded files (a cluster's description, a model's config, a measured
// sweep) under the hash of what they hold, so that an address that names one can be
// shared. The oldest of who has sent the most make room for new ones, so that nobody drives out what others sent.
type uploadStore struct {
	dir string // uploads
	tmp string // what lives as long as a request

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

// folder makes a folder for one request.
func (s *uploadStore) folder() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp(s.tmp, "r-")
	return dir, func() { os.RemoveAll(dir) }, err
}

var (
	uploadWord = lazyre.New(`^@([0-9a-f]{32})(:[0-9]{1,6})?$`)
	strange    = lazyre.New(`[^A-Za-z0-9._+-]+`)
)

// safeName is a file name without anything that could lead elsewhere.
func safeName(name string) string {
	name = strings.ReplaceAll(name, "\\", "/")
	name = strange.ReplaceAllString(name[strings.LastIndexByte(name, '/')+1:], "_")
	name = strings.TrimLeft(name, ".-")
	if len(name) > 80 {
		name = name[len(name)-80:]
		name = strings.TrimLeft(name, ".-")
	}
	if name == "" {
		return "file"
	}
	return name
}

// find is the file that a word such as @3f…:4 names: where it lies, its name, and what
// stands behind the word's colon.
func (s *uploadStore) find(word string) (path, name, count string, err error) {
	m := uploadWord.FindStringSubmatch(word)
	if m == nil {
		return "", "", "", fmt.Errorf("%.60q: expected an upload as POST /api/files names it, such as @ and 32 digits", word)
	}
	folder := filepath.Join(s.dir, m[1])
	list, err := os.ReadDir(folder)
	if err != nil || len(list) != 1 {
		return "", "", "", fmt.Errorf("the upload %s is not here any more; send the file again", m[0])
	}
	now := time.Now()
	_ = os.Chtimes(folder, now, now) // what is used stays
	name = list[0].Name()
	return filepath.Join(folder, name), name, m[2], nil
}

// keep puts a file of a client on the shelf, as it comes: none is in memory whole.
func (s *uploadStore) keep(client, name string, data io.Reader) (id string, size int64, err error) {
	name = safeName(name)
	tmp, err := os.MkdirTemp(s.tmp, "u-")
	if err != nil {
		return "", 0, err
	}
	defer os.RemoveAll(tmp)
	f, err := os.OpenFile(filepath.Join(tmp, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", 0, err
	}
	h := sha256.New()
	_, _ = io.WriteString(h, name+"\x00")
	size, err = io.Copy(io.MultiWriter(f, h), data)
	if err = errors.Join(err, f.Close()); err != nil || size == 0 {
		return "", size, err
	}
	id = hex.EncodeToString(h.Sum(nil)[:16])
	s.mu.Lock()
	defer s.mu.Unlock()
	folder := filepath.Join(s.dir, id)
	if _, err := os.Stat(folder); err == nil {
		return "@" + id, size, nil
	}
	if err := s.room(client, size); err != nil {
		return "", size, err
	}
	s.owner[id] = client
	return "@" + id, size, os.Rename(tmp, folder)
}

// room removes uploads until there is room for more of a client: the oldest of whoever has the most. The caller holds
// mu.
func (s *uploadStore) room(client string, need int64) error {
	type old struct {
		path string
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
		o := old{path: filepath.Join(s.dir, d.Name())}
		err := filepath.WalkDir(o.path, func(_ string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err == nil && !e.IsDir() {
				o.size += info.Size()
			} else if err == nil {
				o.at = info.ModTime()
			}
			return err
		})
		if err != nil {
			return err
		}
		const each = maxShelf / maxParts // what one counts for at least: there are only so many
		o.size = max(o.size, each)
		total += o.size
		held[s.owner[d.Name()]] += o.size
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
		i := max(0, slices.IndexFunc(all, func(o old) bool { return s.owner[filepath.Base(o.path)] == most }))
		if err := os.RemoveAll(all[i].path); err != nil {
			return err
		}
		total -= all[i].size
		held[s.owner[filepath.Base(all[i].path)]] -= all[i].size
		delete(s.owner, filepath.Base(all[i].path))
		all = slices.Delete(all, i, i+1)
	}
	return nil
}

// sent is the file of a request: the body, or the one file of a form.
func sent(r *http.Request) (name string, file io.Reader, err error) {
	name, file = r.URL.Query().Get("name"), r.Body
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if !strings.HasPrefix(kind, "multipart/") {
		return name, file, nil
	}
	form, err := r.MultipartReader()
	if err != nil {
		return "", nil, fmt.Errorf("a form that cannot be read: %w", err)
	}
	for {
		p, err := form.NextPart()
		switch {
		case err == io.EOF:
			return "", nil, errors.New("a form without a file; expected one: curl -F file=@site.yaml, or the file as the " +
				"body: curl --data-binary @site.yaml")
		case err != nil:
			return "", nil, broken(err)
		case p.FileName() != "":
			return cmp.Or(name, p.FileName()), &onlyPart{form, p}, nil
		}
	}
}

// onlyPart reads a file of a form, and fails at its end where another follows.
type onlyPart struct {
	form *multipart.Reader
	part io.Reader
}

var errSeveral = errors.New("several files; send each in a request of its own")

func (o *onlyPart) Read(p []byte) (int, error) {
	n, err := o.part.Read(p)
	if err == io.EOF {
		for {
			next, end := o.form.NextPart()
			if end != nil {
				return n, end // io.EOF where the form is whole
			}
			if next.FileName() != "" {
				return n, errSeveral
			}
		}
	}
	return n, err
}

// upload takes a file whole: POST /api/files?name=NAME with the file as the body, or as the one file of a form.
func (s *Server) upload(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadTime)) // where the connection has one
	leave, ok := s.sending.enter(clientIn(r.Context()))
	if !ok {
		crowded(w)
		return
	}
	defer leave()
	name, file, err := sent(r)
	if err != nil {
		Fail(w, http.StatusBadRequest, err.Error())
		return
	}
	name = safeName(name)
	id, size, err := s.shelf.keep(clientIn(r.Context()), name, file)
	var disk *fs.PathError
	switch {
	case tooLarge(err):
		Fail(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("more than %d MiB", maxUpload>>20))
		return
	case errors.As(err, &disk):
		Fail(w, http.StatusInternalServerError, "the file could not be kept: "+reason(err))
		return
	case errors.Is(err, errSeveral):
		Fail(w, http.StatusBadRequest, errSeveral.Error())
		return
	case err != nil:
		Fail(w, http.StatusBadRequest, "the upload broke off")
		return
	case size == 0:
		Fail(w, http.StatusBadRequest, "the file is empty")
		return
	}
	Reply(w, map[string]any{"id": id, "name": name, "bytes": size})
}

// Bounds of uploads that arrive at the same time: each may hold the server's disk for minutes.
const (
	mostSending  = 8
	sendingOfOne = 3
)

// sending counts uploads that arrive.
type sending struct {
	mu   sync.Mutex // guards following
	all  int
	each map[string]int
}

// enter is false where there are too many, of this client or of all.
func (s *sending) enter(client string) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= mostSending || s.each[client] >= sendingOfOne {
		return nil, false
	}
	s.all++
	s.each[client]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.each[client]--; s.each[client] == 0 {
			delete(s.each, client)
		}
	}, true
}

// crowded refuses an upload for now.
func crowded(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "2")
	w.Header().Set("Connection", "close") // or what is still to come would be waited for
	Fail(w, http.StatusServiceUnavailable, "too many uploads arrive at the same time; try again in a moment")
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
