package web

import (
	"bytes"
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestTooLongBodyIsRefused says so before anything is sent where its length is told, and else when it is too much.
func TestTooLongBodyIsRefused(t *testing.T) {
	s := newSite(t, nil)
	for _, told := range []bool{true, false} {
		body := io.Reader(bytes.NewReader(make([]byte, 8<<10)))
		if !told {
			body = io.MultiReader(body)
		}
		r, _ := http.NewRequestWithContext(t.Context(), "POST", s.http.URL+"/login", body)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if want := map[bool]int{true: 413, false: 400}[told]; res.StatusCode != want {
			t.Errorf("its length told %v: %d; want %d", told, res.StatusCode, want)
		}
	}
}

// TestTooManyLogs sends a form that is longer than the route takes.
func TestTooManyLogs(t *testing.T) {
	form := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x.log\"\r\n\r\n" +
		strings.Repeat("x", 9000) + "\r\n--b--\r\n"
	for _, most := range []int64{20, 100, 9000} {
		r := httptest.NewRequest("POST", "http://localhost/api/files", strings.NewReader(form))
		r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		r.Body = http.MaxBytesReader(httptest.NewRecorder(), r.Body, most)
		if err := (&arriving{dir: t.TempDir(), hash: sha256.New()}).read(r); !tooLarge(err) {
			t.Errorf("at most %d: %v", most, err)
		}
	}
}
