//go:build unix

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestBenchTLS: ranks that are started one by one measure under TLS.
func TestBenchTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert := selfSigned(t, dir)
	var ranks [2]*exec.Cmd
	for r := range ranks {
		ranks[r] = exec.CommandContext(limit(t), built(t), "bench", "-n", "2", "--rank", strconv.Itoa(r), "--check",
			"-b", "8", "-e", "64K", "-f", "16", "--transport", "tcp", "--bind", "127.0.0.1", "--meet",
			filepath.Join(dir, "meet"),
			"--tls-cert", cert[0], "--tls-key", cert[1], "--tls-ca", cert[0])
	}
	if err := ranks[1].Start(); err != nil {
		t.Fatal(err)
	}
	out, err := ranks[0].CombinedOutput()
	if err != nil || !strings.Contains(string(out), "# Out of bounds values : 0 OK\n") {
		t.Errorf("%v: %s", err, out)
	}
	if err := ranks[1].Wait(); err != nil {
		t.Errorf("rank 1: %v", err)
	}
}

// selfSigned is a certificate that is its own authority, and its key.
func selfSigned(t *testing.T, dir string) [2]string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	x := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "busbar"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, x, x, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	names := [2]string{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	for i, b := range []*pem.Block{{Type: "CERTIFICATE", Bytes: der}, {Type: "EC PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(names[i], pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return names
}
