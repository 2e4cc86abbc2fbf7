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
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// selfLasts is how long a certificate of our own making counts.
const selfLasts = 365 * 24 * time.Hour

// CertificateFile is such a certificate, in the server's folder.
const CertificateFile = "self-signed.pem"

// SelfSigned is the certificate of an earlier start, or a new one.
func SelfSigned(dir, host string) (tls.Certificate, error) {
	certFile, keyFile := filepath.Join(dir, CertificateFile), filepath.Join(dir, "self-signed.key")
	if cert, err := tls.LoadX509KeyPair(certFile, keyFile); err == nil && cert.Leaf != nil &&
		time.Until(cert.Leaf.NotAfter) > 24*time.Hour {
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
		SerialNumber: serial, Subject: pkix.Name{CommonName: "busbar"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(selfLasts),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		DNSNames:              []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
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
