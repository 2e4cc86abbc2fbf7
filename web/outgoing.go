package web

import (
	"compress/gzip"
	"net/http"
	"strings"
)

// Bounds of answers that are on their way: whoever takes them slowly has the server hold them, long after the question
// gave its place back.
const (
	outgoingOfOne = 96 << 20
	outgoingUsual = 512 << 20
	smallAnswer   = 256 << 10 // is not counted
)

func newOutgoing(memory int64) *shares {
	most := int64(outgoingUsual)
	if memory > 0 {
		most = min(most, memory/4)
	}
	o := newShares(most, outgoingOfOne)
	o.always = true // however long it is
	return o
}

// worthPacking is the least size that is sent compressed: a table of a million pairs has seven megabytes.
const worthPacking = 2 << 10

// deliver writes an answer whose headers are set, compressed where the client takes that.
func (s *Server) deliver(w http.ResponseWriter, r *http.Request, code int, body []byte) {
	h := w.Header()
	if len(body) > smallAnswer {
		leave, ok := s.outgoing.take(clientIn(r.Context()), int64(len(body)))
		if !ok {
			h.Del("ETag")
			busy(w, "answers to this token are still on their way; take those first")
			return
		}
		defer leave()
	}
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
		_, leave, err := s.pool.enter(r.Context(), clientIn(r.Context()), false, usualCost)
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
