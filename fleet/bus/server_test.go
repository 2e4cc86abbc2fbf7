package bus

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/internal/test/eventually"
)

func open(t testing.TB, c ServerConfig) (*Server, *Bus) {
	t.Helper()
	s, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Limit)
	defer cancel()
	b, err := s.Connect(Config{MaxBytes: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close(); s.Close() })
	if err := b.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	return s, b
}

func TestStartRefused(t *testing.T) {
	dir := t.TempDir()
	open(t, ServerConfig{Dir: dir, Listen: "-"})
	for name, c := range map[string]ServerConfig{
		"uses this folder":    {Dir: dir, Listen: "-"},
		"missing port":        {Dir: t.TempDir(), Listen: "localhost"},
		"unknown port":        {Dir: t.TempDir(), Listen: "localhost:x"},
		"no account seed":     {Dir: broken(t), Listen: "-"},
		"takes no connection": {Dir: t.TempDir(), Listen: "127.0.0.1:1"}, // a port of root's, or no listener
	} {
		if os.Geteuid() == 0 && c.Listen == "127.0.0.1:1" {
			continue // root may
		}
		s, err := Start(c)
		if err == nil {
			s.Close()
			t.Errorf("%q: started", name)
		} else if !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, url := range []string{"", "host", "http://host", "nats://", "nats://user:secret@host:4222"} {
		_, err := Connect(Config{URLs: []string{url}, Node: "n"})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// broken is a folder whose keys somebody has damaged. They must not be replaced: what was
// issued hangs on them.
func broken(t *testing.T) string {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "keys"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "keys", "account.nk"), []byte("SOAAA"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestKeysAreForTheirOwner(t *testing.T) {
	s, _ := open(t, ServerConfig{Dir: t.TempDir(), Listen: "-"})
	if _, _, err := s.Keys().Issue("n", 0); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(s.Keys().dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if i, err := f.Info(); err != nil || i.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", f.Name(), i.Mode(), err)
		}
	}
}

// TestPassedOver puts words into the stream that are no news.
func TestPassedOver(t *testing.T) {
	s, hub := open(t, ServerConfig{Dir: t.TempDir()})
	creds, _, err := s.Keys().Issue("odd", 0)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "c")
	if err := os.WriteFile(file, creds, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
	defer cancel()
	b, err := Connect(Config{URLs: []string{s.URL()}, Creds: file, Node: "odd"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	good, err := fleet.Encode(&fleet.Event{Seq: 1, At: time.Now(), Node: "another", Kind: fleet.KindLeft})
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{nil, []byte("{"), []byte("null"), good} {
		if _, err := b.nc.Request(publishTo+"odd", data, eventually.Limit); err != nil {
			t.Fatal(err)
		}
	}
	// The speaker goes on behind what it did not say itself.
	if err := b.Publisher().Publish(ctx, left("odd")); err != nil {
		t.Fatal(err)
	}
	if list, bad := stored(t, hub); bad != 4 || len(list) != 1 {
		t.Errorf("%d bad and %d good; 4 and 1 were said", bad, len(list))
	}
}

func TestTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := open(t, ServerConfig{
		Dir: t.TempDir(), TLS: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
	})
	creds, _, err := s.Keys().Issue("n", 0)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "c")
	if err := os.WriteFile(file, creds, 0o600); err != nil {
		t.Fatal(err)
	}
	addr := s.ns.Addr().String()
	for _, c := range []struct {
		url, ca string
		ok      bool
	}{
		{"tls://" + addr, ca, true},
		{"tls://" + addr, "", false}, // nobody signed it
	} {
		b, err := Connect(Config{URLs: []string{c.url}, Creds: file, CA: c.ca})
		if (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil {
			b.Close()
		}
	}
}

// BenchmarkSay is one speaker that waits for each answer, with and without waiting for the disk.
func BenchmarkSay(b *testing.B) {
	for _, lazy := range []bool{false, true} {
		b.Run(fmt.Sprintf("lazy=%v", lazy), func(b *testing.B) {
			_, hub := open(b, ServerConfig{Dir: b.TempDir(), Listen: "-", Lazy: lazy})
			s := hub.Publisher()
			for b.Loop() {
				n := &fleet.Event{
					At: time.Now(), Kind: fleet.KindFinding, Finding: &finding.Finding{ID: "f", Text: strings.Repeat("x", 400)},
				}
				if err := s.Publish(b.Context(), n); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestBusyMachine: a server that did not get to look whether it is ready has a store all the same, and is not started
// anew.
func TestBusyMachine(t *testing.T) {
	for health, want := range map[string]string{
		"": "", "failed to be ready for connections after 1ms: ": "",
		"JetStream stream 'A > B' critical write error: no space left": "no space left",
		"JetStream is not current":                                     "JetStream is not current",
	} {
		if got := storeFault(health); got != want {
			t.Errorf("%q: %q; want %q", health, got, want)
		}
	}
}
