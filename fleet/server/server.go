// Package server puts busbar serve together: the page, the bus that agents join, the hub that folds what they send,
// this machine as a node of its own fleet, and what programs of this user need to find all that.
//
// The package is not promised: it may change with the command.
package server

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"

	"busbar.dev/cluster"
	"busbar.dev/fleet/agent"
	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/client"
	"busbar.dev/fleet/hub"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/kube"
	"busbar.dev/internal/memlimit"
	"busbar.dev/web"
)

// Options are how a server is asked to be. Their tags are the flags of busbar serve.
type Options struct {
	client.Folder
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

	KubeAgents     string `name:"kube-agents" placeholder:"NAMESPACE/ACCOUNT" help:"In Kubernetes: give pods of this service account the credentials of the nodes that they run on, for their tokens (busbar agent --kube-token)."`
	KubeConditions bool   `name:"kube-conditions" help:"In Kubernetes: set the condition BusbarHealthy of nodes, with an event at each change. No node is cordoned."`

	Listen string   `default:"127.0.0.1:7641" placeholder:"ADDRESS" help:"Address of the page (default 127.0.0.1:7641). Other machines need TLS: --tls-cert and --tls-key, or --tls-self-signed."`
	Cert   string   `name:"tls-cert" placeholder:"FILE" help:"Certificate of this server, with its intermediate certificates."`
	Key    string   `name:"tls-key" placeholder:"FILE" help:"Private key of the certificate."`
	Self   bool     `name:"tls-self-signed" help:"Create a self-signed certificate; browsers ask whether to trust it."`
	Host   []string `placeholder:"NAME" help:"Further host names that the page answers to, for use behind a proxy. Repeatable."`
}

// Env is what a server has of the program that runs it.
type Env struct {
	// Page is what the page needs besides what the server gives it: tokens, events, routes and names. Its version is that
	// of this program, which its agent and what it measures carry.
	Page web.Config
	// Network reads the cluster of Options.Cluster, Machine the map of this machine.
	Network func(name string) (*cluster.Cluster, error)
	Machine func() (json.RawMessage, error)
	// Child is what measures.
	Child agent.Child
	// Note is told what is worth knowing while it runs.
	Note func(text string)
	// Ready is told the page's address, and a token where this server is the first of its folder.
	Ready func(address, token string)
}

// running is a server that runs.
type running struct {
	Options
	Env
	dir    string
	shown  *tls.Config // nil without TLS
	ctx    context.Context
	cancel context.CancelCauseFunc
	srv    *bus.Server // nil with a cluster that somebody else runs
	bus    *bus.Bus
	hub    *hub.Hub // nil without a fleet
	kube   *kube.Client
	events web.Events
	work   sync.WaitGroup
}

// Run serves until the context ends, or until something fails that it cannot go on without.
func Run(ctx context.Context, o Options, env Env) error {
	memlimit.OneArena()
	dir, err := o.Make()
	if err != nil {
		return err
	}
	if err := bus.CheckRoom(dir); err != nil { // before anything is half begun
		return failure.Cannot(fmt.Errorf("--data %s: it cannot be written to (%w); make room, or give another folder", dir,
			err))
	}
	unlock, err := bus.Lock(filepath.Join(dir, "serve.lock"), false)
	if err != nil {
		return failure.Cannot(fmt.Errorf("--data: %w", err))
	}
	defer unlock()
	tokens, err := Tokens(o.Folder)
	if err != nil {
		return err
	}
	s := &running{Options: o, Env: env, dir: dir}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	defer s.close()
	l, err := s.listen()
	if err != nil {
		return err
	}
	defer l.Close()
	if err := s.startFleet(); err != nil {
		return err
	}
	page := env.Page
	page.Memory = memlimit.Set()
	page.Events, page.More, page.Tokens, page.Data = &s.events, s.routes(), tokens, dir
	page.Secure, page.Hosts, page.Note = s.shown != nil, s.names(l.Addr()), env.Note
	p, err := web.New(page)
	if err != nil {
		return failure.Cannot(err)
	}
	first, err := firstToken(tokens)
	if err != nil {
		return failure.Cannot(err)
	}
	// Before the address is told: who reads it may ask at once.
	at := s.url("http", "https", l.Addr().String())
	if err := s.leave(p, at); err != nil {
		return err
	}
	env.Ready(at, first)
	if err := p.Serve(s.ctx, l); err != nil && !errors.Is(err, net.ErrClosed) {
		return failure.Cannot(err)
	}
	if ctx.Err() == nil {
		return failure.Cannot(context.Cause(s.ctx))
	}
	return nil
}

// leave lets programs of this user find the server, and ask it without a token.
func (s *running) leave(p *web.Server, page string) error {
	local := client.Local{Page: page}
	if s.hub != nil { // else there is nothing that a program would ask
		private, err := client.Listen(s.dir)
		if err != nil {
			s.Note(fmt.Sprintf("programs of this user need a token: %v", err))
		} else {
			local.Socket = true
			s.work.Go(func() { _ = p.Serve(s.ctx, private) }) // it ends with the server
		}
		local.Agents = s.url("nats", "tls", s.BusListen)
		if len(s.NATS) > 0 {
			local.Agents = s.NATS[0]
		} else if s.Self {
			local.AgentsCA = filepath.Join(s.dir, CertificateFile)
		}
	}
	return local.Write(s.dir)
}

// close ends all of it, in order.
func (s *running) close() {
	s.cancel(nil)
	s.work.Wait()
	if s.bus != nil {
		s.bus.Close()
	}
	if s.srv != nil {
		s.srv.Close()
	}
}
