package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/client"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/outfile"
)

// Identify gets this node's credentials for its pod's token, where the options name one, and renews them until the
// context ends. It waits for a server that does not answer. note is told why it waits.
func (o *Options) Identify(ctx context.Context, note func(string)) error {
	switch {
	case o.KubeToken == "" && o.Server != "":
		return errors.New("--server: it is where --kube-token is exchanged; leave it out")
	case o.KubeToken == "":
		return nil
	case o.Creds != "":
		return errors.New("--creds and --kube-token: expected one of them")
	}
	server := o.Server
	if server == "" {
		u, err := url.Parse(o.Join[0])
		if err != nil || u.Host == "" {
			return fmt.Errorf("--join %q: expected an address such as tls://host:7642", o.Join[0])
		}
		server = "https://" + net.JoinHostPort(u.Hostname(), "7641")
	}
	dir := o.Data
	if dir == "" {
		var err error
		if dir, err = stateFolder(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return failure.Cannot(fmt.Errorf("--data: %w", err))
	}
	o.Creds = filepath.Join(dir, "node.creds")
	exchange := func() error {
		creds, err := client.Exchange(ctx, server, o.TLSCA, o.KubeToken)
		if err != nil {
			return err
		}
		if _, err := bus.NodeOf(creds); err != nil {
			return failure.Cannot(fmt.Errorf("%s: its answer is no credentials: %w", server, err))
		}
		return failure.Cannot(outfile.Private(o.Creds, creds))
	}
	// A third of their time, so that two tries may fail before they expire.
	again := func(err error, pause time.Duration) time.Duration {
		if err == nil {
			return varied(client.ExchangeLasts / 3)
		}
		note(err.Error())
		return varied(pause)
	}
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		err := exchange()
		if err == nil {
			break
		}
		if !failure.Is(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(again(err, pause)):
		}
	}
	go func() {
		var err error
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(again(err, time.Minute)):
				err = exchange()
			}
		}
	}()
	return nil
}
