package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"busbar.dev/ask"
	"busbar.dev/internal/unpack"
	"busbar.dev/query"
)

// freshFor is how long an answer about this machine is kept.
const freshFor = 15 * time.Second

// mostDevices is how many GPUs or NICs a preset may have that is asked for.
const mostDevices = 160_000

// answer serves a question.
func (s *Server) answer(q *ask.Question) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		given := r.URL.Query()
		a, err := s.read(meant(q, given), given)
		if err == nil {
			err = a.fed()
		}
		if err != nil {
			refuse(w, err)
			return
		}
		s.send(w, r, s.kept(r.Context(), a))
	}
}

// meant is the question of an address that several share.
func meant(q *ask.Question, given url.Values) *ask.Question {
	if q != ask.Map {
		return q
	}
	switch audit := given["audit"]; {
	case len(audit) == 1 && audit[0] == "1":
		given.Del("audit")
		return ask.Audit
	case given.Has("path"):
		return ask.Path
	}
	return q
}

// kept is the answer to a question, from memory where it was asked before.
func (s *Server) kept(ctx context.Context, a *asked) *given {
	if g := s.answers.get(a.key(), time.Now()); g != nil {
		return g
	}
	g := s.compute(ctx, a)
	if g.code == http.StatusOK {
		if a.here {
			g.until = time.Now().Add(freshFor)
		}
		s.answers.put(a.key(), g)
	}
	return g
}

// compute answers a question. When the context ends first, the work keeps its place
// in the pool until it has really ended.
func (s *Server) compute(ctx context.Context, a *asked) *given {
	ctx, cancel := context.WithTimeout(ctx, a.Within)
	inside, leave, err := s.pool.enter(ctx, clientIn(ctx), a.Heavy, a.cost())
	if err != nil {
		cancel()
		return refusal(http.StatusServiceUnavailable, errBusy, a)
	}
	ctx = inside
	done := make(chan *given, 1)
	go func() {
		defer leave()
		defer cancel()
		done <- s.run(ctx, a)
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
		return late(ctx, a)
	}
}

// clientIn is whom a question is counted for: the token that it came with.
func clientIn(ctx context.Context) string {
	w, _ := ctx.Value(whoKey{}).(Who)
	return w.Name
}

// cost estimates what a question needs, in bytes.
func (a *asked) cost() int64 {
	cost := int64(usualCost)
	if a.Heavy {
		cost = heavyCost
	}
	size := int64(0)
	for _, path := range a.files {
		n, packed := weigh(path)
		if packed {
			n = max(n, query.PageLimits.Bytes/4)
		}
		size += n
	}
	return cost + costOfByte*min(size, query.PageLimits.Bytes)
}

// weigh is how many bytes a file or the files of a folder have, and whether one stands for more.
func weigh(path string) (size int64, packed bool) {
	_ = filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error { // what is gone weighs nothing
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		var head [4]byte
		n, _ := io.ReadFull(f, head[:])
		packed = packed || unpack.Packed(head[:n])
		info, err := f.Stat()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, packed
}

func late(ctx context.Context, a *asked) *given {
	if errors.Is(context.Cause(ctx), errMemory) {
		return refusal(http.StatusServiceUnavailable, errMemory, a)
	}
	return refusal(http.StatusServiceUnavailable,
		fmt.Errorf("no answer within %v; ask for less: fewer sizes, algorithms or nodes", a.Within), a)
}

// run asks package query and makes an answer of its document. It survives its faults: others are being served.
func (s *Server) run(ctx context.Context, a *asked) (g *given) {
	defer func() {
		if p := recover(); p != nil {
			s.tell(fmt.Sprintf("a fault: %v\n%s", p, debug.Stack())) // for who runs the server, not for who asks
			g = refusal(http.StatusInternalServerError, fmt.Errorf("a fault of busbar, not of the question: %v", p), a)
		}
	}()
	env := s.env(a)
	doc, err := s.asking(ctx, a, env)
	timeUp := errors.Is(ctx.Err(), context.DeadlineExceeded)
	switch {
	case doc != nil && timeUp && a.Heavy: // the best that was found until then, as it says
	case ctx.Err() != nil:
		return late(ctx, a)
	case query.Cannot(err):
		return refusal(http.StatusUnprocessableEntity, err, a)
	case err != nil:
		return refusal(http.StatusBadRequest, err, a)
	}
	g = &given{code: http.StatusOK, mime: a.mime, line: a.line}
	if timeUp {
		g.until = time.Now()
	}
	if w, ok := doc.(interface{ Wrong() bool }); ok && w.Wrong() {
		g.exit = 1
	}
	if u, ok := doc.(interface{ Unexamined() bool }); ok && u.Unexamined() {
		g.exit = 3
	}
	if g.body, err = a.write(ctx, ask.Answer{Question: a.ask, Document: doc, Env: env}, s.longest()); err != nil {
		return refusal(http.StatusUnprocessableEntity, err, a)
	}
	g.seal()
	return g
}

// longest is the most bytes of an answer, and of a file that is held whole. To make one takes several times as much.
func (s *Server) longest() int {
	if s.Memory > 0 {
		return int(min(maxAnswer, max(s.Memory/16, 1<<20)))
	}
	return maxAnswer
}

// tell tells who runs the server.
func (s *Server) tell(text string) {
	if s.Note != nil {
		s.Note(text)
	}
}

// env is what a question may touch: the files that were sent with it, and this machine's topology.
func (s *Server) env(a *asked) query.Env {
	limits := query.PageLimits
	limits.GPUs = mostDevices
	limits.Held = int64(s.longest())
	return query.Env{Files: a.files, Machine: s.Machine, Limits: limits}
}

// refused is what is wrong with a question, as the page takes it: the parameter that it is about is named where one is
// known, so that the page can point to it.
func refused(err error) map[string]string {
	doc := map[string]string{"error": err.Error()}
	var f *query.FieldError
	var named interface{ Field() string }
	if errors.As(err, &f) && f.Field != "" {
		doc["field"] = f.Field
	} else if errors.As(err, &named) {
		doc["field"] = named.Field()
	}
	return doc
}

// refusal is an answer that is none.
func refusal(code int, err error, a *asked) *given {
	doc := refused(err)
	doc["command"] = a.line
	body, _ := json.Marshal(doc)
	g := &given{code: code, mime: jsonType, body: append(body, '\n'), line: a.line, exit: -1}
	g.seal()
	return g
}

// send writes an answer, or that the browser has it already. What was typed and
// what was said beside it stand in headers, for the page's buttons.
func (s *Server) send(w http.ResponseWriter, r *http.Request, g *given) {
	h := w.Header()
	headed(w, g.mime, "private, no-cache")
	h.Set("X-Busbar-Command", url.PathEscape(g.line))
	if g.exit >= 0 {
		h.Set("X-Busbar-Exit", fmt.Sprint(g.exit))
	}
	if g.code == http.StatusServiceUnavailable {
		h.Set("Retry-After", "2")
	}
	if g.mime == ask.SVG { // as a page of its own it may do nothing at all
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	}
	if g.code == http.StatusOK {
		h.Set("ETag", g.tag)
		if r.Header.Get("If-None-Match") == g.tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	s.deliver(w, r, g.code, g.body)
}
