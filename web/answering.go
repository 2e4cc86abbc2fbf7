package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// freshFor is how long an answer about this machine is kept.
const freshFor = 15 * time.Second

// answer serves a question.
func (s *Server) answer(q question) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, err := s.read(q, r.URL.Query())
		if err != nil {
			Fail(w, http.StatusBadRequest, err.Error())
			return
		}
		g := s.answers.get(a.key(), time.Now())
		if g == nil {
			g = s.compute(r.Context(), a)
			if g.code == http.StatusOK {
				if a.here {
					g.until = time.Now().Add(freshFor)
				}
				s.answers.put(a.key(), g)
			}
		}
		send(w, r, g)
	})
}

// bounded is a buffer that refuses to grow without end.
type bounded struct {
	bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, fmt.Errorf("the answer has more than %d MiB; ask for less", b.most>>20)
	}
	return b.Buffer.Write(p)
}

// forgiving drops what is too much.
type forgiving struct{ bounded }

func (f *forgiving) Write(p []byte) (int, error) {
	_, _ = f.bounded.Write(p[:min(len(p), f.most-f.Len())])
	return len(p), nil
}

// compute runs the command. When the context ends first, the work keeps its place
// in the pool until it has really ended.
func (s *Server) compute(ctx context.Context, a *asked) *given {
	ctx, cancel := context.WithTimeout(ctx, a.within)
	after := a.after
	if after == nil {
		after = func() {}
	}
	leave, err := s.pool.enter(ctx, a.heavy)
	if err != nil {
		cancel()
		after()
		return refusal(http.StatusServiceUnavailable, "the server is busy with other questions; try again in a moment", a)
	}
	done := make(chan *given, 1)
	go func() {
		defer leave()
		defer cancel()
		g := s.command(ctx, a)
		if a.take != nil && g.code == http.StatusOK {
			a.take(g)
		}
		after()
		done <- g
	}()
	select {
	case g := <-done:
		return g
	case <-ctx.Done():
	}
	select { // what stops at once may have found something
	case g := <-done:
		return g
	case <-time.After(500 * time.Millisecond):
		return refusal(http.StatusServiceUnavailable, fmt.Sprintf("no answer within %v; ask for less: fewer sizes, algorithms or nodes", a.within), a)
	}
}

// command runs it and makes an answer of what it printed.
func (s *Server) command(ctx context.Context, a *asked) *given {
	out, notes := &bounded{most: maxAnswer}, &forgiving{bounded{most: 64 << 10}}
	exit := s.Run(ctx, Job{Args: a.args, Stdin: strings.NewReader(""), Stdout: out, Stderr: notes, Folders: a.folders})
	text, body := notes.String(), out.Bytes()
	for _, f := range a.folders { // whoever asks knows files by the names they had
		text = strings.ReplaceAll(strings.ReplaceAll(text, f+"/", ""), f, "what was sent")
		body = bytes.ReplaceAll(bytes.ReplaceAll(body, []byte(f+"/"), nil), []byte(f), []byte("what was sent"))
	}
	late := errors.Is(ctx.Err(), context.DeadlineExceeded)
	whole := json.Valid(body) && len(body) > 0
	g := &given{mime: a.mime, body: body, exit: exit, notes: text, line: a.line()}
	switch {
	case late && whole && a.heavy: // the best that was found until then
		g.code, g.notes, g.until = http.StatusOK, "the time was up; this is the best so far\n"+text, time.Now()
	case ctx.Err() != nil:
		return refusal(http.StatusServiceUnavailable, fmt.Sprintf("no answer within %v; ask for less: fewer sizes, algorithms or nodes", a.within), a)
	case exit == 0 || exit == 1 && len(body) > 0:
		g.code = http.StatusOK
	case exit == 2 || exit == 1:
		return refusal(http.StatusBadRequest, complaint(text), a)
	default:
		return refusal(http.StatusUnprocessableEntity, complaint(text), a)
	}
	g.seal()
	return g
}

// complaint is what a command says when it refuses, without its name.
func complaint(text string) string {
	var list []string
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		line = strings.TrimPrefix(line, "busbar: ")
		if line != "" && !strings.HasPrefix(line, "see: busbar") && !strings.HasPrefix(line, "note: ") {
			list = append(list, line)
		}
	}
	if len(list) == 0 {
		return "no answer, and no reason given"
	}
	return strings.Join(list, "\n")
}

// refusal is an answer that is none.
func refusal(code int, text string, a *asked) *given {
	body, _ := json.Marshal(map[string]string{"error": text, "command": a.line()})
	g := &given{code: code, mime: "application/json; charset=utf-8", body: append(body, '\n'), line: a.line(), exit: -1}
	g.seal()
	return g
}

// worthPacking is the least size that is sent compressed.
const worthPacking = 2 << 10

// send writes an answer, or that the browser has it already. What was typed and
// what was said beside it stand in headers, for the page's buttons.
func send(w http.ResponseWriter, r *http.Request, g *given) {
	h := w.Header()
	h.Set("Content-Type", g.mime)
	h.Set("Cache-Control", "private, no-cache")
	h.Set("X-Busbar-Command", url.PathEscape(g.line))
	if g.exit >= 0 {
		h.Set("X-Busbar-Exit", fmt.Sprint(g.exit))
	}
	if g.notes != "" {
		h.Set("X-Busbar-Notes", url.PathEscape(g.notes[:min(len(g.notes), 4000)]))
	}
	if g.code == http.StatusServiceUnavailable {
		h.Set("Retry-After", "2")
	}
	if g.mime == svgType { // as a page of its own it may do nothing at all
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	}
	if g.code == http.StatusOK {
		h.Set("ETag", g.tag)
		if r.Header.Get("If-None-Match") == g.tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h.Set("Vary", "Accept-Encoding")
	if len(g.body) < worthPacking || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.WriteHeader(g.code)
		_, _ = w.Write(g.body)
		return
	}
	h.Set("Content-Encoding", "gzip")
	w.WriteHeader(g.code)
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
	_, _ = z.Write(g.body)
	_ = z.Close()
}
