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
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	"busbar.dev/internal/failure"
)

// Options say which server is meant. The zero value is the one that this user runs on this machine.
type Options struct {
	Folder
	Server    string `env:"BUSBAR_SERVER" placeholder:"URL" help:"Address of busbar serve; also BUSBAR_SERVER (default: this user's server on this machine, from --data, else http://127.0.0.1:7641)."`
	TokenFile string `name:"token-file" placeholder:"FILE" help:"File with a token (default: BUSBAR_TOKEN; this user's server in --data needs none)."`
	CA        string `name:"server-ca" env:"BUSBAR_SERVER_CA" placeholder:"FILE" help:"CA certificates to trust with https://; also BUSBAR_SERVER_CA (default: the machine's)."`
	// Exec reaches a server's own socket by kubectl; nil is not at all.
	Exec func(pod string) (net.Conn, error) `kong:"-"`
}

// Kubectl begins the address of a server that kubectl reaches: nothing, or NAMESPACE/POD.
const Kubectl = "kubectl:"

// usualPage is where a server is that nobody names.
const usualPage = "http://127.0.0.1:7641"

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

// look finds the server and what lets the program in.
func (c *Client) look() error {
	o := &c.options
	local, err := o.Local()
	if err != nil {
		return err
	}
	at := cmp.Or(o.Server, local.Page, usualPage)
	if pod, ok := strings.CutPrefix(at, Kubectl); ok && o.Exec != nil {
		c.base = "http://localhost"
		c.http = &http.Client{Timeout: mostTime, Transport: &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) { return o.Exec(pod) },
		}}
		return nil
	}
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("--server %q: expected an address such as https://host:7641", at)
	}
	c.base = strings.TrimSuffix(at, "/")
	c.http = &http.Client{
		Timeout: mostTime,
		// The token is for this server and no other.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if c.token, c.from, err = o.token(); err != nil {
		return err
	}
	switch {
	case c.token == "":
		c.http.Transport, err = local.beside(c.base)
	case o.CA != "":
		c.http.Transport, err = o.trusting()
	}
	return err
}

// beside is how a server is reached without a token: it is that of this user's folder, and listens there.
func (l Local) beside(base string) (http.RoundTripper, error) {
	if !l.Socket || base != l.Page {
		return nil, failure.Cannot(fmt.Errorf("%s: no token: give --token-file or set BUSBAR_TOKEN (busbar serve token add "+
			"NAME --role order on the server's machine makes one); only your own busbar serve with --data %s needs none",
			base, l.dir))
	}
	there := func(context.Context, string, string) (net.Conn, error) { return dial(l.dir) }
	return &http.Transport{DialContext: there, DialTLSContext: there}, nil
}

// token is what lets a program in, and where it comes from; empty where there is none.
func (o *Options) token() (secret, from string, err error) {
	if o.TokenFile == "" {
		return os.Getenv("BUSBAR_TOKEN"), "BUSBAR_TOKEN", nil
	}
	data, err := os.ReadFile(o.TokenFile)
	if err != nil {
		return "", "", failure.Cannot(fmt.Errorf("--token-file: %w", err))
	}
	words := strings.Fields(string(data))
	if len(words) != 1 {
		return "", "", fmt.Errorf("--token-file %s: expected one token and nothing else", o.TokenFile)
	}
	return words[0], "--token-file " + o.TokenFile, nil
}

// trusting reaches servers whose certificates those of --server-ca vouch for.
func (o *Options) trusting() (http.RoundTripper, error) {
	data, err := os.ReadFile(o.CA)
	if err != nil {
		return nil, failure.Cannot(fmt.Errorf("--server-ca: %w", err))
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("--server-ca %s: there is no certificate in it", o.CA)
	}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
	}, nil
}
