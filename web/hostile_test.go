package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"busbar.dev/internal/test/eventually"
)

// TestHostileRequests sends what no browser sends to a server with its real limits.
func TestHostileRequests(t *testing.T) {
	s := newSite(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, Bounded(l)) }()
	auth := "Authorization: Bearer " + s.read + "\r\n"
	for _, c := range []struct {
		name, text string
		codes      []int
	}{
		{"no HTTP", "\x16\x03\x01 hello\r\n\r\n", []int{400}},
		{
			"a header without end", "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n",
			[]int{431},
		},
		{
			"a path without end", "GET /api/map?c=" + strings.Repeat("x", 20<<10) + " HTTP/1.1\r\nHost: localhost\r\n" + auth +
				"\r\n", []int{400},
		},
		{
			"another host's name", "GET http://evil.example/api/map HTTP/1.1\r\nHost: evil.example\r\n" + auth + "\r\n",
			[]int{421},
		},
		{"dots in a path", "GET /assets/" + s.assets.build + "/../../tokens.json HTTP/1.1\r\nHost: localhost\r\n" + auth +
			"\r\n", []int{301, 307, 404}},
		{"encoded dots", "GET /assets/" + s.assets.build + "/%2e%2e/%2e%2e/tokens.json HTTP/1.1\r\nHost: localhost\r\n" +
			auth + "\r\n", []int{301, 307, 404}},
		{"encoded slashes", "GET /assets/" + s.assets.build + "/..%2f..%2fserver.go HTTP/1.1\r\nHost: localhost\r\n" + auth +
			"\r\n", []int{301, 307, 404}},
		{"a byte of nothing", "GET /api/models?words=%00 HTTP/1.1\r\nHost: localhost\r\n" + auth + "\r\n", []int{400}},
		{"no UTF-8", "GET /api/models?words=%ff%fe HTTP/1.1\r\nHost: localhost\r\n" + auth + "\r\n", []int{400}},
		{
			"two lengths", "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\ntoken=",
			[]int{400},
		},
		{"a length and chunks", "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: " +
			"chunked\r\n\r\n0\r\n\r\n", []int{400, 401}},
		{"a login without end", "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: " +
			"application/x-www-form-urlencoded\r\nContent-Length: 99999\r\n\r\ntoken=" + strings.Repeat("x", 99993), []int{413}},
		{"many cookies", "GET /api/me HTTP/1.1\r\nHost: localhost\r\nCookie: " + strings.Repeat(s.cookie+"=a.b.c; ", 500) +
			"\r\n\r\n", []int{401}},
		{"a part without end", "POST /api/files HTTP/1.1\r\nHost: localhost\r\n" + auth + "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 40\r\n\r\n--b\r\nContent-Disposition: form-data; xxxxx", []int{400}},
		{"another method", "PUT /api/map HTTP/1.1\r\nHost: localhost\r\n" + auth + "\r\n", []int{404, 405}},
		{"TRACE", "TRACE / HTTP/1.1\r\nHost: localhost\r\n" + auth + "\r\n", []int{404, 405}},
	} {
		code, err := raw(l.Addr().String(), c.text)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		ok := false
		for _, want := range c.codes {
			ok = ok || code == want
		}
		if !ok {
			t.Errorf("%s: %d, expected one of %v", c.name, code, c.codes)
		}
	}
	if len(s.ran) > 0 {
		t.Errorf("ran %s", s.ran[0].line)
	}
	if code, err := raw(l.Addr().String(), "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); code != 200 || err != nil {
		t.Errorf("afterwards: %d, %v", code, err)
	}
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(eventually.Limit):
		t.Error("the server does not end")
	}
}

// raw sends a text and gives the code of the answer.
func raw(address, text string) (int, error) {
	c, err := net.DialTimeout("tcp", address, eventually.Limit)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(eventually.Limit))
	go func() { _, _ = io.WriteString(c, text) }() // the server may answer before it has read all
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, err
	}
	res.Body.Close()
	return res.StatusCode, nil
}

// TestConnectionsAreBounded fills a listener and frees a place.
func TestConnectionsAreBounded(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Bounded(inner).(*boundedListener)
	l.places = 2
	defer l.Close()
	var held []net.Conn
	for range 2 {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		token := fmt.Sprint("token ", len(held))
		s.(*boundedConn).token.Store(&token)
		held = append(held, s)
	}
	more := make(chan error, 1)
	go func() { _, err := l.Accept(); more <- err }()
	c, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Read(make([]byte, 1)); err == nil { // it is closed
		t.Fatal("a third was taken")
	}
	held[0].Close()
	held[0].Close()
	again, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := <-more; err != nil {
		t.Error(err)
	}
	go func() { _, err := l.Accept(); more <- err }()
	l.Close()
	if err := <-more; err == nil {
		t.Error("a closed listener takes clients")
	}
}

// TestOneHostKeepsNobodyOut has one host take more connections than it may.
func TestOneHostKeepsNobodyOut(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Bounded(inner).(*boundedListener)
	defer l.Close()
	from := make(chan string, 1)
	l.client = func(net.Addr) string { return <-from }
	dial := func(who string) {
		t.Helper()
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		from <- who
	}
	var one net.Conn
	for range mostOfOne {
		dial("greedy")
		if one, err = l.Accept(); err != nil {
			t.Fatal(err)
		}
		one.(*boundedConn).token.Store(new(string))
	}
	go func() { dial("greedy"); dial("other") }()
	if _, err := l.Accept(); err != nil || len(l.open) != mostOfOne+1 || l.open[mostOfOne].who != "other" {
		t.Fatalf("%d connections, %v", len(l.open), err)
	}
	one.Close()
	dial("greedy")
	if _, err := l.Accept(); err != nil || len(l.open) != mostOfOne+1 {
		t.Fatalf("%d connections, %v", len(l.open), err)
	}
	for addr, want := range map[string]string{
		"127.0.0.1:5": "", "[::1]:5": "", "192.0.2.7:5": "192.0.2.7", "[2001:db8::7]:5": "2001:db8::",
	} {
		a, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if got := clientAt(a); got != want {
			t.Errorf("%s: %q, expected %q", addr, got, want)
		}
	}
}

// TestEventsEndWithTheToken listens with a token that is then revoked.
func TestEventsEndWithTheToken(t *testing.T) {
	s := newSite(t, nil)
	s.recheck = 10 * time.Millisecond
	again := httptest.NewServer(s.Handler())
	defer again.Close()
	r, err := http.NewRequestWithContext(t.Context(), "GET", again.URL+"/api/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.read)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := s.Tokens.Revoke("read"); err != nil {
		t.Fatal(err)
	}
	end := make(chan error, 1)
	go func() { _, err := io.Copy(io.Discard, res.Body); end <- err }()
	select {
	case <-end:
	case <-time.After(eventually.Limit):
		t.Error("events go on after the token was revoked")
	}
}

// TestGuessesKeepNobodyOut logs in from an address from which others guess.
func TestGuessesKeepNobodyOut(t *testing.T) {
	s := newSite(t, nil)
	login := func(token string) int {
		res, err := http.PostForm(s.http.URL+"/login", url.Values{"token": {token}})
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	codes := map[int]int{}
	for i := range 30 {
		codes[login(fmt.Sprint("guess", i))]++
	}
	if codes[429] < 15 || codes[401] > attemptBurst+1 {
		t.Errorf("thirty guesses: %v", codes)
	}
	if code := login(s.read); code != 200 {
		t.Errorf("a good token after them: %d", code)
	}
}

// TestNoPathOfTheServer has the doctor complain about the file that it was given.
func TestNoPathOfTheServer(t *testing.T) {
	s := realSite(t, nil)
	code, text := s.sendForm(t, "doctor", map[string][]byte{"a.log": {0, 1, 2, 0}})
	if code != 400 || strings.Contains(text, s.Data) || !strings.Contains(text, "a.log") {
		t.Errorf("%d %s", code, text)
	}
}

func FuzzSession(f *testing.F) {
	tokens, err := OpenTokens(f.TempDir() + "/tokens.json")
	if err != nil {
		f.Fatal(err)
	}
	secret, err := tokens.Add("a", Read)
	if err != nil {
		f.Fatal(err)
	}
	x, _ := tokens.check(secret)
	good := tokens.sign(x, time.Now().Add(time.Hour))
	for _, text := range []string{
		good, "", ".", "..", x.Hash[:16] + ".99999999999999999999.", good + "x", fmt.Sprintf("%s.%d.", x.Hash[:16], 1<<62),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, cookie string) {
		if _, ok := tokens.session(cookie, time.Now()); ok && cookie != good {
			t.Errorf("%q opens a session", cookie)
		}
		if _, ok := tokens.check(cookie); ok && cookie != secret {
			t.Errorf("%q is a token", cookie)
		}
	})
}
