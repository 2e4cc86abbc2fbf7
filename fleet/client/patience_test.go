package client

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/failure"
)

// answering is a server within the process, as one that takes no time is needed to test patience.
type answering func(*http.Request) (code int, body string)

func (f answering) RoundTrip(r *http.Request) (*http.Response, error) {
	code, body := f(r)
	if code == 0 {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	h := http.Header{}
	if code == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}, nil
}

func (f answering) client() *Client {
	return &Client{
		base: "http://here", find: func() error { return nil }, http: &http.Client{Transport: f, Timeout: mostTime},
	}
}

// TestPatience: a server that has just been started is waited for, but not for ever.
func TestPatience(t *testing.T) {
	const reading = `{"error": "reading what was stored: 55%"}`
	for _, x := range []struct {
		what  string
		reads time.Duration // for how long it reads what it has stored
		takes time.Duration
		is    error
	}{
		{"it answers", 0, 0, nil},
		{"it reads for a while", 3500 * time.Millisecond, 4 * time.Second, nil},
		{"it reads for too long", time.Hour, readPatience, fleet.ErrReading},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			c := answering(func(*http.Request) (int, string) {
				if time.Since(began) < x.reads {
					return http.StatusServiceUnavailable, reading
				}
				return http.StatusOK, `{}`
			}).client()
			err := c.Call(t.Context(), "GET", "/", nil, &fleet.NodesReply{})
			if took := time.Since(began); !errors.Is(err, x.is) || took < x.takes || took > x.takes+time.Second {
				t.Errorf("%s: %v after %v; expected %v after %v", x.what, err, took, x.is, x.takes)
			}
		})
	}
}

// TestNoAnswer: a server that takes a question and never answers it is gone.
func TestNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := answering(func(*http.Request) (int, string) { return 0, "" }).client().Call(t.Context(), "GET", "/", nil, nil)
		if took := time.Since(began); took != mostTime || !errors.Is(err, fleet.ErrGone) ||
			!errors.Is(err, failure.ErrCannot) {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// TestFaults: an answer's code says whose fault it is.
func TestFaults(t *testing.T) {
	for code, x := range map[int]struct {
		body         string
		cannot, gone bool
	}{
		http.StatusBadRequest:          {`{"error": "size: expected bytes"}`, false, false},
		http.StatusNotFound:            {`{"error": "no such order"}`, false, false},
		http.StatusConflict:            {`{"error": "it is over"}`, false, false},
		http.StatusForbidden:           {`{"error": "may only read"}`, true, false},
		http.StatusInternalServerError: {`{"error": "broken"}`, true, true},
		http.StatusBadGateway:          {`<html>`, true, true},
		http.StatusOK:                  {`no JSON`, true, false},
	} {
		err := answering(func(*http.Request) (int, string) { return code, x.body }).client().Call(t.Context(), "GET", "/",
			nil, &fleet.NodesReply{})
		if err == nil || errors.Is(err, failure.ErrCannot) != x.cannot || errors.Is(err, fleet.ErrGone) != x.gone ||
			!strings.HasPrefix(err.Error(), "http://here") {
			t.Errorf("%d: %v", code, err)
		}
	}
}
