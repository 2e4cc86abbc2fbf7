package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"busbar.dev/fleet/bus"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/internal/test/freeport"
)

// TestFleetWrong is what people get wrong at first: each error says what to do.
func TestFleetWrong(t *testing.T) {
	dir := t.TempDir()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	gone := freeport.Address(t)
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error": "log in"}`))
	}))
	defer plain.Close()
	secure := httptest.NewTLSServer(plain.Config.Handler)
	defer secure.Close()
	secure.Config.ErrorLog = nil

	keys, err := bus.OpenKeys(filepath.Join(dir, "keys"))
	if err != nil {
		t.Fatal(err)
	}
	creds, _, err := keys.Issue("gpu01", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	file, none := filepath.Join(dir, "gpu01.creds"), filepath.Join(dir, "none.creds")
	for f, data := range map[string][]byte{file: creds, none: []byte("hello")} {
		if err := os.WriteFile(f, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := filepath.Join(dir, "token")
	if err := os.WriteFile(old, []byte("old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BUSBAR_TOKEN", "token")
	t.Setenv("BUSBAR_CREDS", "")
	host := func(u string) string { _, h, _ := strings.Cut(u, "://"); return h }
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"page's port taken", []string{
			"serve", "--no-agent", "--data", dir, "--listen", taken.Addr().String(), "--bus-listen", gone,
		}, 3, "or give another port, such as --listen"},
		{
			"agents' port taken", []string{
				"serve", "--no-agent", "--data", dir, "--listen", gone, "--bus-listen", taken.Addr().String(),
			}, 3, "or give another port, such as --bus-listen",
		},
		{"no server", []string{"fleet", "nodes", "--server", "http://" + gone}, 3, "does busbar serve run there?"},
		{"http for https", []string{"fleet", "nodes", "--server", "https://" + host(plain.URL)}, 3, "expected http://"},
		{"https for http", []string{"fleet", "nodes", "--server", "http://" + host(secure.URL)}, 3, "expected https://"},
		{"unknown certificate", []string{"fleet", "nodes", "--server", secure.URL}, 3, "BUSBAR_SERVER_CA names"},
		{
			"unknown token",
			[]string{"fleet", "order", "list", "--server", plain.URL},
			3,
			"the token (of BUSBAR_TOKEN); busbar serve token add NAME",
		},
		{
			"unknown token of a file",
			[]string{"fleet", "order", "list", "--server", plain.URL, "--token-file", old},
			3,
			"(of --token-file " + old + ")",
		},
		{
			"credentials of another",
			[]string{"agent", "--join", "nats://" + gone, "--creds", file, "--name", "gpu02"},
			2,
			"are for gpu01",
		},
		{
			"no credentials in it",
			[]string{"agent", "--join", "nats://" + gone, "--creds", none},
			2,
			"busbar serve token node NAME -o FILE",
		},
		{
			"no such file",
			[]string{"agent", "--join", "nats://" + gone, "--creds", file + "x"},
			2,
			"busbar serve token node NAME -o FILE",
		},
		{"page's scheme", []string{"agent", "--join", "http://" + gone, "--creds", file}, 2, "such as tls://host:7642"},
		{"no scheme", []string{"agent", "--join", "head:7642", "--creds", file}, 2, "such as tls://host:7642"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit) // against hanging
			defer cancel()
			var stdout, stderr written
			if code := run(ctx, strings.NewReader(""), &stdout, &stderr, c.args); code != c.code ||
				!strings.Contains(stderr.String(), c.want) {
				t.Errorf("exit code %d, %s; expected %d and %q", code, stderr.String(), c.code, c.want)
			}
		})
	}
}

// TestSecondAgentGivesUp has a second agent come with the credentials of one that runs: it ends and says why,
// the first goes on, and the fleet tells of it.
func TestSecondAgentGivesUp(t *testing.T) {
	t.Parallel()
	f := newServedFleet(t)
	creds := filepath.Join(t.TempDir(), "n1.creds")
	if code, _, errs := f.busbar("serve", "token", "node", "n1", "-o", creds); code != exitDone {
		t.Fatal(errs)
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	port := func() string {
		_, port, err := net.SplitHostPort(freeport.Address(t))
		if err != nil {
			t.Fatal(err)
		}
		return port
	}
	its, others := port(), port()
	start := func(dir, port string) (*written, chan int) {
		said, ended := &written{}, make(chan int, 1)
		wg.Go(func() {
			ended <- run(ctx, strings.NewReader(""), said, said, []string{
				"agent", "--join", "nats://" + f.bus, "--creds", creds, "--data", dir, "--meet-port", port,
			})
		})
		return said, ended
	}
	mine := t.TempDir()
	first, over := start(mine, its)
	eventually.Holds(f.t, "n1 is up", func() bool {
		_, out, _ := f.busbar("fleet", "nodes")
		return strings.Contains(out, "n1") && strings.Contains(out, "up")
	})
	for range 4 { // as something does that starts it again and again
		second, gone := start(t.TempDir(), others)
		select {
		case code := <-gone:
			if code != exitCannot || !strings.Contains(second.String(), "another agent uses the name n1") ||
				!strings.Contains(second.String(), " at 127.0.0.1:"+its) {
				t.Errorf("the second: exit %d, %s", code, second.String())
			}
		case code := <-over:
			t.Fatalf("the first ended with %d: %s", code, first.String())
		case <-time.After(eventually.Limit):
			t.Fatalf("the second goes on: %s", second.String())
		}
	}
	_, out, _ := f.busbar("fleet", "nodes", "--json")
	if !strings.Contains(out, ":"+its) || strings.Contains(out, ":"+others) || !strings.Contains(out, `"state": "up"`) {
		t.Errorf("the second took the first one's place: %s", out)
	}
	eventually.Holds(f.t, "a finding", func() bool {
		_, out, _ := f.busbar("fleet", "nodes")
		return strings.Contains(out, "two agents use the name n1")
	})
	// The folder of one that runs is no other's either.
	third, gone := start(mine, others)
	if code := <-gone; code != exitCannot || !strings.Contains(third.String(), "another process uses this folder") {
		t.Errorf("in the same folder: exit %d, %s", code, third.String())
	}
	select {
	case code := <-over:
		t.Errorf("the first ended with %d: %s", code, first.String())
	default:
	}
}

// TestAgentSaysWhy has agents that cannot connect say what to do: one whose credentials are withdrawn, and one
// that was given the page's port.
func TestAgentSaysWhy(t *testing.T) {
	t.Parallel()
	f := newServedFleet(t)
	creds := filepath.Join(t.TempDir(), "n1.creds")
	if code, _, errs := f.busbar("serve", "token", "node", "n1", "-o", creds); code != exitDone {
		t.Fatal(errs)
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	start := func(at string) *written {
		said, dir := &written{}, t.TempDir()
		wg.Go(func() {
			run(ctx, strings.NewReader(""), said, said, []string{
				"agent", "--join", "nats://" + at, "--creds", creds, "--data", dir, "--bind", "127.0.0.1",
			})
		})
		return said
	}
	page, node := start(f.page), start(f.bus)
	eventually.Holds(f.t, "it is connected", func() bool { return strings.Contains(node.String(), "connected to") })
	if code, _, errs := f.busbar("serve", "token", "node", "n1", "--revoke"); code != exitDone {
		t.Fatal(errs)
	}
	eventually.Holds(f.t, "the words about credentials", func() bool {
		return strings.Contains(node.String(), "they were revoked") &&
			strings.Contains(node.String(), "read again at each try")
	})
	eventually.Holds(f.t, "the words about the port",
		func() bool { return strings.Contains(page.String(), "is this the port for agents?") })
	// New credentials are taken without a new start.
	if code, _, errs := f.busbar("serve", "token", "node", "n1", "-o", creds); code != exitDone {
		t.Fatal(errs)
	}
	eventually.Holds(f.t, "it is connected again",
		func() bool { return strings.Count(node.String(), "connected to") > 1 })
}
