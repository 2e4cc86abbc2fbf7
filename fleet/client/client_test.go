package client_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"busbar.dev/fleet"
	"busbar.dev/fleet/client"
	"busbar.dev/fleet/server"
	"busbar.dev/internal/failure"
	"busbar.dev/web"
)

func TestMain(m *testing.M) {
	for _, v := range []string{"BUSBAR_TOKEN", "BUSBAR_SERVER", "BUSBAR_SERVER_CA"} {
		os.Unsetenv(v) // of whoever runs the tests
	}
	m.Run()
}

// served is a server on this machine.
type served struct {
	t       *testing.T
	options server.Options
	address string // of its page
	stop    func()
}

// serve starts a server with a folder of its own, and returns when it answers.
func serve(t *testing.T, change func(*server.Options)) *served {
	t.Helper()
	s := &served{t: t, options: server.Options{Folder: client.Folder{Data: t.TempDir()}, Listen: "127.0.0.1:0"}}
	s.options.BusListen, s.options.NoLocal, s.options.Keep = "127.0.0.1:0", true, "0"
	if change != nil {
		change(&s.options)
	}
	s.start()
	return s
}

func (s *served) start() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- server.Run(ctx, s.options, server.Env{
			Page: web.Config{Version: "test"},
			Note: func(string) {}, Ready: func(address, _ string) { ready <- address },
		})
	}()
	s.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
		s.stop = func() {}
	}
	s.t.Cleanup(func() { s.stop() })
	select {
	case s.address = <-ready:
	case err := <-ended:
		s.t.Fatal(err)
	}
}

// token is a file with a new token.
func (s *served) token(name string, role web.Role) string {
	s.t.Helper()
	tokens, err := server.Tokens(s.options.Folder)
	if err != nil {
		s.t.Fatal(err)
	}
	secret, err := tokens.Add(name, role)
	if err != nil {
		s.t.Fatal(err)
	}
	return file(s.t, secret+"\n")
}

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// nodes asks a server for its nodes.
func nodes(t *testing.T, o client.Options) error {
	t.Helper()
	var got fleet.NodesReply
	return client.New(o).Call(t.Context(), "GET", "/api/fleet/nodes", nil, &got)
}

// refused checks that an error says what to do, and whose fault it is.
func refused(t *testing.T, what string, err error, cannot bool, texts ...string) {
	t.Helper()
	if err == nil || errors.Is(err, failure.ErrCannot) != cannot {
		t.Errorf("%s: %v; expected an error, not the question's fault: %v", what, err, cannot)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v; expected %q", what, err, text)
		}
	}
}

func TestTokens(t *testing.T) {
	s := serve(t, nil)
	if err := nodes(t, client.Options{Folder: s.options.Folder}); err != nil {
		t.Errorf("beside its server: %v", err)
	}
	away := client.Options{Folder: client.Folder{Data: t.TempDir()}, Server: s.address}
	refused(t, "without a token", nodes(t, away), true, "no token", "--token-file", "BUSBAR_TOKEN")
	away.TokenFile = s.token("reader", web.Read)
	if err := nodes(t, away); err != nil {
		t.Errorf("with a token: %v", err)
	}
	order := client.New(away).Call(t.Context(), "POST", "/api/fleet/orders", fleet.Order{}, &fleet.OrderReply{})
	refused(t, "an order of one who may read", order, true, s.address)
	away.TokenFile = file(t, "wrong\n")
	refused(t, "with a wrong token", nodes(t, away), true, "rejects the token (of --token-file "+away.TokenFile+")",
		"busbar serve token add")
	away.TokenFile = file(t, "two tokens\n")
	refused(t, "with two tokens", nodes(t, away), false, "expected one token")
	away.TokenFile += "x"
	refused(t, "without the file", nodes(t, away), true, "--token-file")
}

func TestTokenOfTheEnvironment(t *testing.T) {
	s := serve(t, nil)
	secret, err := os.ReadFile(s.token("reader", web.Read))
	if err != nil {
		t.Fatal(err)
	}
	away := client.Options{Folder: client.Folder{Data: t.TempDir()}, Server: s.address + "/"}
	t.Setenv("BUSBAR_TOKEN", strings.TrimSpace(string(secret)))
	if err := nodes(t, away); err != nil {
		t.Errorf("with BUSBAR_TOKEN: %v", err)
	}
	t.Setenv("BUSBAR_TOKEN", "wrong")
	refused(t, "with a wrong one", nodes(t, away), true, "(of BUSBAR_TOKEN)")
}

func TestWrongHost(t *testing.T) {
	s := serve(t, nil)
	o := client.Options{Folder: s.options.Folder}
	for _, at := range []string{"head:7641", "ftp://head:7641", "http://", "http://a b"} {
		o.Server = at
		refused(t, at, nodes(t, o), false, "--server", "https://host:7641")
	}
	// A name that is not the page's, as another page would use it that had it resolve to this machine.
	to, err := url.Parse(s.address)
	if err != nil {
		t.Fatal(err)
	}
	o.TokenFile = s.token("reader", web.Read) // the one of the folder goes to no other server
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = "elsewhere.example"
	}})
	defer proxy.Close()
	o.Server = proxy.URL
	refused(t, "another name", nodes(t, o), true, proxy.URL, "this server is not \"elsewhere.example\"")
	// A token is for one server: a redirect is not followed.
	followed := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed = true }))
	defer other.Close()
	moved := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer moved.Close()
	o.Server = moved.URL
	refused(t, "a redirect", nodes(t, o), true, moved.URL)
	if followed {
		t.Error("the token went to another server")
	}
	// What listens there speaks another protocol: the port for agents.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("INFO {}\r\n"))
			c.Close()
		}
	}()
	o.Server = "http://" + l.Addr().String()
	refused(t, "the port for agents", nodes(t, o), true, "the port for agents 7642")
}

// TestServerGone has a server end and come back, and one that ends in the middle of an answer.
func TestServerGone(t *testing.T) {
	s := serve(t, nil)
	cl := client.New(client.Options{Folder: s.options.Folder})
	ask := func() error { return cl.Call(t.Context(), "GET", "/api/fleet/nodes", nil, &fleet.NodesReply{}) }
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	s.stop()
	err := ask()
	refused(t, "the server has ended", err, true, s.address, "does busbar serve run there?")
	if !errors.Is(err, fleet.ErrGone) || errors.Is(err, fleet.ErrReading) {
		t.Errorf("%v is not one that may pass", err)
	}
	s.options.Listen = strings.TrimPrefix(s.address, "http://")
	s.start()
	if err := ask(); err != nil {
		t.Errorf("the server is back: %v", err)
	}
	half := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(`{"nodes": [`))
	}))
	defer half.Close()
	err = nodes(t, client.Options{Folder: s.options.Folder, Server: half.URL, TokenFile: s.token("reader", web.Read)})
	refused(t, "half an answer", err, true)
	if !errors.Is(err, fleet.ErrGone) {
		t.Errorf("%v is not one that may pass", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := cl.Call(ctx, "GET", "/api/fleet/nodes", nil, &fleet.NodesReply{}); !errors.Is(err, context.Canceled) {
		t.Errorf("who no longer wants to know: %v", err)
	}
}

// TestCertificates has a server whose certificate nobody knows who is not told.
func TestCertificates(t *testing.T) {
	s := serve(t, func(o *server.Options) { o.Self = true })
	if err := nodes(t, client.Options{Folder: s.options.Folder}); err != nil {
		t.Errorf("beside it: %v", err)
	}
	away := client.Options{
		Folder: client.Folder{Data: t.TempDir()}, Server: s.address, TokenFile: s.token("reader", web.Read),
	}
	refused(t, "a certificate that is not known", nodes(t, away), true, "unknown authority",
		"--server-ca or BUSBAR_SERVER_CA", server.CertificateFile)
	away.CA = filepath.Join(s.options.Data, server.CertificateFile)
	if err := nodes(t, away); err != nil {
		t.Errorf("with its certificate: %v", err)
	}
	away.CA = file(t, "hello\n")
	refused(t, "a file without a certificate", nodes(t, away), false, "there is no certificate in it")
	away.CA = filepath.Join(t.TempDir(), "none")
	refused(t, "no such file", nodes(t, away), true, "--server-ca")
	away.CA = ""
	away.Server = "http://" + strings.TrimPrefix(s.address, "https://")
	refused(t, "http for https", nodes(t, away), true, "expected https://")
}
