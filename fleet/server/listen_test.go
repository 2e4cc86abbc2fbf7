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
