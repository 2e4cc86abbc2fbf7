package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"busbar.dev/internal/failure"
)

// Where a server exchanges pods' tokens for credentials of nodes, the audience that the tokens are for, and how long
// such credentials last.
const (
	ExchangePath     = "/api/kube/credentials"
	ExchangeAudience = "busbar"
	ExchangeLasts    = 6 * time.Hour
)

// Exchange asks a server for the credentials of the node that this pod runs on, by the pod's token. ca is a file of
// certificates to trust, empty for the machine's.
func Exchange(ctx context.Context, server, ca, tokenFile string) ([]byte, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return nil, fmt.Errorf("--server %q: expected https://HOST:PORT, the page of busbar serve", server)
	}
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return nil, failure.Cannot(fmt.Errorf("--kube-token: %w", err))
	}
	c, err := open(server, ca)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+ExchangePath, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, failure.Cannot(c.unreachable(err))
	}
	defer resp.Body.Close()
	const most = 64 << 10
	data, err := io.ReadAll(io.LimitReader(resp.Body, most))
	switch {
	case err != nil:
		return nil, failure.Cannot(err)
	case resp.StatusCode >= 300:
		return nil, failure.Cannot(fmt.Errorf("%s answers %s: %.500s", c.base, resp.Status, strings.TrimSpace(string(data))))
	case len(data) == most:
		return nil, failure.Cannot(errors.New(c.base + ": an answer that is no credentials"))
	}
	return data, nil
}

// open is a client of a page for what needs no token of its own.
func open(server, ca string) (*Client, error) {
	c := &Client{base: strings.TrimSuffix(server, "/"), http: &http.Client{
		Timeout:       30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if ca == "" {
		return c, nil
	}
	var err error
	c.http.Transport, err = (&Options{CA: ca}).trusting()
	return c, err
}

// Alive tells whether a server's page answers, for which nobody needs a token.
func (o Options) Alive(ctx context.Context) error {
	local, err := o.Local()
	if err != nil {
		return err
	}
	c, err := open(cmp.Or(o.Server, local.Page, usualPage), o.CA)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/healthz", nil)
	if err != nil {
		return fmt.Errorf("--server: %w", err)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return failure.Cannot(c.unreachable(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return failure.Cannot(fmt.Errorf("%s answers %s; is this the page of busbar serve?", c.base, resp.Status))
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
