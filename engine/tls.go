package engine

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"
)

// LoadTLS reads what Config.TLS needs: the certificate and the key of this rank, and the
// certificates of the authority that signed those of all ranks, in PEM files.
//
// Both sides of every connection show a certificate, and one that the authority signed is
// enough: ranks are dialled by address, so the names in certificates are not compared. Which
// of the authority's certificates belong to the job is for the secret to say.
func LoadTLS(cert, key, ca string) (*tls.Config, error) {
	pair, err := loadPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", cert, key, err)
	}
	text, err := readFile(ca)
	if err != nil {
		return nil, fmt.Errorf("certificates of the authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: no certificate in PEM found; expected those of the authority", ca)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
		MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true,
	}, nil
}

// loadPair is tls.LoadX509KeyPair for files that may be too long.
func loadPair(cert, key string) (tls.Certificate, error) {
	c, err := readFile(cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	k, err := readFile(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(c, k)
}

// wrapServer is a connection under TLS, seen from the side that accepted it.
func wrapServer(c net.Conn, cfg *tls.Config) *tls.Conn {
	return tls.Server(&wire{Conn: c}, cfg)
}

// wrapClient is a connection under TLS, seen from the side that dialled. The certificate is
// verified as far as its authority.
func wrapClient(c net.Conn, cfg *tls.Config) *tls.Conn {
	cfg = cfg.Clone()
	cfg.InsecureSkipVerify = true // the name only: see VerifyConnection
	cfg.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return errors.New("the other side shows no certificate")
		}
		how := x509.VerifyOptions{
			Roots: cfg.RootCAs, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
		}
		for _, c := range s.PeerCertificates[1:] {
			how.Intermediates.AddCert(c)
		}
		_, err := s.PeerCertificates[0].Verify(how)
		return err
	}
	return tls.Client(&wire{Conn: c}, cfg)
}

// wire is what TLS writes to: a connection of the net package at first, for the handshakes,
// and then a stream that never waits. What the stream has no room for stays here.
type wire struct {
	net.Conn
	s   stream
	out []byte // not yet written
	buf []byte // where out begins
	one [1][]byte
}

// wouldBlockError is the error of a read that would have to wait. TLS takes it for one that passes.
type wouldBlockError struct{}

func (wouldBlockError) Error() string   { return "nothing has come yet" }
func (wouldBlockError) Timeout() bool   { return true }
func (wouldBlockError) Temporary() bool { return true }

func (w *wire) Read(p []byte) (int, error) {
	if w.s == nil {
		return w.Conn.Read(p)
	}
	n, err := w.s.read(p)
	if n == 0 && err == nil && len(p) > 0 {
		return 0, wouldBlockError{}
	}
	return n, err
}

func (w *wire) Write(p []byte) (int, error) {
	if w.s == nil {
		return w.Conn.Write(p)
	}
	if len(w.out) == 0 {
		w.out = w.buf[:0]
	}
	w.out = append(w.out, p...)
	if cap(w.out) > cap(w.buf) {
		w.buf = w.out[:0]
	}
	return len(p), nil
}

// flush writes what is left, as far as there is room.
func (w *wire) flush() error {
	for len(w.out) > 0 {
		w.one[0] = w.out
		n, err := w.s.write(w.one[:])
		if n == 0 || err != nil {
			return err
		}
		w.out = w.out[n:]
	}
	return nil
}

// isCertificateError reports whether an error is that of a certificate, which no second try will mend.
func isCertificateError(err error) bool {
	var unknown x509.UnknownAuthorityError
	var alert tls.AlertError
	return errors.As(err, &unknown) || errors.As(err, &alert)
}

// plain is the connection under TLS, or the connection itself.
func plain(c net.Conn) net.Conn {
	if t, ok := c.(*tls.Conn); ok {
		if w, ok := t.NetConn().(*wire); ok {
			return w.Conn
		}
	}
	return c
}

// sealed is a stream under TLS. It counts bytes as written once what they were made into has
// all been taken over, so that nothing stays behind when nobody has anything more to write.
type sealed struct {
	t    *tls.Conn
	w    *wire
	owed int // bytes that are encrypted and not yet all out
}

// sealedTurn is what is encrypted at once: a few records.
const sealedTurn = 64 << 10

// takeSealed takes a connection over as takeSocket does, TLS with it.
func takeSealed(c net.Conn, timeout time.Duration) (stream, int, error) {
	t, ok := c.(*tls.Conn)
	if !ok {
		return takeSocket(c, timeout)
	}
	w := t.NetConn().(*wire)
	s, fd, err := takeSocket(w.Conn, timeout)
	if err != nil {
		return nil, -1, err
	}
	w.s = s
	return &sealed{t: t, w: w}, fd, nil
}

// read takes all there is: what TLS has decrypted and keeps, no poll would tell of.
func (s *sealed) read(p []byte) (sum int, err error) {
	for sum < len(p) {
		n, err := s.t.Read(p[sum:])
		sum += n
		_, wait := err.(wouldBlockError)
		switch {
		case wait:
			return sum, nil
		case err != nil && sum > 0:
			return sum, nil // it will come again
		case err != nil:
			return 0, err
		}
	}
	return sum, nil
}

func (s *sealed) write(bufs [][]byte) (int, error) {
	if s.owed == 0 {
		for _, b := range bufs {
			b = b[:min(len(b), sealedTurn-s.owed)]
			if len(b) == 0 {
				continue
			}
			n, err := s.t.Write(b)
			s.owed += n
			if err != nil {
				return 0, err
			}
		}
	}
	if err := s.w.flush(); err != nil || len(s.w.out) > 0 {
		return 0, err
	}
	n := s.owed
	s.owed = 0
	return n, nil
}

// silentFor is that of the socket, where it knows.
func (s *sealed) silentFor() time.Duration {
	if x, ok := s.w.s.(interface{ silentFor() time.Duration }); ok {
		return x.silentFor()
	}
	return 0
}

// tcpCounts is that of the socket, where it knows.
func (s *sealed) tcpCounts() TCPCounts {
	if x, ok := s.w.s.(interface{ tcpCounts() TCPCounts }); ok {
		return x.tcpCounts()
	}
	return TCPCounts{}
}

func (s *sealed) close() { s.w.s.close() }
