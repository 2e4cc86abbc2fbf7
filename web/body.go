package web

import (
	"io"
	"net/http"
	"strings"
)

// spareBody is how many times the bound of a route is read and thrown away of a body that is longer.
// Browsers read an answer when they have sent everything: one that is cut off before shows no answer at all.
const spareBody = 4

// boundedBody is a body that ends with http.MaxBytesError when it is longer than a route takes.
type boundedBody struct {
	io.ReadCloser
	most, left int64
	waits      bool // the client has said how much it has, which is too much, and waits for leave to send it
	err        error
}

// bound bounds the body of a request.
func bound(r *http.Request, most int64) io.ReadCloser {
	waits := r.ContentLength > most && strings.EqualFold(r.Header.Get("Expect"), "100-continue")
	return &boundedBody{ReadCloser: r.Body, most: most, left: most, waits: waits}
}

// Read reads what may be read.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.waits {
		b.err = &http.MaxBytesError{Limit: b.most}
		return 0, b.err
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one more tells that there is more
	}
	n, err := b.ReadCloser.Read(p)
	if int64(n) <= b.left {
		b.left -= int64(n)
		b.err = err
		return n, err
	}
	n, b.left = int(b.left), 0
	_, _ = io.CopyN(io.Discard, b.ReadCloser, spareBody*b.most) // or it ends, or takes too long
	b.err = &http.MaxBytesError{Limit: b.most}
	return n, b.err
}
