package server

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"busbar.dev/fleet/client"
	"busbar.dev/internal/outfile"
	"busbar.dev/web"
)

// TestTrustIsForOneCertificate has the folder's certificate trusted, and no other for its sake.
func TestTrustIsForOneCertificate(t *testing.T) {
	t.Setenv("BUSBAR_TOKEN", "")
	other := httptest.NewUnstartedServer(http.NotFoundHandler())
	cert, err := SelfSigned(t.TempDir(), "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	other.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	other.StartTLS()
	defer other.Close()
	data := t.TempDir()
	o := &Options{}
	mine, err := SelfSigned(data, "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		left tls.Certificate
		want string
	}{{mine, "is not that of the server"}, {cert, "404"}} {
		if err := o.local(data, other.Listener.Addr(),
			&tls.Config{Certificates: []tls.Certificate{x.left}, MinVersion: tls.VersionTLS12}).Write(data); err != nil {
			t.Fatal(err)
		}
		if err := outfile.Private(filepath.Join(data, client.TokenFile), []byte("token\n")); err != nil {
			t.Fatal(err)
		}
		cl := client.New(client.Options{Folder: client.Folder{Data: data}})
		if err := cl.Call(t.Context(), "GET", "/", nil, nil); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v, expected %s", err, x.want)
		}
	}
}

// TestFirstToken has a server started again and again: the address that nobody used is replaced, and there is none once
// somebody has a token.
func TestFirstToken(t *testing.T) {
	dir := t.TempDir()
	tokens, err := Tokens(client.Folder{Data: dir})
	if err != nil {
		t.Fatal(err)
	}
	start := func() string {
		t.Helper()
		secret, err := firstToken(tokens)
		if err == nil {
			err = localToken(tokens, dir)
		}
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	one, two := start(), start()
	if one == "" || two == "" || one == two {
		t.Errorf("nobody logged in: %q, then %q; want two tokens", one, two)
	}
	if _, err := tokens.Add("alice", web.Read); err != nil {
		t.Fatal(err)
	}
	if three := start(); three != "" {
		t.Error("alice has a token, and another is printed")
	}
	list, err := tokens.List()
	if err != nil || len(list) != 2 || list[0].Name != "alice" && list[1].Name != "alice" {
		t.Errorf("%+v, %v; want alice and local", list, err)
	}
}
