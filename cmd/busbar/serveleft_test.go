package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"busbar.dev/fleet/server"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/internal/test/freeport"
)

// TestCommandsBesideTheirServer has commands find a server by its folder alone, whatever certificate it shows.
func TestCommandsBesideTheirServer(t *testing.T) {
	for _, v := range []string{"BUSBAR_SERVER", "BUSBAR_SERVER_CA", "BUSBAR_TOKEN"} {
		t.Setenv(v, "") // and back afterwards
		os.Unsetenv(v)
	}
	// A certificate for another name, as one has that stands behind something else.
	own := t.TempDir()
	if _, err := server.SelfSigned(own, "head.example"); err != nil {
		t.Fatal(err)
	}
	cert, key := filepath.Join(own, server.CertificateFile), filepath.Join(own, "self-signed.key")
	for name, more := range map[string][]string{
		"plain":         nil,
		"self-signed":   {"--tls-self-signed"},
		"a certificate": {"--tls-cert", cert, "--tls-key", key},
	} {
		t.Run(name, func(t *testing.T) {
			data, page, agents := t.TempDir(), freeport.Address(t), freeport.Address(t)
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			defer wg.Wait()
			defer stop()
			var served written
			wg.Go(func() {
				run(ctx, strings.NewReader(""), &served, &served,
					append([]string{"serve", "--no-agent", "--data", data, "--listen", page, "--bus-listen", agents}, more...))
			})
			ask := func(args ...string) (int, string) {
				var out written
				return run(ctx, strings.NewReader(""), &out, &out, append(args, "--data", data)), out.String()
			}
			eventually.Holds(t, "the server's address", func() bool { return strings.Contains(served.String(), page) })
			for _, args := range [][]string{{"fleet", "nodes"}, {"fleet", "order", "list"}} {
				if code, out := ask(args...); code != exitDone {
					t.Errorf("%v: exit %d, %s", args, code, out)
				}
			}
			secure := strings.HasPrefix(strings.Join(more, " "), "--tls")
			if secure {
				if code, out := ask("fleet", "nodes", "--server", "https://"+page); code != exitDone {
					t.Errorf("by its address: exit %d, %s", code, out)
				}
			}
			scheme, ca := "nats://", ""
			if secure {
				scheme = "tls://"
			}
			if name == "self-signed" {
				ca = " --tls-ca self-signed.pem"
			}
			if code, out := ask("serve", "token", "node", "gpu01", "-o", filepath.Join(own, "gpu01.creds")); code != exitDone ||
				!strings.Contains(out, "busbar agent --creds gpu01.creds --join "+scheme+agents+ca) {
				t.Errorf("what an agent is to join: exit %d, %s", code, out)
			}
			// Who asks from elsewhere has a token, and the certificate if it needs one.
			if name == "self-signed" {
				code, secret := ask("serve", "token", "add", "alice")
				token := filepath.Join(own, "token")
				if err := os.WriteFile(token, []byte(secret), 0o600); err != nil || code != exitDone {
					t.Fatalf("exit %d, %s, %v", code, secret, err)
				}
				away := []string{"fleet", "nodes", "--server", "https://" + page, "--token-file", token, "--data", t.TempDir()}
				var out written
				if code := run(ctx, strings.NewReader(""), &out, &out, away); code != exitCannot ||
					!strings.Contains(out.String(), "BUSBAR_SERVER_CA") {
					t.Errorf("without the certificate: exit %d, %s", code, out.String())
				}
				t.Setenv("BUSBAR_SERVER_CA", filepath.Join(data, server.CertificateFile))
				if code := run(ctx, strings.NewReader(""), &out, &out, away); code != exitDone {
					t.Errorf("with BUSBAR_SERVER_CA: exit %d, %s", code, out.String())
				}
			}
		})
	}
}
