package web

import (
	"bytes"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"os"
	"strings"
	"testing"
)

// TestRefusedFields holds refusals to the parameter that they are about, and to words that a client of the API can
// follow.
func TestRefusedFields(t *testing.T) {
	s := realSite(t, nil)
	for path, want := range map[string]struct{ field, text string }{
		"predict?c=nope":                           {"cluster", "no such file"},
		"predict?c=/etc/passwd":                    {"cluster", "no such file"},
		"predict?c=@zz":                            {"cluster", ""},
		"predict?c=dgx-h100:99999999":              {"cluster", "1 to 1000000"},
		"predict?c=dgx-h100:2&f=NaN":               {"stepfactor", "expected a number"},
		"predict?c=dgx-h100:2&links=yes":           {"links", "expected 1"},
		"predict?c=dgx-h100:2&size=1M&size=2M":     {"size", "given 2 times"},
		"predict?c=dgx-h100:2&sise=1M":             {"sise", "is nothing that predict"},
		"predict?c=dgx-h100:2&size=1M&layout=17x4": {"layout", "NAME:17"},
		"predict?c=dgx-h100:2&size=1M&o=foo": {
			"o", "expected json, cel, nccl-tests, number, nvsentinel, superbench, svg",
		},
		"predict?c=dgx-h100:2&json=1": {"json", "JSON is what comes"},
		"predict?c=%zz":               {"", "malformed query"},
		"doctor":                      {"path", "POST /api/files"},
		"hang":                        {"path", "POST /api/files"},
		"explain":                     {"log", "POST /api/files"},
		"measured":                    {"result", "POST /api/files"},
	} {
		res, body := s.ask(t, "GET", "/api/"+path, s.read, nil)
		var doc struct{ Error, Field string }
		if err := json.Unmarshal([]byte(body), &doc); err != nil || res.StatusCode != http.StatusBadRequest ||
			doc.Field != want.field || !strings.Contains(doc.Error, want.text) {
			t.Errorf("%s: %d %s (%v), want %+v", path, res.StatusCode, body, err, want)
		}
	}
}

// sendForm sends files as a form.
func (s *site) sendForm(t *testing.T, route string, files map[string][]byte) (int, string) {
	t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for name, data := range files {
		part, err := form.CreateFormFile("f", name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	form.Close()
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.http.URL+"/api/files", &b)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.Header.Set("Authorization", "Bearer "+s.read)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var up struct{ ID string }
	if err := json.NewDecoder(res.Body).Decode(&up); err != nil || up.ID == "" {
		t.Fatalf("%d %v", res.StatusCode, err)
	}
	answer, text := s.ask(t, "GET", "/api/"+route+"?file="+up.ID, s.read, nil)
	return answer.StatusCode, text
}

// TestHangUpload sends the dumps of a hung job.
func TestHangUpload(t *testing.T) {
	s := realSite(t, nil)
	files := map[string][]byte{}
	const dir = "../docs/examples/hang"
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if files[e.Name()], err = os.ReadFile(dir + "/" + e.Name()); err != nil {
			t.Fatal(err)
		}
	}
	if code, body := s.sendForm(t, "hang", files); code != http.StatusOK || !strings.Contains(body, `"late-rank"`) ||
		strings.Contains(body, s.Data) {
		t.Errorf("%d %s", code, body)
	}
}
