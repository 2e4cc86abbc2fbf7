package engine_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	mrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
)

// authority signs certificates, for a test.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.cert, a.key = a.issue(t, "ca", nil, nil)
	return a
}

// issue writes a certificate and its key into files.
func (a *authority) issue(t testing.TB, name string, by *x509.Certificate,
	with *ecdsa.PrivateKey,
) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	x := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if by == nil {
		x.IsCA, x.BasicConstraintsValid, x.KeyUsage = true, true, x509.KeyUsageCertSign
		by, with = x, key
	} else {
		x.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	}
	der, err := x509.CreateCertificate(rand.Reader, x, by, &key.PublicKey, with)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "EC PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(filepath.Join(a.dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// tls is the configuration of a rank whose certificate the authority signs.
func (a *authority) tls(t testing.TB, name string) *tls.Config {
	t.Helper()
	a.issue(t, name, a.cert, a.key)
	cfg, err := engine.LoadTLS(a.file(name+".pem"), a.file(name+".key"), a.file("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// TestTLS runs random calls under TLS, on sockets and in shared memory.
func TestTLS(t *testing.T) {
	a := newAuthority(t)
	cfg := a.tls(t, "rank")
	rng := mrand.New(mrand.NewPCG(6, 7))
	for _, how := range []engine.Transport{engine.TCP, engine.Auto} {
		for _, n := range []int{2, 3, 5} {
			groups := joined(t, n, func(c *engine.Config) { c.TLS, c.Transport, c.Conns = cfg, how, 1+n%2 })
			for range trialsOf() {
				randomTrial(rng, n).run(t, groups)
			}
		}
	}
}

// TestTLSStrangers: who has no certificate of the authority does not get in, is counted, and
// does not disturb the others.
func TestTLSStrangers(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cfg := a.tls(t, "rank")
	mixed := other.tls(t, "stranger").Clone() // believes the ranks, but shows what they do not
	mixed.RootCAs = cfg.RootCAs
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for name, theirs := range map[string]*tls.Config{
		"plaintext": nil, "other authority": other.tls(t, "other"), "certificate of another authority": mixed,
	} {
		wg.Go(func() {
			for { // before all have come, and after
				select {
				case <-stop:
					return
				default:
				}
				_, err := engine.Join(context.Background(), engine.Config{
					Rank: 1, Size: 3, Meet: addr, Secret: "s", TLS: theirs, JoinTimeout: 300 * time.Millisecond,
				})
				if err == nil {
					t.Errorf("%s: a stranger joined", name)
				}
			}
		})
	}
	noise := noise()
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				strangers(addr, noise)
			}
		}
	})
	groups := joined(t, 3, func(c *engine.Config) { c.Meet, c.TLS = addr, cfg })
	rng := mrand.New(mrand.NewPCG(8, 9))
	end := time.Now().Add(time.Second)
	for k := 0; k < 5 || time.Now().Before(end); k++ {
		randomTrial(rng, 3).run(t, groups)
	}
	becomes(t, "somebody is counted as refused because "+engine.Untrusted.String(),
		func() bool { return groups[0].Refused()[engine.Untrusted] > 0 })
	close(stop)
	wg.Wait()
}

// TestTLSLeaves nothing behind, and a rank that leaves is named.
func TestTLSLeaves(t *testing.T) {
	cfg := newAuthority(t).tls(t, "rank")
	groups := joined(t, 3, func(c *engine.Config) { c.TLS, c.Timeout = cfg, 20*time.Second })
	errs := each(groups, func(g *engine.Group) error {
		b := make([]byte, 1<<20)
		for k := range 1000 {
			if g.Rank() == 1 && k == 10 {
				return g.Close()
			}
			if _, err := g.Run(context.Background(), nil, coll.Op{Kind: coll.AllReduce, Bytes: 1 << 20},
				engine.Buffers{Send: b, Recv: b}); err != nil {
				return err
			}
		}
		return nil
	})
	for _, r := range []int{0, 2} {
		if errs[r] == nil || !strings.Contains(errs[r].Error(), "rank 1") {
			t.Errorf("rank %d: %v", r, errs[r])
		}
	}
}

func TestLoadTLS(t *testing.T) {
	a := newAuthority(t)
	a.tls(t, "rank")
	none := a.file("none")
	if err := os.WriteFile(none, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	long := a.file("long")
	if err := os.WriteFile(long, make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range [][4]string{
		{long, a.file("rank.key"), a.file("ca.pem"), "longer than"},
		{a.file("rank.pem"), long, a.file("ca.pem"), "longer than"},
		{a.file("rank.pem"), a.file("rank.key"), long, "longer than"},
		{a.file("absent"), a.file("rank.key"), a.file("ca.pem"), "absent"},
		{a.file("rank.pem"), a.file("ca.key"), a.file("ca.pem"), "key"},
		{a.file("rank.pem"), a.file("rank.key"), none, "no certificate in PEM"},
		{a.file("rank.pem"), a.file("rank.key"), a.file("absent"), "absent"},
	} {
		if _, err := engine.LoadTLS(x[0], x[1], x[2]); err == nil || !strings.Contains(err.Error(), x[3]) {
			t.Errorf("%v: %v", x, err)
		}
	}
}
