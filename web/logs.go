package web

import (
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"busbar.dev/ask"
	"busbar.dev/query"
)

// uploadTime is how long logs may take to arrive.
const uploadTime = 5 * time.Minute

// examines answers POST /api/doctor and POST /api/hang: the files of a form, and the text in its field
// "text", are put into a folder of their own, examined, and removed.
func (s *Server) examines(q *ask.Question) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.examine(w, r, q) })
}

func (s *Server) examine(w http.ResponseWriter, r *http.Request, q *ask.Question) {
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Now().Add(uploadTime)) // where the connection has one
	_ = out.SetWriteDeadline(time.Now().Add(uploadTime + 2*q.Within))
	given := r.URL.Query()
	if q.Name == "doctor" {
		if given.Get("explain") == "1" {
			q = ask.Named("doctor explain")
		}
		given.Del("explain")
	}
	a, err := s.read(q, given)
	if err != nil {
		refuse(w, err)
		return
	}
	leave, ok := s.sending.enter(clientIn(r.Context()))
	if !ok {
		crowded(w)
		return
	}
	defer leave()
	dir, remove, err := s.shelf.folder()
	if err != nil {
		Fail(w, http.StatusInternalServerError, reason(err))
		return
	}
	names, err := takeLogs(r, dir)
	if err != nil {
		remove()
		code := http.StatusBadRequest
		if tooLarge(err) {
			code, err = http.StatusRequestEntityTooLarge,
				fmt.Errorf("more than %d MB of logs; send those of a few ranks", maxLogs>>20)
		}
		Fail(w, code, err.Error())
		return
	}
	for _, name := range names {
		a.files[name] = filepath.Join(dir, name)
	}
	a.after = remove
	switch q := a.ask.(type) {
	case *query.Doctor:
		q.Sources = names
	case *query.Explain:
		q.Logs = names
	case *query.Hang:
		q.Sources = names
	}
	a.line = a.command("--json")
	s.send(w, r, s.compute(r.Context(), a))
}

// takeLogs writes the parts of a form into a folder and gives their names.
func takeLogs(r *http.Request, dir string) ([]string, error) {
	form, err := r.MultipartReader()
	if err != nil {
		return nil, errors.New("expected files, as a multipart form")
	}
	var names []string
	for n := 0; ; n++ {
		p, err := form.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			if _, e := r.Body.Read(make([]byte, 1)); tooLarge(e) {
				err = e // and not what is wrong with a form that was cut off
			}
			return nil, broken(err)
		}
		if n >= maxParts { // empty ones too: each is made on the disk
			return nil, fmt.Errorf("more than %d files; send an archive of them", maxParts)
		}
		name, err := takeLog(p, dir, n)
		if err != nil {
			return nil, err
		}
		if name != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, errors.New("nothing to read: drop logs, or say what is wrong")
	}
	return names, nil
}

// takeLog writes one part. Names that come twice get a folder of their own.
func takeLog(p *multipart.Part, dir string, n int) (string, error) {
	name := safeName(p.FileName())
	if p.FileName() == "" {
		name = "pasted.txt"
	}
	path := filepath.Join(dir, name)
	if _, err := os.Lstat(path); err == nil {
		sub := fmt.Sprint(n)
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			return "", errors.New(reason(err))
		}
		name = sub + "/" + name
		path = filepath.Join(dir, name)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", errors.New(reason(err))
	}
	size, err := io.Copy(f, p)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", broken(err)
	}
	if size == 0 {
		return "", os.Remove(path)
	}
	return name, nil
}

// broken is why an upload did not arrive.
func broken(err error) error {
	if tooLarge(err) {
		return err
	}
	return fmt.Errorf("the upload broke off: %s", reason(err))
}
