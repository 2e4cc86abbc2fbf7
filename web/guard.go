package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// policy lets the page load from this server and nowhere else. Pictures that a
// view offers to save are made as blobs.
const policy = "default-src 'self'; img-src 'self' data: blob:; base-uri 'none'; form-action 'self'; frame-ancestors " +
	"'none'; object-src 'none'"

// guard is what stands before every route.
func (s *Server) guard(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		Fail(w, http.StatusForbidden, "asked by another site's page")
	}))
	next = cross.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if s.Secure {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		defer s.survive(w)
		switch {
		case !s.named(r.Host):
			Fail(w, http.StatusMisdirectedRequest, fmt.Sprintf("this server is not %.80q; ask it by its address", r.Host))
		case !s.requests.take(clientOf(r.RemoteAddr)):
			h.Set("Retry-After", "1")
			Fail(w, http.StatusTooManyRequests, "too many requests; wait a little")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// survive keeps the server alive when a handler is broken.
func (s *Server) survive(w http.ResponseWriter) {
	switch p := recover(); p {
	case nil:
	case http.ErrAbortHandler:
		panic(p)
	default:
		s.tell(fmt.Sprintf("a handler broke: %v", p))
		Fail(w, http.StatusInternalServerError, "this is a fault of the server; its log says more")
	}
}

// named reports whether the server may be asked under a name.
func (s *Server) named(hostport string) bool {
	if len(s.Hosts) == 0 {
		return true
	}
	return slices.Contains(s.Hosts, strings.ToLower((&url.URL{Host: hostport}).Hostname()))
}

// Loopback are the names of this machine to itself, for Config.Hosts.
func Loopback() []string { return []string{"127.0.0.1", "::1", "localhost"} }

// entry is a route's handler behind its role and its bound on bodies.
func (s *Server) entry(rt Route) http.Handler {
	most := rt.Body
	if most == 0 {
		most = 64 << 10
	}
	handler := rt.Handler
	if rt.Computes {
		handler = s.computed(handler)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > most {
			w.Header().Set("Connection", "close") // or all of it would be waited for
			Fail(w, http.StatusRequestEntityTooLarge,
				fmt.Sprintf("the body has %d bytes; expected at most %d", r.ContentLength, most))
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, most)
		if _, err := url.ParseQuery(r.URL.RawQuery); err != nil { // else what cannot be read would count as not asked
			Fail(w, http.StatusBadRequest, fmt.Sprintf("malformed query: %.100v; expected name=value&…, percent-encoded", err))
			return
		}
		if rt.Role == Public {
			handler.ServeHTTP(w, r)
			return
		}
		who, ok := s.who(r)
		switch {
		case !ok && r.Header.Get("Authorization") != "" && s.guessing(w, r):
		case !ok && isPage(r):
			http.Redirect(w, r, "/login?to="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		case !ok:
			w.Header().Set("WWW-Authenticate", `Bearer realm="busbar"`)
			Fail(w, http.StatusUnauthorized, "log in, or send a token that this server knows: Authorization: Bearer TOKEN")
		case who.Role < rt.Role:
			Fail(w, http.StatusForbidden,
				fmt.Sprintf("the token %s may %v; this takes one that may %v", who.Name, who.Role, rt.Role))
		default:
			s.Tokens.touch(who.Name)
			proven(r.Context(), who.Name)
			handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), whoKey{}, who)))
		}
	})
}

// guessing refuses who has shown many tokens that are none.
func (s *Server) guessing(w http.ResponseWriter, r *http.Request) bool {
	if s.attempts.take(clientOf(r.RemoteAddr)) {
		return false
	}
	w.Header().Set("Retry-After", "10")
	Fail(w, http.StatusTooManyRequests, "too many attempts; wait a little")
	return true
}

// isPage reports a browser that goes to a page, rather than a script that asks.
func isPage(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") &&
		!strings.HasPrefix(r.URL.Path, "/api/")
}
