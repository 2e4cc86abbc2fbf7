package web

import (
	"crypto/hmac"
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

// change changes the token of a name.
func (t *Tokens) change(name string, change func(*Token)) error {
	return t.edit(func(f *tokenFile) error {
		for i := range f.Tokens {
			if f.Tokens[i].Name == name {
				change(&f.Tokens[i])
			}
		}
		return nil
	})
}

// spend makes a token that is for one session useless to whoever else has its secret, and gives it as it is then. It is
// false where another was faster.
func (t *Tokens) spend(x Token) (spent Token, ok bool, err error) {
	err = t.change(x.Name, func(y *Token) {
		if y.Hash == x.Hash && y.Once {
			y.Hash, y.Once, y.Spent = hashOf(newSecret()), false, true // which nobody has
			spent, ok = *y, true
		}
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
	_ = t.change(name, func(x *Token) { x.Used = now.UTC().Truncate(time.Second) })
}

// sign makes the value of a session's cookie: which token opened it, until when it lasts, and how often the token's
// sessions had been ended, signed. The token's secret is not in it.
func (t *Tokens) sign(x Token, until time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := fmt.Sprintf("%s.%d.%d", x.Hash[:16], until.Unix(), x.Ended)
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
	part := strings.Split(cookie, ".")
	if len(part) != 4 || t.refresh() != nil {
		return Token{}, false
	}
	signed := strings.Join(part[:3], ".")
	if subtle.ConstantTimeCompare([]byte(part[3]), []byte(t.mac(signed))) != 1 {
		return Token{}, false
	}
	until, err := strconv.ParseInt(part[1], 10, 64)
	i := slices.IndexFunc(t.file.Tokens, func(x Token) bool {
		return strings.HasPrefix(x.Hash, part[0]) && strconv.FormatInt(x.Ended, 10) == part[2]
	})
	if err != nil || now.Unix() >= until || i < 0 || roleNamed(t.file.Tokens[i].Role) == Public {
		return Token{}, false
	}
	return t.file.Tokens[i], true
}

// end ends the sessions of a cookie's token for good, on every server that uses the file.
func (t *Tokens) end(cookie string, now time.Time) error {
	x, ok := t.session(cookie, now)
	if !ok {
		return nil
	}
	return t.change(x.Name, func(x *Token) { x.Ended++ })
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
	case !ok && s.guessing(w, r): // who has a good one is not kept out by others' guesses
		return
	case !ok:
		Fail(w, http.StatusUnauthorized, "no such token, or it was for one login; busbar serve token add NAME makes one")
		return
	}
	s.Tokens.touch(x.Name)
	until := time.Now().Add(sessionLasts)
	s.setCookie(w, s.Tokens.sign(x, until), until)
	Reply(w, map[string]string{"name": x.Name, "role": x.Role, "to": nextPage(r.PostForm.Get("to"))})
}

// setCookie gives the browser a session's cookie until a time.
func (s *Server) setCookie(w http.ResponseWriter, value string, until time.Time) {
	http.SetCookie(w, &http.Cookie{
		Name: s.cookie, Value: value, Path: "/", Expires: until,
		HttpOnly: true, Secure: s.Secure, SameSite: http.SameSiteStrictMode,
	})
}

// nextPage is where to go after logging in: a view of this page and nothing else, whatever an address says.
func nextPage(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Host != "" || !strings.HasPrefix(u.Path, "/") || !slices.Contains(views, u.Path[1:]) {
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

// logout ends the sessions of the browser's token: their cookies open nothing any more, whoever has a copy.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(s.cookie); err == nil {
		if err := s.Tokens.end(c.Value, time.Now()); err != nil {
			Fail(w, http.StatusInternalServerError, "the session could not be ended: "+reason(err))
			return
		}
	}
	s.setCookie(w, "", time.Unix(1, 0)) // which takes it away
	Reply(w, map[string]string{"done": "logged out"})
}
