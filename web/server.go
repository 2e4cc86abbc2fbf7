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
	"sync/atomic"
	"time"

	"busbar.dev/ask"
	"busbar.dev/query"
)

// Server is the page and what it asks.
type Server struct {
	Config
	routes   []Route
	cookie   string
	requests *buckets
	attempts *buckets
	pool     *pool
	answers  *answers
	shelf    *uploadStore
	sending  *sending
	outgoing *outgoing
	assets   *assets
	recheck  time.Duration
	// asking answers a question; tests answer themselves.
	asking func(ctx context.Context, a *asked, env query.Env) (document any, err error)

	refused, broken atomic.Int64
}

// Limits of what one client may ask: a page loads some forty files at once, and a
// slider asks about ten times a second.
const (
	requestRate  = 50
	requestBurst = 400
	attemptRate  = 0.1
	attemptBurst = 10
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
		Config: c, cookie: c.Tokens.cookieName(), assets: a, shelf: shelf, sending: &sending{each: map[string]int{}},
		outgoing: newOutgoing(c.Memory),
		requests: newBuckets(requestRate, requestBurst), attempts: newBuckets(attemptRate, attemptBurst),
		pool: newPool(newMemory(c.Memory)), answers: newAnswers(), recheck: recheck,
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
	list := []Route{
		{Method: "GET", Path: "/healthz", Role: Public, Handler: http.HandlerFunc(s.health)},
		{Method: "GET", Path: "/login", Role: Public, Handler: http.HandlerFunc(s.assets.loginPage)},
		{Method: "POST", Path: "/login", Role: Public, Body: 4 << 10, Handler: http.HandlerFunc(s.login)},
		{Method: "GET", Path: "/session", Role: Public, Handler: http.HandlerFunc(s.session)},
		{Method: "GET", Path: "/favicon.ico", Role: Public, Handler: http.HandlerFunc(s.assets.icon)},
		{Method: "GET", Path: "/open/{build}/{file}", Role: Public, Handler: http.HandlerFunc(s.assets.open)},
		{Method: "GET", Path: "/assets/{build}/{file...}", Role: Read, Handler: http.HandlerFunc(s.assets.closed)},
		{Method: "POST", Path: "/logout", Role: Read, Handler: http.HandlerFunc(s.logout)},
		{Method: "GET", Path: "/{$}", Role: Read, Handler: http.HandlerFunc(s.assets.page)},
		{Method: "GET", Path: "/api/{$}", Role: Read, Handler: http.HandlerFunc(s.index)},
		{Method: "GET", Path: "/api/me", Role: Read, Handler: http.HandlerFunc(s.me)},
		{Method: "GET", Path: "/api/events", Role: Read, Handler: http.HandlerFunc(s.listen)},
		{Method: "POST", Path: "/api/files", Role: Read, Body: maxUpload, Handler: http.HandlerFunc(s.upload)},
		{Method: "GET", Path: "/api/scene", Role: Read, Handler: http.HandlerFunc(s.scene)},
		{Method: "GET", Path: "/api/plan/files", Role: Read, Handler: http.HandlerFunc(s.planFiles)},
		{Method: "POST", Path: "/api/doctor", Role: Read, Body: maxLogs, Handler: s.examines(ask.Named("doctor"))},
		{Method: "POST", Path: "/api/hang", Role: Read, Body: maxLogs, Handler: s.examines(ask.Named("hang"))},
	}
	for _, v := range views {
		list = append(list, Route{Method: "GET", Path: "/" + v, Role: Read, Handler: http.HandlerFunc(s.assets.page)})
	}
	for _, q := range questions() {
		list = append(list, Route{Method: "GET", Path: "/api/" + q.Route, Role: Read, Handler: s.answer(q)})
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
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if methods := allowed(mux, r); len(methods) > 0 {
			w.Header().Set("Allow", strings.Join(methods, ", "))
			Fail(w, http.StatusMethodNotAllowed,
				fmt.Sprintf("%.80q is asked with %s, not with %.20q", r.URL.Path, strings.Join(methods, " or "), r.Method))
			return
		}
		Fail(w, http.StatusNotFound, fmt.Sprintf("there is nothing at %.80q", r.URL.Path))
	})
	return s.guard(mux)
}

// allowed are the methods that an address is asked with; none where there is nothing.
func allowed(mux *http.ServeMux, r *http.Request) (list []string) {
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		as := r.Clone(r.Context())
		as.Method = m
		if _, pattern := mux.Handler(as); strings.HasPrefix(pattern, m+" ") {
			list = append(list, m)
		}
	}
	return list
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
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
	go s.pool.memory.run(ctx)
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
