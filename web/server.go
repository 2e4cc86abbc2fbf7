package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"busbar.dev/ask"
	"busbar.dev/docs"
	"busbar.dev/query"
)

// Server is the page and what it asks.
type Server struct {
	Config
	routes                       []Route
	cookie                       string
	requests                     *buckets
	attempts                     *buckets
	pool                         *pool
	answers                      *answers
	shelf                        *uploadStore
	sending, listeners, outgoing *shares
	assets                       *assets
	recheck                      time.Duration
	// asking answers a question; tests answer themselves.
	asking func(ctx context.Context, a *asked, env query.Env) (document any, err error)
}

// Limits of what one client may ask: a page loads some forty files at once, and a
// slider asks about ten times a second.
const (
	requestRate  = 50
	requestBurst = 400
	attemptRate  = 0.1
	attemptBurst = 10
	mostSending  = 8 // uploads at the same time: each may hold the server's disk for minutes
	sendingOfOne = 3
)

// New makes a server.
func New(c Config) (*Server, error) {
	a, err := newAssets(c.Version)
	if err != nil {
		return nil, err
	}
	shelf, err := newUploadStore(c.Data)
	if err != nil {
		return nil, err
	}
	s := &Server{
		Config: c, cookie: c.Tokens.cookieName(), assets: a, shelf: shelf,
		sending: newShares(mostSending, sendingOfOne), listeners: newShares(mostListeners, listenersOfOne),
		outgoing: newOutgoing(c.Memory),
		requests: newBuckets(requestRate, requestBurst), attempts: newBuckets(attemptRate, attemptBurst),
		pool: newPool(c.Memory), answers: newAnswers(), recheck: recheck,
		asking: func(ctx context.Context, a *asked, env query.Env) (any, error) { return a.Run(ctx, a.ask, env) },
	}
	if s.Events == nil {
		s.Events = &Events{}
	}
	s.routes = append(s.own(), c.More...)
	return s, nil
}

// own is what this package answers.
func (s *Server) own() []Route {
	get := func(path string, role Role, h http.HandlerFunc) Route {
		return Route{Method: "GET", Path: path, Role: role, Handler: h}
	}
	post := func(path string, role Role, body int64, h http.HandlerFunc) Route {
		return Route{Method: "POST", Path: path, Role: role, Body: body, Handler: h}
	}
	html := func(text string) http.HandlerFunc { return fixed("text/html; charset=utf-8", text) }
	list := []Route{
		get("/healthz", Public, fixed(ask.Text, "ok\n")),
		get("/login", Public, html(s.assets.login)),
		post("/login", Public, 4<<10, s.login),
		get("/session", Public, s.session),
		get("/favicon.ico", Public, s.assets.icon),
		get("/open/{build}/{file}", Public, s.assets.open),
		get("/assets/{build}/{file...}", Read, s.assets.closed),
		post("/logout", Read, 0, s.logout),
		get("/{$}", Read, html(s.assets.index)),
		get("/api/{$}", Read, s.index),
		get("/api/openapi.json", Read, s.openAPI),
		get("/api/me", Read, s.me),
		get("/api/sources", Read, fixed("text/markdown; charset=utf-8", docs.Seeds)),
		get("/api/events", Read, s.listen),
		post("/api/files", Read, maxUpload, s.upload),
		get("/api/scene", Read, s.scene),
		get("/api/plan/files", Read, s.planFiles),
	}
	for _, v := range views {
		list = append(list, get("/"+v, Read, html(s.assets.index)))
	}
	for _, q := range questions() {
		list = append(list, get("/api/"+q.Route, Read, s.answer(q)))
	}
	return list
}

// views are the parts of the page, each under a path of its own and linked by index.html.
var views = func() (list []string) {
	html, _ := page.ReadFile("page/index.html") // newAssets reports what is not there
	for _, link := range strings.Split(string(html), `<a href="/`)[1:] {
		name, _, _ := strings.Cut(link, `"`)
		list = append(list, name)
	}
	return list
}()

// Handler is the server as net/http takes it.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range s.routes {
		mux.Handle(rt.Method+" "+rt.Path, s.entry(rt))
	}
	return s.guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		b := &buffered{header: w.Header(), bounded: bounded{most: 1 << 10}}
		h.ServeHTTP(b, r) // says which methods there are, but not in JSON
		if methods := w.Header().Get("Allow"); methods != "" {
			Fail(w, b.code, fmt.Sprintf("%.80q is asked with %s, not with %.20q", r.URL.Path, methods, r.Method))
			return
		}
		Fail(w, http.StatusNotFound, fmt.Sprintf("there is nothing at %.80q", r.URL.Path))
	}))
}

// fixed answers with a text that does not change.
func fixed(mime, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		headed(w, mime, "no-cache")
		_, _ = io.WriteString(w, text)
	}
}

// me is who is logged in, for the page's head, and whether there is a fleet to ask about.
func (s *Server) me(w http.ResponseWriter, r *http.Request) {
	who := Requester(r)
	fleet := slices.ContainsFunc(s.routes, func(rt Route) bool { return rt.Path == "/api/fleet/nodes" })
	Reply(w, map[string]any{"name": who.Name, "role": who.Role.String(), "version": s.Version, "fleet": fleet})
}

// Serve answers until the context ends, and then finishes what it began. Who asks over a Unix socket is the server's
// own user, needs no token and may order: the listener lets nobody else in.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	go s.pool.watchHeap(ctx)
	base := ctx
	if l.Addr().Network() == "unix" {
		base = context.WithValue(ctx, ownUserKey{}, true)
	}
	h := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second, // uploads ask for more
		WriteTimeout:      2 * time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnContext:       withConn,
		ErrorLog:          log.New(io.Discard, "", 0), // clients that break off are no news
	}
	done := make(chan error, 1)
	go func() { done <- h.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if err := h.Shutdown(end); err != nil {
		h.Close()
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
