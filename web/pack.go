package web

import (
	"compress/gzip"
	"net/http"
	"strings"
)

// Packed compresses what a handler answers in one long write, where the client takes it: a table of a million pairs has
// seven megabytes.
func Packed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept-Encoding")
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			next.ServeHTTP(w, r)
			return
		}
		p := &packer{ResponseWriter: w, code: http.StatusOK}
		next.ServeHTTP(p, r)
		p.close() // not where the handler broke: then others answer
	})
}

// packer waits for the first write to see how much it is.
type packer struct {
	http.ResponseWriter
	code  int
	began bool
	z     *gzip.Writer // nil where nothing is compressed
}

func (p *packer) WriteHeader(code int) { p.code = code }

func (p *packer) begin(n int) {
	p.began = true
	h := p.Header()
	if n >= worthPacking && h.Get("Content-Encoding") == "" {
		h.Set("Content-Encoding", "gzip")
		h.Del("Content-Length")
		p.z, _ = gzip.NewWriterLevel(p.ResponseWriter, gzip.BestSpeed)
	}
	p.ResponseWriter.WriteHeader(p.code)
}

func (p *packer) Write(b []byte) (int, error) {
	if !p.began {
		p.begin(len(b))
	}
	if p.z != nil {
		return p.z.Write(b)
	}
	return p.ResponseWriter.Write(b)
}

func (p *packer) close() {
	if !p.began {
		p.begin(0)
	}
	if p.z != nil {
		_ = p.z.Close() // the client has gone
	}
}
