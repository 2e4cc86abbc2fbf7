package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"busbar.dev/launch"
	"busbar.dev/query"
)

func TestUpload(t *testing.T) {
	s := newSite(t, nil)
	res, text := s.ask(t, "POST", "/api/files?name=../../x/my%20topo.txt", s.read, strings.NewReader("GPU0 GPU1"))
	var doc struct{ ID, Name string }
	if err := json.Unmarshal([]byte(text), &doc); err != nil || res.StatusCode != 200 || doc.Name != "my_topo.txt" {
		t.Fatalf("%d %s", res.StatusCode, text)
	}
	res, text = s.ask(t, "GET", "/api/map?c="+doc.ID+":4", s.read, nil)
	if res.StatusCode != 200 || len(s.ran) != 1 {
		t.Fatalf("%d %s", res.StatusCode, text)
	}
	a := s.ran[0]
	if q := a.ask.(*query.Map); len(q.Sources) != 1 || q.Sources[0] != "my_topo.txt:4" ||
		!strings.HasPrefix(a.files["my_topo.txt"], s.shelf.dir) {
		t.Errorf("%q of %v", q.Sources, a.files)
	}
	if strings.Contains(text, s.Data) || !strings.Contains(res.Header.Get("X-Busbar-Command"), "my_topo.txt:4") {
		t.Errorf("the server's folder is told: %s, %s", text, res.Header.Get("X-Busbar-Command"))
	}
	for _, body := range []string{"", strings.Repeat("x", maxUpload+1)} {
		if res, _ := s.ask(t, "POST", "/api/files?name=x", s.read, strings.NewReader(body)); res.StatusCode/100 != 4 {
			t.Errorf("%d bytes: %d", len(body), res.StatusCode)
		}
	}
}

func TestSafeName(t *testing.T) {
	for name, want := range map[string]string{
		"": "file", "..": "file", "/etc/passwd": "passwd", `C:\x\y.log`: "y.log", "../../.ssh/id": "id", "-rf": "rf",
		"a b\n.txt": "a_b_.txt", "ü.log": "_.log", "\x00": "_", strings.Repeat("a", 200): strings.Repeat("a", 80),
	} {
		if got := safeName(name); got != want {
			t.Errorf("%q: %q, expected %q", name, got, want)
		}
	}
}

// one is an upload of one file.
func one(name, text string) func(*arriving) error {
	return func(a *arriving) error { return a.add(name, strings.NewReader(text)) }
}

// TestShelfMakesRoom keeps uploads within bounds, the oldest going first.
func TestShelfMakesRoom(t *testing.T) {
	s, err := newUploadStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	first, _, err := s.keep("t", one("a", "first"))
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(s.dir, first[1:])
	old := time.Now().Add(-time.Hour)
	if err := errors.Join(os.Chtimes(folder, old, old), os.Truncate(filepath.Join(folder, "a"), maxShelf-10)); err != nil {
		t.Fatal(err)
	}
	second, _, err := s.keep("t", one("b", "more than ten bytes"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.find(first, uploads{}); err == nil {
		t.Error("the oldest is still there")
	}
	if _, err := s.find(second, uploads{}); err != nil {
		t.Error(err)
	}
}

// TestShelfIsShared has one client send more than there is room for: what others sent stays.
func TestShelfIsShared(t *testing.T) {
	s, err := newUploadStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	keep := func(client, name string, size int64) string {
		t.Helper()
		id, _, err := s.keep(client, one(name, client+name))
		folder := filepath.Join(s.dir, id[1:])
		if err := errors.Join(err, os.Truncate(filepath.Join(folder, name), size)); err != nil {
			t.Fatal(err)
		}
		return id
	}
	honest := keep("honest", "mine", maxUpload)
	var last string
	for i := range 2 * maxShelf / maxUpload {
		last = keep("greedy", fmt.Sprint("x", i), maxUpload)
	}
	if _, err := s.find(honest, uploads{}); err != nil {
		t.Errorf("what another sent first: %v", err)
	}
	if _, err := s.find(last, uploads{}); err != nil {
		t.Error(err)
	}
}

// form is a multipart body of files.
func form(t *testing.T, files ...string) (io.Reader, string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, name := range files {
		p, err := w.CreateFormFile("file", name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(p, "log of %s\n", name)
	}
	w.Close()
	return &b, w.FormDataContentType()
}

// TestSeveralFiles sends files whose names clash and lead elsewhere: a question has them as a folder.
func TestSeveralFiles(t *testing.T) {
	s := newSite(t, nil)
	var seen []string
	s.asking = func(_ context.Context, a *asked, env query.Env) (any, error) {
		source := a.ask.(*query.Doctor).Sources[0]
		err := fs.WalkDir(env.Files, source, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				seen = append(seen, path)
				_, err = fs.ReadFile(env.Files, path)
			}
			return err
		})
		for _, name := range []string{source + "/../x", "../" + source, source + "/no", "/etc/passwd"} {
			if _, err := fs.Stat(env.Files, name); !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), s.Data) {
				t.Errorf("%s: %v", name, err)
			}
		}
		return map[string]any{"findings": []string{}}, err
	}
	body, kind := form(t, "a.log", "../../etc/a.log", ".hidden", "a.log")
	r, _ := http.NewRequestWithContext(t.Context(), "POST", s.http.URL+"/api/files", body)
	r.Header.Set("Authorization", "Bearer "+s.read)
	r.Header.Set("Content-Type", kind)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var up struct{ ID string }
	if err := json.NewDecoder(res.Body).Decode(&up); err != nil {
		t.Fatal(err)
	}
	if res, text := s.ask(t, "GET", "/api/doctor?file="+up.ID, s.read, nil); res.StatusCode != 200 {
		t.Errorf("%d %s", res.StatusCode, text)
	}
	if got := strings.Join(seen, " "); got != "upload/a-2.log upload/a-3.log upload/a.log upload/hidden" {
		t.Errorf("files: %s", got)
	}
	left, err := os.ReadDir(s.shelf.tmp)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestPlanFiles(t *testing.T) {
	s := newSite(t, nil)
	s.asking = func(_ context.Context, a *asked, _ query.Env) (any, error) {
		q := a.ask.(*query.Plan)
		return &query.PlanDoc{Emitted: &query.PlanFiles{Texts: []launch.File{{
			Name: "run.sh", Text: fmt.Sprintf("# plan %d in %s/run.sh\n", q.Pick, q.Emit), Run: true,
		}}}}, nil
	}
	res, text := s.ask(t, "GET", "/api/plan/files?c=x&m=y&pick=2&list=1", s.read, nil)
	if res.StatusCode != 200 || text != `{"files":[{"name":"run.sh","text":"# plan 2 in plan/run.sh\n","executable":true}]}` {
		t.Errorf("%d %s", res.StatusCode, text)
	}
	res, text = s.ask(t, "GET", "/api/plan/files?c=x&m=y", s.read, nil)
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != archiveType || !strings.HasPrefix(text, "\x1f\x8b") {
		t.Errorf("%d %s %d bytes", res.StatusCode, res.Header.Get("Content-Type"), len(text))
	}
}
