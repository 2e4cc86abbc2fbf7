package server

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"busbar.dev/fleet/client"
	"busbar.dev/internal/failure"
	"busbar.dev/web"
)

// listen opens the port; shown is nil without TLS. Other machines reach it through TLS or not at all.
func (o *Options) listen(dir string) (l net.Listener, shown *tls.Config, err error) {
	if (o.Cert == "") != (o.Key == "") {
		return nil, nil, errors.New("--tls-cert and --tls-key: expected both or neither")
	}
	if o.Cert != "" && o.Self {
		return nil, nil, errors.New("--tls-cert and --tls-self-signed: expected one of them")
	}
	secure := o.Cert != "" || o.Self
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, nil, fmt.Errorf("--listen %s: %w; expected HOST:PORT, such as 127.0.0.1:7641", o.Listen, err)
	}
	ip := net.ParseIP(host)
	if local := host == "localhost" || ip != nil && ip.IsLoopback(); !local && !secure {
		return nil, nil, fmt.Errorf("--listen %s: others could read the tokens in transit; give --tls-cert and --tls-key, "+
			"or --tls-self-signed, or listen on 127.0.0.1 and connect through ssh -L 7641:127.0.0.1:7641", o.Listen)
	}
	shown, err = o.certificate(dir, host)
	if err != nil {
		return nil, nil, err
	}
	l, err = net.Listen("tcp", o.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, nil, failure.Cannot(fmt.Errorf("--listen: %w; another busbar serve may have it: stop that one, or give "+
			"another port, such as --listen 127.0.0.1:7651", err))
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
func (o *Options) certificate(dir, host string) (*tls.Config, error) {
	var cert tls.Certificate
	var err error
	switch {
	case o.Cert != "":
		if cert, err = tls.LoadX509KeyPair(o.Cert, o.Key); err != nil {
			err = fmt.Errorf("--tls-cert %s, --tls-key %s: %w; expected PEM files that belong together", o.Cert, o.Key, err)
		}
	case o.Self:
		cert, err = SelfSigned(dir, host)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, failure.Cannot(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, nil
}

// names are those under which the page may be asked for. On loopback a page of
// another site could get its name to mean this machine.
func (o *Options) names(at net.Addr) []string {
	if tcp, ok := at.(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return nil
	}
	list := web.Loopback()
	for _, n := range o.Host {
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

// local is how programs of this machine reach the server.
func (o *Options) local(dir string, at net.Addr, shown *tls.Config) client.Local {
	l := client.Local{Page: "http://" + nearby(at)}
	if !o.alone() {
		l.Agents = o.joined()
	}
	if shown != nil {
		l.Page = "https://" + nearby(at)
		l.Certificate = string(pem.EncodeToMemory(&pem.Block{
			Type: "CERTIFICATE", Bytes: shown.Certificates[0].Certificate[0],
		}))
	}
	if o.Self && len(o.NATS) == 0 && !o.alone() {
		l.AgentsCA = filepath.Join(dir, CertificateFile)
	}
	return l
}

// nearby is an address at which this machine reaches what listens.
func nearby(at net.Addr) string {
	tcp, ok := at.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return at.String()
	}
	host := "localhost" // whichever of the two families is there
	if tcp.IP.To4() != nil {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, fmt.Sprint(tcp.Port))
}

// joined is what agents are to join, as far as this machine knows.
func (o *Options) joined() string {
	if len(o.NATS) > 0 {
		return o.NATS[0]
	}
	scheme := "nats://"
	if o.Cert != "" || o.Self {
		scheme = "tls://"
	}
	host, port, _ := net.SplitHostPort(o.BusListen) // it was listened at
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "SERVER"
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	return scheme + net.JoinHostPort(host, port)
}
