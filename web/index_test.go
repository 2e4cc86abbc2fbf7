package web

import (
	"bytes"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestIndex asks every command of the index by each name of its parameters.
func TestIndex(t *testing.T) {
	s := newSite(t, nil)
	res, text := s.ask(t, "GET", "/api/", s.read, nil)
	var d Index
	if err := json.Unmarshal([]byte(text), &d); err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res.StatusCode, err, text)
	}
	for _, want := range []string{"/api/place", "/api/predict", "/api/map?audit=1"} {
		if !slices.ContainsFunc(d.Commands, func(c IndexCommand) bool { return c.Path == want }) {
			t.Errorf("%s is not in the index", want)
		}
	}
	for _, c := range d.Commands {
		seen := map[string]bool{"o": true}
		for _, p := range c.Parameters {
			for _, name := range append([]string{p.Name}, p.Also...) {
				if seen[name] {
					t.Errorf("%s: %s is two parameters", c.Path, name)
				}
				seen[name] = true
			}
		}
	}
	_, short := s.ask(t, "GET", "/api/predict?c=dgx-h100:2&size=1M", s.read, nil)
	if res, long := s.ask(t, "GET", "/api/predict?cluster=dgx-h100:2&size=1M", s.read,
		nil); res.StatusCode != http.StatusOK || long != short {
		t.Errorf("long names: %d %s; expected %s", res.StatusCode, long, short)
	}
	if res, _ := s.ask(t, "GET", "/api/predict?cluster=dgx-h100:2&c=dgx-h100:4", s.read,
		nil); res.StatusCode != http.StatusBadRequest {
		t.Errorf("one parameter by two names: %d", res.StatusCode)
	}
}

// TestWrongMethod: an address says what it is asked with.
func TestWrongMethod(t *testing.T) {
	s := newSite(t, nil)
	for path, allow := range map[string]string{
		"/api/files": "POST", "/api/predict": "GET, HEAD", "/api/doctor": "GET, HEAD",
	} {
		res, _ := s.ask(t, "PUT", path, s.read, nil)
		if got := res.Header.Get("Allow"); res.StatusCode != http.StatusMethodNotAllowed || got != allow {
			t.Errorf("PUT %s: %d, Allow %q; expected 405 and %q", path, res.StatusCode, got, allow)
		}
	}
	if res, _ := s.ask(t, "GET", "/api/nothing", s.read, nil); res.StatusCode != http.StatusNotFound {
		t.Errorf("nothing: %d", res.StatusCode)
	}
}

// TestUploadForm sends files as curl -F does: the file is kept and not its envelope.
func TestUploadForm(t *testing.T) {
	s := newSite(t, nil)
	send := func(files ...string) (int, string) {
		var b bytes.Buffer
		form := multipart.NewWriter(&b)
		for _, name := range files {
			w, err := form.CreateFormFile("f", name)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = w.Write([]byte("the file"))
		}
		_ = form.Close()
		req, err := http.NewRequestWithContext(t.Context(), "POST", s.http.URL+"/api/files", &b)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", form.FormDataContentType())
		req.Header.Set("Authorization", "Bearer "+s.read)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var text bytes.Buffer
		_, _ = text.ReadFrom(res.Body)
		return res.StatusCode, text.String()
	}
	_, plain := s.ask(t, "POST", "/api/files?name=site.yaml", s.read, strings.NewReader("the file"))
	if code, text := send("site.yaml"); code != http.StatusOK || text != plain {
		t.Errorf("%d %s; expected %s as without a form", code, text, plain)
	}
	if code, text := send(); code != http.StatusBadRequest || !strings.Contains(text, "file") {
		t.Errorf("no file: %d %s; expected a refusal", code, text)
	}
	if code, text := send("a", "b"); code != http.StatusOK || !strings.Contains(text, `"files": 2`) {
		t.Errorf("two files: %d %s", code, text)
	}
}
