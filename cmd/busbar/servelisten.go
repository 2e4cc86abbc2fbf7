package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"busbar.dev/internal/failure"
	"busbar.dev/web"
)

// listen opens the port; shown is nil without TLS. Other machines reach it through TLS or not at all.
func (c *serveRunCmd) listen(dir string) (l net.Listener, shown *tls.Config, err error) {
	if (c.Cert == "") != (c.Key == "") {
		return nil, nil, errors.New("--tls-cert and --tls-key: expected both or neither")
	}
	if c.Cert != "" && c.Self {
		return nil, nil, errors.New("--tls-cert and --tls-self-signed: expected one of them")
	}
	secure := c.Cert != "" || c.Self
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return nil, nil, fmt.Errorf("--listen %s: %w; expected HOST:PORT, such as 127.0.0.1:7641", c.Listen, err)
	}
	ip := net.ParseIP(host)
	if local := host == "localhost" || ip != nil && ip.IsLoopback(); !local && !secure {
		return nil, nil, fmt.Errorf("--listen %s: others could read the tokens on their way; give --tls-cert and --tls-key, or --tls-self-signed, or listen on 127.0.0.1 and come through ssh -L 7641:127.0.0.1:7641", c.Listen)
	}
	shown, err = c.certificate(dir, host)
	if err != nil {
		return nil, nil, err
	}
	l, err = net.Listen("tcp", c.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, nil, failure.Cannot(fmt.Errorf("--listen: %w; another busbar serve may have it: stop that one, or give another port, such as --listen 127.0.0.1:7651", err))
	}
	if err != nil {
		return nil, nil, failure.Cannot(fmt.Errorf("--listen: %w", err))
	}
	l = web.Bounded(l)
	if shown != nil {
		shown.NextProtos = []string{"http/1.1"}
		l = tls.NewListener(l, shown)
	}
	return l, shown, nil
}

// certificate is what the server shows, nil without TLS.
func (c *serveRunCmd) certificate(dir, host string) (*tls.Config, error) {
	var cert tls.Certificate
	var err error
	switch {
	case c.Cert != "":
		cert, err = tls.LoadX509KeyPair(c.Cert, c.Key)
	case c.Self:
		cert, err = ownCertificate(dir, host)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, failure.Cannot(fmt.Errorf("TLS: %w", err))
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, nil
}

// names are those under which the page may be asked for. On loopback a page of
// another site could get its name to mean this machine.
func (c *serveRunCmd) names(at net.Addr) []string {
	if tcp, ok := at.(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return nil
	}
	list := web.Loopback()
	for _, n := range c.Host {
		list = append(list, strings.ToLower(n))
	}
	return list
}

// address is where a browser finds the page.
func address(at net.Addr, secure bool) string {
	scheme := "http"
	if secure {
		scheme = "https"
	}
	text := at.String()
	if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		name, err := os.Hostname()
		if err != nil {
			name = "localhost"
		}
		text = net.JoinHostPort(name, fmt.Sprint(tcp.Port))
	}
	return scheme + "://" + text
}

// selfLasts is how long a certificate of our own making counts.
const selfLasts = 365 * 24 * time.Hour

// selfSignedFile is such a certificate, in the server's folder.
const selfSignedFile = "self-signed.pem"

// ownCertificate is the certificate of an earlier start, or a new one.
func ownCertificate(dir, host string) (tls.Certificate, error) {
	certFile, keyFile := filepath.Join(dir, selfSignedFile), filepath.Join(dir, "self-signed.key")
	if cert, err := tls.LoadX509KeyPair(certFile, keyFile); err == nil && cert.Leaf != nil && time.Until(cert.Leaf.NotAfter) > 24*time.Hour {
		return cert, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, err
	}
	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "busbar"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(selfLasts),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if name, err := os.Hostname(); err == nil {
		t.DNSNames = append(t.DNSNames, name)
	}
	if ip := net.ParseIP(host); ip != nil {
		t.IPAddresses = append(t.IPAddresses, ip)
	} else {
		t.DNSNames = append(t.DNSNames, host)
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	if err := errors.Join(os.WriteFile(keyFile, keyPEM, 0o600), os.WriteFile(certFile, certPEM, 0o644)); err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certPEM, keyPEM)
}
