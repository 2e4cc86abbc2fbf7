package client

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/failure"
)

const (
	mostReply    = 256 << 20        // what a server may answer
	mostTime     = 90 * time.Second // for one question
	readPatience = 10 * time.Second // for a server that has just been started and reads what it has stored
)

// Call asks. in is sent as JSON where it is not nil, and the answer is read into out. An error is the question's fault
// unless it is failure.ErrCannot; one that may pass is fleet.ErrGone or fleet.ErrReading.
func (c *Client) Call(ctx context.Context, method, path string, in, out any) error {
	if err := c.find(); err != nil {
		return err
	}
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	for end := time.Now().Add(readPatience); ; {
		err := c.once(ctx, method, path, body, out)
		if !errors.Is(err, fleet.ErrReading) || time.Now().After(end) {
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
func (c *Client) once(ctx context.Context, method, path string, in []byte, out any) error {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(in))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(r)
	if err != nil {
		return failure.Cannot(failure.Mark(c.unreachable(err), fleet.ErrGone))
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, mostReply))
	if err != nil {
		return failure.Cannot(failure.Mark(err, fleet.ErrGone))
	}
	if resp.StatusCode >= 300 {
		return c.refusal(resp, data)
	}
	if err := json.Unmarshal(data, out); err != nil {
		return failure.Cannot(fmt.Errorf("%s%s: its answer: %w", c.base, path, err))
	}
	return nil
}

// refusal is why a server does not answer.
func (c *Client) refusal(resp *http.Response, data []byte) error {
	var why struct{ Error string }
	code := resp.StatusCode
	foreign := json.Unmarshal(data, &why) != nil || why.Error == ""
	switch {
	case code == http.StatusUnauthorized:
		why.Error = "it rejects the token (of " + c.from +
			"); busbar serve token add NAME --role order on its machine makes one, for --token-file or BUSBAR_TOKEN"
	case foreign:
		why.Error = fmt.Sprintf("%s %.100q; expected https:// if busbar serve there has TLS", resp.Status, data)
	}
	err := fmt.Errorf("%s: %s", c.base, why.Error)
	switch {
	case code == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
		err = failure.Mark(err, fleet.ErrReading)
	case !foreign && (code == http.StatusBadRequest || code == http.StatusNotFound || code == http.StatusConflict):
		return err // what was asked for is wrong
	case code >= http.StatusInternalServerError:
		err = failure.Mark(err, fleet.ErrGone)
	}
	return failure.Cannot(err)
}

// unreachable says why there was no answer, and what to try.
func (c *Client) unreachable(err error) error {
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err // the address is said anyway
	}
	try := "does busbar serve run there? --server or BUSBAR_SERVER names another"
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		try = "expected http:// in --server or BUSBAR_SERVER"
	case strings.Contains(err.Error(), "malformed HTTP"):
		try = "no page answers there; the page's port is 7641, the port for agents 7642"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		try = "--server-ca or BUSBAR_SERVER_CA names the file with the certificate to trust, self-signed.pem in the " +
			"server's folder with --tls-self-signed"
	}
	return fmt.Errorf("%s: %w; %s", c.base, err, try)
}
