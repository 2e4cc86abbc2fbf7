package web

import (
	"compress/gzip"
	"net/http"
	"strings"
	"sync"
)

// outgoing counts the answers that are on their way: whoever takes them slowly has the server hold them, long after the
// question gave its place back.
type outgoing struct {
	most int64 // bytes, of all

	mu   sync.Mutex // guards following
	all  int64
	each map[string]int64
}

// Bounds of answers on their way. A client may always have one, however long.
const (
	outgoingOfOne = 96 << 20
	outgoingUsual = 512 << 20
	smallAnswer   = 256 << 10 // is not counted
)

func newOutgoing(memory int64) *outgoing {
	o := &outgoing{most: outgoingUsual, each: map[string]int64{}}
	if memory > 0 {
		o.most = min(o.most, memory/4)
	}
	return o
}

// enter is false where a client should first take what it has asked for.
func (o *outgoing) enter(client string, size int) (leave func(), ok bool) {
	n := int64(size)
	if n <= smallAnswer {
		return func() {}, true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if have := o.each[client]; have > 0 && (have+n > outgoingOfOne || o.all+n > o.most) {
		return nil, false
	}
	o.all += n
	o.each[client] += n
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.all -= n
		if o.each[client] -= n; o.each[client] == 0 {
			delete(o.each, client)
		}
	}, true
}

// worthPacking is the least size that is sent compressed: a table of a million pairs has seven megabytes.
const worthPacking = 2 << 10

// deliver writes an answer whose headers are set, compressed where the client takes that.
func (s *Server) deliver(w http.ResponseWriter, r *http.Request, code int, body []byte) {
	leave, ok := s.outgoing.enter(clientIn(r.Context()), len(body))
	h := w.Header()
	if !ok {
		h.Del("ETag")
		busy(w, "answers to this token are still on their way; take those first")
		return
	}
	defer leave()
	h.Add("Vary", "Accept-Encoding")
	if len(body) < worthPacking || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.WriteHeader(code)
		_, _ = w.Write(body) // the client has gone
		return
	}
	h.Set("Content-Encoding", "gzip")
	w.WriteHeader(code)
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
	_, _ = z.Write(body)
	_ = z.Close()
}

// busy refuses for now.
func busy(w http.ResponseWriter, why string) {
	w.Header().Set("Retry-After", "2")
	Fail(w, http.StatusServiceUnavailable, why)
}

// computed has a handler wait for its turn, and gives its place back before what it answers is sent.
func (s *Server) computed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leave, err := s.pool.enter(r.Context(), clientIn(r.Context()), false, usualCost)
		if err != nil {
			busy(w, errBusy.Error())
			return
		}
		b := &buffered{header: w.Header(), code: http.StatusOK, bounded: bounded{most: maxAnswer}}
		func() {
			defer leave()
			next.ServeHTTP(b, r)
		}()
		if b.full != nil {
			Fail(w, http.StatusUnprocessableEntity, b.full.Error())
			return
		}
		s.deliver(w, r, b.code, b.Bytes())
	})
}

// buffered keeps what a handler answers.
type buffered struct {
	bounded
	header http.Header
	code   int
	full   error
}

func (b *buffered) Header() http.Header  { return b.header }
func (b *buffered) WriteHeader(code int) { b.code = code }

func (b *buffered) Write(p []byte) (int, error) {
	n, err := b.bounded.Write(p)
	if err != nil {
		b.full = err
	}
	return n, err
}
