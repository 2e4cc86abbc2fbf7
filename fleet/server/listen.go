package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"busbar.dev/internal/failure"
	"busbar.dev/web"
)

// listen opens the port of the page. Other machines reach it through TLS or not at all.
func (s *running) listen() (net.Listener, error) {
	if (s.Cert == "") != (s.Key == "") || s.Cert != "" && s.Self {
		return nil, errors.New("--tls-cert and --tls-key: expected both, and no --tls-self-signed, or neither")
	}
	if err := private("--listen", s.Listen, s.Cert != "" || s.Self,
		"listen on 127.0.0.1 and connect through ssh -L 7641:127.0.0.1:7641"); err != nil {
		return nil, err
	}
	if err := s.certificate(); err != nil {
		return nil, failure.Cannot(err)
	}
	l, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return nil, cannot("--listen", err)
	}
	l = web.Bounded(l)
	if s.shown != nil {
		l = tls.NewListener(l, s.shown)
	}
	return l, nil
}

// private refuses an address where others could read secrets in transit; or is what to do instead of TLS.
func private(flag, address string, secure bool, or string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%s %s: %w; expected HOST:PORT, such as 127.0.0.1:7641", flag, address, err)
	}
	if ip := net.ParseIP(host); secure || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%s %s: others could read tokens and messages in transit; give --tls-cert and --tls-key, or "+
		"--tls-self-signed, or %s", flag, address, or)
}

func cannot(flag string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w; another busbar serve may have it: stop that one, or give another port, such as %s "+
			"127.0.0.1:7651", err, flag)
	}
	return failure.Cannot(fmt.Errorf("%s: %w", flag, err))
}

// certificate loads what the server shows, or makes it.
func (s *running) certificate() (err error) {
	var cert tls.Certificate
	switch {
	case s.Cert != "":
		if cert, err = tls.LoadX509KeyPair(s.Cert, s.Key); err != nil {
			err = fmt.Errorf("--tls-cert %s, --tls-key %s: %w; expected PEM files that belong together", s.Cert, s.Key, err)
		}
	case s.Self:
		host, _, _ := net.SplitHostPort(s.Listen) // it was checked
		cert, err = SelfSigned(s.dir, host)
	default:
		return nil
	}
	s.shown = &tls.Config{
		Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
	}
	return err
}

// names are those under which the page may be asked for. On loopback a page of
// another site could get its name to mean this machine.
func (s *running) names(at net.Addr) []string {
	if tcp, ok := at.(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return nil
	}
	list := web.Loopback()
	for _, n := range s.Host {
		list = append(list, strings.ToLower(n))
	}
	return list
}

// url is how an address that is listened at is reached: by this machine's name where it is any.
func (s *running) url(plain, secure, listen string) string {
	host, port, _ := net.SplitHostPort(listen) // it was listened at
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	if s.shown != nil {
		plain = secure
	}
	return plain + "://" + net.JoinHostPort(host, port)
}
