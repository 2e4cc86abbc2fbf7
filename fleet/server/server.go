// Package server puts busbar serve together: the page, the bus that agents join, the hub that folds what they send,
// this machine as a node of its own fleet, and what programs of this user need to find all that.
//
// The package is not promised: it may change with the command.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"busbar.dev/cluster"
	"busbar.dev/fleet/agent"
	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/client"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/memlimit"
	"busbar.dev/internal/osdep"
	"busbar.dev/web"
)

// Options are how a server is asked to be. Their tags are the flags of busbar serve.
type Options struct {
	client.Folder
	Fleet
	Listen string   `default:"127.0.0.1:7641" placeholder:"ADDRESS" help:"Address of the page (default 127.0.0.1:7641). Other machines need TLS: --tls-cert and --tls-key, or --tls-self-signed."`
	Cert   string   `name:"tls-cert" placeholder:"FILE" help:"Certificate of this server, with its intermediate certificates."`
	Key    string   `name:"tls-key" placeholder:"FILE" help:"Private key of the certificate."`
	Self   bool     `name:"tls-self-signed" help:"Create a self-signed certificate; browsers ask whether to trust it."`
	Host   []string `placeholder:"NAME" help:"Further host names that the page answers to, for use behind a proxy. Repeatable."`
}

// Fleet is how a server knows its fleet.
type Fleet struct {
	NATS      []string `name:"nats" placeholder:"URL" help:"Use an existing NATS cluster with JetStream instead of the embedded server: nats://host:4222 or tls://host:4222. Repeatable. This machine then joins like any node, with busbar agent --join URL --creds FILE."`
	NATSCreds string   `name:"nats-creds" placeholder:"FILE" help:"Credentials for the NATS cluster."`
	NATSCA    string   `name:"nats-ca" placeholder:"FILE" help:"CA certificates to trust with tls:// (default: the machine's)."`
	BusListen string   `name:"bus-listen" default:"127.0.0.1:7642" placeholder:"ADDRESS" help:"Address for agents (default 127.0.0.1:7642). Agents of other machines need TLS, with the page's certificate, or --bus-plain."`
	BusPlain  bool     `name:"bus-plain" help:"Let agents of other machines connect without TLS; only for private networks."`
	Keep      string   `default:"0" placeholder:"TIME" help:"How long events are kept, such as 90d (default: until the store holds 7 GiB)."`
	Cluster   string   `short:"c" placeholder:"FILE" help:"Cluster file, or any file that map reads, with the fleet's network. Its leaf switches tell a slow leaf from slow hosts."`
	Webhook   []string `placeholder:"URL" help:"URL that receives findings as JSON when they are raised, get worse and are resolved. Repeatable."`
	Secret    string   `name:"webhook-secret-file" placeholder:"FILE" help:"Secret of at least 16 characters that signs webhooks (HMAC-SHA256 in X-Busbar-Signature)."`
	NoFleet   bool     `name:"no-fleet" help:"Serve the page alone: no agents join and no events are stored. On Windows this is so unless --nats names a cluster."`
	NoLocal   bool     `name:"no-agent" help:"Do not make this machine a node of the fleet."`
}

// Env is what a server has of the program that runs it.
type Env struct {
	// Page is what the page needs besides what the server gives it: tokens, events, routes and names.
	Page web.Config
	// Version is that of this program, which its agent and what it measures carry.
	Version string
	// Network reads the cluster of Fleet.Cluster, Machine the map of this machine.
	Network func(name string) (*cluster.Cluster, error)
	Machine func() (json.RawMessage, error)
	// Child is what measures.
	Child agent.Child
	// Note is told what is worth knowing while it runs.
	Note func(text string)
	// Ready is told the page's address, and a token where this server is the first of its folder.
	Ready func(address, token string)
}

// Run serves until the context ends, or until something fails that it cannot go on without.
func Run(ctx context.Context, o Options, env Env) error {
	memlimit.OneArena()
	dir, err := room(o.Folder)
	if err != nil {
		return err
	}
	tokens, err := Tokens(o.Folder)
	if err != nil {
		return err
	}
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	l, shown, err := o.listen(dir)
	if err != nil {
		return err
	}
	defer l.Close()
	s, err := start(ctx, &o, &env, dir)
	if err != nil {
		return err
	}
	defer s.close()
	page := env.Page
	page.Memory = memlimit.Set()
	page.Events, page.More, page.Tokens, page.Data = s.events, s.routes(), tokens, dir
	page.Secure, page.Hosts, page.Note = shown != nil, o.names(l.Addr()), env.Note
	p, err := web.New(page)
	if err != nil {
		return failure.Cannot(err)
	}
	first, err := firstToken(tokens)
	if err != nil {
		return err
	}
	// Before the address is told: who reads it may ask at once.
	if err := localToken(tokens, dir); err != nil {
		return err
	}
	place := o.local(dir, l.Addr(), shown)
	if !o.alone() { // else there is nothing that a program would ask
		private, err := client.Listen(dir)
		if err != nil {
			env.Note(fmt.Sprintf("programs of this user need a token: %v", err))
		} else {
			s.work.Go(func() { _ = p.Serve(s.ctx, private) }) // it ends with the server
		}
		place.Socket = err == nil
	}
	if err := place.Write(dir); err != nil {
		return err
	}
	env.Ready(address(l.Addr(), shown != nil), first)
	if err := p.Serve(s.ctx, l); err != nil && !errors.Is(err, net.ErrClosed) {
		return failure.Cannot(err)
	}
	return failure.Cannot(s.failed())
}

// room makes the folder, and makes sure that it can be written to before anything is half begun.
func room(f client.Folder) (string, error) {
	dir, err := f.Make()
	if err != nil {
		return "", err
	}
	err = bus.CheckRoom(dir)
	switch {
	case err == nil:
		return dir, nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "",
			failure.Cannot(fmt.Errorf("--data %s: no space is left on its disk; make room, or give another folder with --data",
				dir))
	}
	return "",
		failure.Cannot(fmt.Errorf("--data %s: it cannot be written to (%w); give a folder that the server may write to", dir,
			err))
}

// lock keeps a second server away from the folder.
func lock(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, "serve.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, failure.Cannot(err)
	}
	if err := osdep.Lock(f, false); err != nil {
		f.Close()
		return nil,
			failure.Cannot(fmt.Errorf("another busbar serve uses %s; stop it, or give this one a folder of its own with --data",
				dir))
	}
	return func() { f.Close() }, nil
}
