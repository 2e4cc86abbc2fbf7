// Package client is how a program finds, trusts and asks the server of a fleet (busbar serve): its address, its
// certificate, a token that lets it in, and patience while it reads what it has stored.
//
// The package is not promised: it may change with the server.
package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"busbar.dev/internal/failure"
)

// Options say which server is meant. The zero value is the one that this user runs on this machine.
type Options struct {
	Folder
	Server    string `env:"BUSBAR_SERVER" placeholder:"URL" help:"Address of busbar serve; also BUSBAR_SERVER (default: this user's server on this machine, from --data, else http://127.0.0.1:7641)."`
	TokenFile string `name:"token-file" placeholder:"FILE" help:"File with a token (default: BUSBAR_TOKEN, or the token that this user's server keeps in its --data)."`
	CA        string `name:"server-ca" env:"BUSBAR_SERVER_CA" placeholder:"FILE" help:"CA certificates to trust with https://; also BUSBAR_SERVER_CA (default: the machine's, and the certificate of the server in --data)."`
}

// Client asks a server.
type Client struct {
	options Options
	find    func() error // once

	base  string
	token string
	from  string // where the token was
	http  *http.Client
}

// New is a client of a server, which is looked for when it is first asked.
func New(o Options) *Client {
	c := &Client{options: o}
	c.find = sync.OnceValue(c.look)
	return c
}

// look finds the server and the token for it.
func (c *Client) look() error {
	o := &c.options
	local, err := o.Local()
	if err != nil {
		return err
	}
	at := cmp.Or(o.Server, local.Page, "http://127.0.0.1:7641")
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("--server %q: expected an address such as https://host:7641", at)
	}
	own := false
	if c.token, c.from, own, err = o.token(); err != nil {
		return err
	}
	c.base = strings.TrimSuffix(at, "/")
	c.http = &http.Client{
		// The token is for this server and no other.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if own {
		c.http.Transport, err = o.private(local, c.base)
		return err
	}
	trusted := local.trust(u.Hostname())
	if o.CA != "" {
		if trusted, err = o.authorities(); err != nil {
			return err
		}
	}
	if trusted != nil {
		c.http.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: trusted}
	}
	return nil
}

// private is how the token of a server's own folder travels: to the server of that folder and to no other, over a
// socket in it, or to the certificate that it names. The port of a server that is down may be another user's.
func (o *Options) private(local Local, base string) (http.RoundTripper, error) {
	dir, err := o.Path()
	if err != nil {
		return nil, err
	}
	if local.Page == "" || base != strings.TrimSuffix(local.Page, "/") {
		return nil, failure.Cannot(fmt.Errorf("no token for %s: the one in %s is only for the server of that folder (%s); "+
			"give --token-file or set BUSBAR_TOKEN (busbar serve token add NAME --role order on the server's machine makes one)",
			base, dir, cmp.Or(local.Page, "which has not run yet")))
	}
	if local.Socket {
		there := func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, dir) }
		return &http.Transport{DialContext: there, DialTLSContext: there}, nil
	}
	if pinned := local.pinned(); pinned != nil {
		return &http.Transport{TLSClientConfig: pinned}, nil
	}
	return nil, failure.Cannot(fmt.Errorf("the token in %s is sent over a socket in that folder, and the server there "+
		"made none; start busbar serve again, or give --token-file", dir))
}

// token is what lets a program in, and where it comes from; own tells that a server of this user keeps it for its own
// programs.
func (o *Options) token() (secret, from string, own bool, err error) {
	file, from := o.TokenFile, "--token-file "+o.TokenFile
	if file == "" {
		if t := os.Getenv("BUSBAR_TOKEN"); t != "" {
			return t, "BUSBAR_TOKEN", false, nil
		}
		dir, err := o.Path()
		if err != nil {
			return "", "", false, err
		}
		own = true
		file = filepath.Join(dir, TokenFile)
		from = file + ", of a server of this user; --data names the folder of the server that is meant"
		if _, err := os.Stat(file); err != nil {
			return "", "", false, failure.Cannot(errors.New("no token: give --token-file or set BUSBAR_TOKEN (busbar serve " +
				"token add NAME --role order on the server's machine makes one); on that machine a running busbar serve of yours " +
				"keeps one in its --data"))
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", "", false, failure.Cannot(fmt.Errorf("--token-file: %w", err))
	}
	t := strings.TrimSpace(string(data))
	if t == "" || len(t) > 4096 || strings.ContainsAny(t, "\r\n ") {
		return "", "", false, fmt.Errorf("--token-file %s: expected one token and nothing else", file)
	}
	return t, from, own, nil
}

// authorities are the certificates of --server-ca.
func (o *Options) authorities() (*tls.Config, error) {
	data, err := os.ReadFile(o.CA)
	if err != nil {
		return nil, failure.Cannot(fmt.Errorf("--server-ca: %w", err))
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("--server-ca %s: there is no certificate in it", o.CA)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}
