package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"busbar.dev/internal/failure"
)

// localServerFile is where a server says how commands of this machine reach it.
const localServerFile = "local.json"

// leftBehind is what it says there. It stays when the server ends: the next one is most likely the same.
type leftBehind struct {
	Page        string `json:"page"`                  // where commands of this machine find it
	Certificate string `json:"certificate,omitempty"` // what it shows with https, PEM
	Agents      string `json:"agents"`                // what agents join
	AgentsCA    string `json:"agents_ca,omitempty"`   // the certificate that they have to be given for it, a file
}

// leave writes it down.
func (c *serveRunCmd) leave(dir string, at net.Addr, shown *tls.Config, agents string) error {
	left := leftBehind{Page: "http://" + nearby(at), Agents: agents}
	if shown != nil {
		left.Page = "https://" + nearby(at)
		left.Certificate = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: shown.Certificates[0].Certificate[0]}))
	}
	if c.Self && len(c.NATS) == 0 {
		left.AgentsCA = filepath.Join(dir, selfSignedFile)
	}
	data, err := json.MarshalIndent(left, "", " ")
	if err != nil {
		return err
	}
	if err := writePrivately(filepath.Join(dir, localServerFile), append(data, '\n')); err != nil {
		return failure.Cannot(err)
	}
	return nil
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
func (c *serveRunCmd) joined() string {
	if len(c.NATS) > 0 {
		return c.NATS[0]
	}
	scheme := "nats://"
	if c.Cert != "" || c.Self {
		scheme = "tls://"
	}
	host, port, _ := net.SplitHostPort(c.BusListen) // it was listened at
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "SERVER"
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	return scheme + net.JoinHostPort(host, port)
}

// left reads what a server left in the folder; without one it is empty.
func (f *serveFlags) left() (left leftBehind, err error) {
	dir, err := f.path()
	if err != nil {
		return left, err
	}
	file := filepath.Join(dir, localServerFile)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return left, nil // another user's server: nothing is known of it
	}
	if err == nil {
		err = json.Unmarshal(data, &left)
	}
	if err != nil {
		return left, failure.Cannot(fmt.Errorf("%s: %w; busbar serve writes it anew when it starts", file, err))
	}
	return left, nil
}

// trust is how certificates are checked that no --server-ca speaks for: the one that a server of this
// folder says to show is trusted under any name, since nobody else has its key; others as usual.
func (l leftBehind) trust(host string) *tls.Config {
	block, _ := pem.Decode([]byte(l.Certificate))
	if block == nil {
		return nil
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // VerifyConnection does it
		VerifyConnection: func(s tls.ConnectionState) error {
			if string(s.PeerCertificates[0].Raw) == string(block.Bytes) {
				return nil
			}
			between := x509.NewCertPool()
			for _, c := range s.PeerCertificates[1:] {
				between.AddCert(c)
			}
			_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{DNSName: host, Intermediates: between})
			return err
		},
	}
}
