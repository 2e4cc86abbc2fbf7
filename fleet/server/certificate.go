package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"time"

	"busbar.dev/internal/outfile"
)

// CertificateFile is a certificate of our own making, in the server's folder.
const CertificateFile = "self-signed.pem"

// SelfSigned is the certificate of an earlier start, or a new one for a year.
func SelfSigned(dir, host string) (tls.Certificate, error) {
	certFile, keyFile := filepath.Join(dir, CertificateFile), filepath.Join(dir, "self-signed.key")
	if cert, err := tls.LoadX509KeyPair(certFile, keyFile); err == nil && time.Until(cert.Leaf.NotAfter) > 24*time.Hour {
		return cert, nil
	}
	t := &x509.Certificate{
		Subject: pkix.Name{CommonName: "busbar"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().AddDate(1, 0, 0), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
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
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	cert, err1 := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	secret, err2 := x509.MarshalPKCS8PrivateKey(key)
	if err := errors.Join(err1, err2); err != nil {
		return tls.Certificate{}, err
	}
	secret = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	if err := errors.Join(outfile.Private(keyFile, secret), os.WriteFile(certFile, cert, 0o644)); err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, secret)
}
