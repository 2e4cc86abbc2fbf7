package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"busbar.dev/internal/failure"
)

// clientFlags are how commands reach a server.
type clientFlags struct {
	serveFlags
	Server    string `env:"BUSBAR_SERVER" placeholder:"URL" help:"Where busbar serve listens; also BUSBAR_SERVER. Without it the one that this user runs on this machine, as it says in --data, else http://127.0.0.1:7641."`
	TokenFile string `name:"token-file" placeholder:"FILE" help:"A file with a token; without it BUSBAR_TOKEN, or the one that a server of this user keeps in its --data."`
	CA        string `name:"server-ca" env:"BUSBAR_SERVER_CA" placeholder:"FILE" help:"Certificates to trust with https://; also BUSBAR_SERVER_CA. Without it the machine's, and that of the server of --data."`
}

// mostReply bounds what a server may answer.
const mostReply = 256 << 20

// token is what lets a command in, and where it comes from.
func (f *clientFlags) token() (secret, from string, err error) {
	file, from := f.TokenFile, "--token-file "+f.TokenFile
	if file == "" {
		if t := os.Getenv("BUSBAR_TOKEN"); t != "" {
			return t, "BUSBAR_TOKEN", nil
		}
		dir, err := f.path()
		if err != nil {
			return "", "", err
		}
		file = filepath.Join(dir, localTokenFile)
		from = file + ", of a server of this user; --data names the folder of the server that is meant"
		if _, err := os.Stat(file); err != nil {
			return "", "", failure.Cannot(errors.New("no token: give --token-file or set BUSBAR_TOKEN (busbar serve token add NAME --role order on the server's machine makes one); on that machine a running busbar serve of yours keeps one in its --data"))
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", "", failure.Cannot(fmt.Errorf("--token-file: %w", err))
	}
	t := strings.TrimSpace(string(data))
	if t == "" || len(t) > 4096 || strings.ContainsAny(t, "\r\n ") {
		return "", "", fmt.Errorf("--token-file %s: expected one token and nothing else", file)
	}
	return t, from, nil
}

// client asks a server.
type client struct {
	base  string
	token string
	from  string // where the token was
	http  *http.Client
}

func (f *clientFlags) client() (*client, error) {
	left, err := f.left()
	if err != nil {
		return nil, err
	}
	at := f.Server
	if at == "" {
		if at = left.Page; at == "" {
			at = "http://127.0.0.1:7641"
		}
	}
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("--server %q: expected an address such as https://host:7641", at)
	}
	token, from, err := f.token()
	if err != nil {
		return nil, err
	}
	c := &client{base: strings.TrimSuffix(at, "/"), token: token, from: from, http: &http.Client{
		// The token is for this server and no other.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	trusted := left.trust(u.Hostname())
	if f.CA != "" {
		if trusted, err = f.given(); err != nil {
			return nil, err
		}
	}
	if trusted != nil {
		c.http.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: trusted}
	}
	return c, nil
}

// given are the certificates of --server-ca.
func (f *clientFlags) given() (*tls.Config, error) {
	data, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, failure.Cannot(fmt.Errorf("--server-ca: %w", err))
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("--server-ca %s: there is no certificate in it", f.CA)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// readPatience is how long a server that has just been started is waited for while it reads what it has stored.
const readPatience = 10 * time.Second

// readingError is the answer of a server that has not read all that it has stored.
type readingError struct{ error }

// goneError is that of a server that gives no answer, or none of its own: it may be back in a moment.
type goneError struct{ error }

// call asks. in is sent as JSON where it is not nil, and the answer read into out.
func (c *client) call(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	for end := time.Now().Add(readPatience); ; {
		err := c.once(ctx, method, path, body, out)
		if !errors.As(err, new(readingError)) || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

// once asks once.
func (c *client) once(ctx context.Context, method, path string, in []byte, out any) error {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(in))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return failure.Cannot(goneError{c.unreachable(err)})
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, mostReply))
	if err != nil {
		return failure.Cannot(goneError{err})
	}
	if resp.StatusCode < 300 {
		if err := json.Unmarshal(data, out); err != nil {
			return failure.Cannot(fmt.Errorf("%s%s: its answer: %w", c.base, path, err))
		}
		return nil
	}
	var why struct{ Error string }
	if json.Unmarshal(data, &why) != nil || why.Error == "" {
		why.Error = resp.Status
		if strings.Contains(string(data[:min(len(data), 200)]), "HTTPS server") {
			return failure.Cannot(fmt.Errorf("%s: the server there speaks TLS; expected https:// in --server or BUSBAR_SERVER", c.base))
		}
	}
	if resp.StatusCode == http.StatusUnauthorized {
		why.Error = "it does not know the token (of " + c.from + "); busbar serve token add NAME --role order on its machine makes one, for --token-file or BUSBAR_TOKEN"
	}
	if resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "" {
		return failure.Cannot(readingError{fmt.Errorf("%s: %s", c.base, why.Error)})
	}
	err = fmt.Errorf("%s: %s", c.base, why.Error)
	if resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusConflict {
		return err // what was asked for is wrong
	}
	if resp.StatusCode >= http.StatusInternalServerError {
		err = goneError{err}
	}
	return failure.Cannot(err)
}

// unreachable says why there was no answer, and what to try.
func (c *client) unreachable(err error) error {
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err // the address is said anyway
	}
	text := err.Error()
	var unknown x509.UnknownAuthorityError
	switch {
	case strings.Contains(text, "HTTP response to HTTPS client"):
		return fmt.Errorf("%s: the server there has no TLS; expected http:// in --server or BUSBAR_SERVER", c.base)
	case strings.Contains(text, "malformed HTTP"):
		return fmt.Errorf("%s: what listens there is no page; the port for agents is another (7642) than that of the page (7641)", c.base)
	case errors.As(err, &unknown):
		return fmt.Errorf("%s: %w; --server-ca or BUSBAR_SERVER_CA names the file with the certificate to trust, self-signed.pem in the server's folder with --tls-self-signed", c.base, err)
	}
	return fmt.Errorf("%s: %w; does busbar serve run there? --server or BUSBAR_SERVER names another", c.base, err)
}
