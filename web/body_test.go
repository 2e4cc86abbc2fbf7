package web

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"busbar.dev/internal/test/eventually"
)

// TestTooLongBodyIsAnswered sends more than is taken, as browsers do: all of it before the answer is read.
func TestTooLongBodyIsAnswered(t *testing.T) {
	s := newSite(t, nil)
	size := maxUpload + 3<<20
	c, err := net.Dial("tcp", strings.TrimPrefix(s.http.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(eventually.Limit))
	post := func(extra string) {
		if _, err := fmt.Fprintf(c, "POST /api/files?name=x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"+
			"%sContent-Length: %d\r\n\r\n", s.read, extra, size); err != nil {
			t.Fatal(err)
		}
	}
	answered := func() {
		t.Helper()
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var doc struct{ Error string }
		if err := json.NewDecoder(res.Body).Decode(&doc); err != nil || res.StatusCode != http.StatusRequestEntityTooLarge ||
			!strings.Contains(doc.Error, "more than") {
			t.Errorf("%d %+v %v", res.StatusCode, doc, err)
		}
	}
	post("")
	piece := bytes.Repeat([]byte("x"), 1<<20)
	for sent := 0; sent < size; sent += len(piece) {
		if _, err := c.Write(piece); err != nil {
			t.Fatalf("after %d bytes: %v", sent, err)
		}
	}
	answered()
	// Who asks first is refused before anything is sent, on the same connection.
	post("Expect: 100-continue\r\n")
	answered()
}

// TestBoundedBody holds bodies against their bound, however they are read.
func TestBoundedBody(t *testing.T) {
	for _, n := range []int{0, 1, 999, 1000, 1001, 4000, 5001, 6000} {
		for _, step := range []int{1, 7, 1000, 1001, 8000} {
			r, err := http.NewRequestWithContext(t.Context(), "POST", "http://localhost/",
				io.NopCloser(strings.NewReader(strings.Repeat("x", n))))
			if err != nil {
				t.Fatal(err)
			}
			b := bound(r, 1000)
			got, buf := 0, make([]byte, step)
			for err == nil {
				var k int
				k, err = b.Read(buf)
				got += k
			}
			if got != min(n, 1000) || tooLarge(err) != (n > 1000) || n <= 1000 && !errors.Is(err, io.EOF) {
				t.Errorf("%d bytes in steps of %d: %d read, then %v", n, step, got, err)
			}
		}
	}
}

// TestTooManyLogs sends a form that is longer than the route takes.
func TestTooManyLogs(t *testing.T) {
	form := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x.log\"\r\n\r\n" +
		strings.Repeat("x", 9000) + "\r\n--b--\r\n"
	for _, most := range []int64{20, 100, 9000} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://localhost/api/doctor", strings.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		r.Body = bound(r, most)
		if _, err := takeLogs(r, t.TempDir()); !tooLarge(err) {
			t.Errorf("at most %d: %v", most, err)
		}
	}
}
