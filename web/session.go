package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sessionLasts is how long a browser stays logged in.
const sessionLasts = 7 * 24 * time.Hour

// roleNamed is the role of a word in the file of tokens; a word that is none gives
// no rights.
func roleNamed(text string) Role {
	switch text {
	case "read":
		return Read
	case "order":
		return Order
	}
	return Public
}

// check finds the token that a secret belongs to. All entries are compared, each
// in constant time, so that how long it takes says nothing.
func (t *Tokens) check(secret string) (Token, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refresh() != nil {
		return Token{}, false
	}
	hash := []byte(hashOf(secret))
	var found Token
	ok := false
	for _, x := range t.file.Tokens {
		if subtle.ConstantTimeCompare(hash, []byte(x.Hash)) == 1 {
			found, ok = x, true
		}
	}
	return found, ok && roleNamed(found.Role) != Public
}

// spend makes a token that is for one session useless to whoever else has its secret, and gives it as it is then. It is
// false where another was faster.
func (t *Tokens) spend(x Token) (spent Token, ok bool, err error) {
	err = t.edit(func(f *tokenFile) error {
		for i := range f.Tokens {
			if y := &f.Tokens[i]; y.Hash == x.Hash && y.Once {
				y.Hash, y.Once, y.Spent = hashOf(newSecret()), false, true // which nobody has
				spent, ok = *y, true
			}
		}
		return nil
	})
	return spent, ok, err
}

// touch notes that a token was used, now and then.
func (t *Tokens) touch(name string) {
	now := time.Now()
	t.mu.Lock()
	due := now.Sub(t.noted[name]) > usedEvery
	if due {
		t.noted[name] = now
	}
	t.mu.Unlock()
	if !due {
		return
	}
	// Not to know when it was used is no reason to refuse.
	_ = t.edit(func(f *tokenFile) error {
		for i := range f.Tokens {
			if f.Tokens[i].Name == name {
				f.Tokens[i].Used = now.UTC().Truncate(time.Second)
			}
		}
		return nil
	})
}

// sign makes the value of a session's cookie: which token opened it and until when
// it lasts, signed. The token's secret is not in it.
func (t *Tokens) sign(x Token, until time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if until.Unix() <= x.Until { // those that end by then do not count
		until = time.Unix(x.Until+1, 0)
	}
	var own [9]byte // so that one session can end without the others
	rand.Read(own[:])
	text := fmt.Sprintf("%s.%d.%s", x.Hash[:16], until.Unix(), base64.RawURLEncoding.EncodeToString(own[:]))
	return text + "." + t.mac(text)
}

// mac is the signature of a text. The caller holds mu.
func (t *Tokens) mac(text string) string {
	h := hmac.New(sha256.New, t.key)
	h.Write([]byte("session " + text))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// session finds the token of a cookie that sign made and that still counts.
func (t *Tokens) session(cookie string, now time.Time) (Token, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := strings.LastIndexByte(cookie, '.')
	if i < 0 || t.refresh() != nil {
		return Token{}, false
	}
	text := cookie[:i]
	if subtle.ConstantTimeCompare([]byte(cookie[i+1:]), []byte(t.mac(text))) != 1 {
		return Token{}, false
	}
	id, until := sessionOf(text)
	if now.Unix() >= until || t.ended(text) {
		return Token{}, false
	}
	for _, x := range t.file.Tokens {
		if strings.HasPrefix(x.Hash, id) && roleNamed(x.Role) != Public {
			return x, until > x.Until
		}
	}
	return Token{}, false
}

// sessionOf is the token that opened a session, by the beginning of its hash, and when the session ends.
func sessionOf(text string) (id string, until int64) {
	part := strings.Split(text, ".")
	if len(part) < 2 {
		return "", 0
	}
	until, err := strconv.ParseInt(part[1], 10, 64)
	if err != nil {
		return "", 0
	}
	return part[0], until
}

// ended reports a session that was logged out. The caller holds mu.
func (t *Tokens) ended(text string) bool {
	mark := hashOf(text)[:32]
	return slices.ContainsFunc(t.file.Ended, func(e endedSession) bool { return e.Mark == mark })
}

// end ends a session for good, on every server that uses the file.
func (t *Tokens) end(cookie string, now time.Time) error {
	if _, ok := t.session(cookie, now); !ok {
		return nil
	}
	text := cookie[:strings.LastIndexByte(cookie, '.')]
	id, until := sessionOf(text)
	return t.edit(func(f *tokenFile) error {
		f.Ended = slices.DeleteFunc(slices.Clone(f.Ended), func(e endedSession) bool { return e.Until <= now.Unix() })
		f.Ended = append(f.Ended, endedSession{hashOf(text)[:32], until, id})
		own := func(e endedSession) bool { return e.Token == id }
		count := 0
		for _, e := range f.Ended {
			if own(e) {
				count++
			}
		}
		if count <= endedOfOne && len(f.Ended) <= maxEnded {
			return nil
		}
		// Nobody logs out as often: all sessions of the token end, and nobody else's.
		for i := range f.Tokens {
			if x := &f.Tokens[i]; strings.HasPrefix(x.Hash, id) {
				x.Until = max(x.Until, now.Add(sessionLasts).Unix())
			}
		}
		f.Ended = slices.DeleteFunc(f.Ended, own)
		return nil
	})
}

// cookieName differs between servers: browsers send a cookie to every port of a
// host.
func (t *Tokens) cookieName() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := sha256.Sum256(append([]byte("name "), t.key...))
	return "busbar-" + hex.EncodeToString(h[:4])
}

// who finds out who asks: by a session's cookie or by a token in the Authorization
// header, where the listener does not say.
func (s *Server) who(r *http.Request) (Who, bool) {
	if r.Context().Value(ownUserKey{}) != nil {
		return Who{"local", Order}, true
	}
	if text := r.Header.Get("Authorization"); text != "" {
		secret, ok := strings.CutPrefix(text, "Bearer ")
		if !ok {
			return Who{}, false
		}
		x, ok := s.Tokens.check(strings.TrimSpace(secret))
		return Who{x.Name, roleNamed(x.Role)}, ok && !x.Once
	}
	c, err := r.Cookie(s.cookie)
	if err != nil {
		return Who{}, false
	}
	x, ok := s.Tokens.session(c.Value, time.Now())
	return Who{x.Name, roleNamed(x.Role)}, ok
}

// login takes a token and opens a session.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		Fail(w, http.StatusBadRequest, "expected a form with the token")
		return
	}
	x, ok := s.Tokens.check(strings.TrimSpace(r.PostForm.Get("token")))
	if ok && x.Once {
		var err error
		if x, ok, err = s.Tokens.spend(x); err != nil {
			Fail(w, http.StatusInternalServerError, "the token could not be used: "+reason(err))
			return
		}
	}
	switch {
	case !ok && !s.attempts.take(clientOf(r.RemoteAddr)): // who has a good one is not kept out by others' guesses
		s.refused.Add(1)
		w.Header().Set("Retry-After", "10")
		Fail(w, http.StatusTooManyRequests, "too many attempts; wait a little")
		return
	case !ok:
		s.refused.Add(1)
		Fail(w, http.StatusUnauthorized, "no such token, or it was for one login; busbar serve token add NAME makes one")
		return
	}
	s.Tokens.touch(x.Name)
	until := time.Now().Add(sessionLasts)
	http.SetCookie(w, &http.Cookie{
		Name: s.cookie, Value: s.Tokens.sign(x, until), Path: "/", Expires: until,
		HttpOnly: true, Secure: s.Secure, SameSite: http.SameSiteStrictMode,
	})
	Reply(w, map[string]string{"name": x.Name, "role": x.Role, "to": nextPage(r.PostForm.Get("to"))})
}

// nextPage is where to go after logging in: a view of this page and nothing else, whatever an address says.
func nextPage(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Opaque != "" || u.User != nil ||
		strings.ContainsAny(to, "\\\t\r\n") {
		return "/"
	}
	if !slices.Contains(views, strings.TrimPrefix(u.Path, "/")) || !strings.HasPrefix(u.Path, "/") {
		return "/"
	}
	return (&url.URL{Path: u.Path, RawQuery: u.RawQuery, Fragment: u.Fragment}).String()
}

// session says whether the browser is logged in. One that follows a link from another
// site does not send its cookie; the page to log in asks here and goes on.
func (s *Server) session(w http.ResponseWriter, r *http.Request) {
	_, ok := s.who(r)
	Reply(w, map[string]any{"open": ok, "to": nextPage(r.URL.Query().Get("to"))})
}

// logout ends the browser's session: its cookie opens nothing any more, whoever has a copy.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(s.cookie); err == nil {
		if err := s.Tokens.end(c.Value, time.Now()); err != nil {
			Fail(w, http.StatusInternalServerError, "the session could not be ended: "+reason(err))
			return
		}
	}
	http.SetCookie(w, &http.Cookie{
		Name: s.cookie, Path: "/", MaxAge: -1, HttpOnly: true, Secure: s.Secure, SameSite: http.SameSiteStrictMode,
	})
	Reply(w, map[string]string{"done": "logged out"})
}
