package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/hub"
	"busbar.dev/internal/failure"
	"busbar.dev/unit"
	"busbar.dev/web"
)

// fleetFlags are how a server knows its fleet.
type fleetFlags struct {
	NATS      []string `name:"nats" placeholder:"URL" help:"Use a NATS cluster that there is, with JetStream, instead of the server within: nats://host:4222 or tls://host:4222. Repeatable. This machine is then no node by itself: it joins as the others do, with busbar agent --join URL --creds FILE."`
	NATSCreds string   `name:"nats-creds" placeholder:"FILE" help:"Credentials for it."`
	NATSCA    string   `name:"nats-ca" placeholder:"FILE" help:"Certificates to trust with tls://; without it the machine's."`
	BusListen string   `name:"bus-listen" default:"127.0.0.1:7642" placeholder:"ADDRESS" help:"Where agents connect to. Without it 127.0.0.1:7642. Those of other machines need TLS, with the certificate of the page, or --bus-plain."`
	BusPlain  bool     `name:"bus-plain" help:"Let agents of other machines connect without TLS: for networks that nobody else is on."`
	Keep      string   `default:"0" placeholder:"TIME" help:"How long news is kept, such as 90d; without it until the store holds 7 GiB."`
	Cluster   string   `short:"c" placeholder:"FILE" help:"A cluster file, or anything that busbar map reads, with the network of the fleet: its leaves tell a bad leaf from bad hosts."`
	Webhook   []string `placeholder:"URL" help:"Where findings are posted to, as JSON: when they are raised, get worse and are over. Repeatable."`
	Secret    string   `name:"webhook-secret-file" placeholder:"FILE" help:"A secret of 16 characters or more that webhooks are signed with (HMAC-SHA256 in X-Busbar-Signature)."`
	OTLP      string   `name:"otlp" placeholder:"URL" help:"An OpenTelemetry collector that gets traces of orders (OTLP over HTTP), such as http://127.0.0.1:4318."`
	NoLocal   bool     `name:"no-agent" help:"Neither measure this machine nor let it be a node of its own fleet."`
}

// served is the fleet's side of a server.
type served struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	srv    *bus.Server // nil with a cluster that somebody else runs
	bus    *bus.Bus
	hub    *hub.Hub
	events *web.Events
	work   sync.WaitGroup
}

// fleet starts the bus and the hub.
func (c *serveRunCmd) fleet(e *env, dir string) (*served, error) {
	cfg, err := c.hubConfig()
	if err != nil {
		return nil, err
	}
	busCfg, err := c.busConfig()
	if err != nil {
		return nil, err
	}
	s := &served{events: &web.Events{}}
	s.ctx, s.cancel = context.WithCancelCause(e.ctx)
	if err := s.connect(e, c, dir, busCfg); err != nil {
		s.close()
		return nil, err
	}
	if c.Cluster != "" {
		if cfg.Network, err = e.load([]string{c.Cluster}, common{Quiet: true}); err != nil {
			s.close()
			return nil, err
		}
	}
	cfg.Bus = hub.OnBus(s.bus)
	cfg.Publish = func(kind string, v any) {
		if err := s.events.Publish(kind, v); err != nil {
			fmt.Fprintln(e.stderr, "note: an event for the page:", err)
		}
	}
	cfg.Warn = func(err error) { fmt.Fprintln(e.stderr, "note:", err) }
	s.hub = hub.New(cfg)
	s.work.Go(func() {
		if err := s.hub.Run(s.ctx); err != nil {
			s.cancel(fleetError{err})
		}
	})
	s.work.Go(func() { s.tellReading(e.stderr) })
	if !c.NoLocal {
		s.work.Go(func() { s.measureLocally(e) })
		s.work.Go(func() { s.beNode(e, c, dir) })
	}
	return s, nil
}

// tellReading says how far the server is with what was stored, where that takes long.
func (s *served) tellReading(w io.Writer) {
	began := time.Now()
	tick := time.NewTicker(5 * time.Second) // and then less often
	defer tick.Stop()
	for told := false; ; told = true {
		select {
		case <-s.ctx.Done():
			return
		case <-s.hub.Ready():
			if told {
				fmt.Fprintf(w, "note: what was stored has been read, in %v\n", time.Since(began).Round(time.Second))
			}
			return
		case <-tick.C:
		}
		tick.Reset(30 * time.Second)
		share, _ := s.hub.Reading()
		fmt.Fprintf(w, "note: reading what was stored: %.0f%%; the page tells about the fleet after that\n", 100*share)
	}
}

// fleetError is why a server cannot go on.
type fleetError struct{ error }

// failed is why the fleet's side ended by itself, or nil.
func (s *served) failed() error {
	var f fleetError
	if errors.As(context.Cause(s.ctx), &f) {
		return f.error
	}
	return nil
}

// close ends all of it, in order.
func (s *served) close() {
	s.cancel(nil)
	s.work.Wait()
	if s.bus != nil {
		s.bus.Close()
	}
	if s.srv != nil {
		s.srv.Close()
	}
}

func (f *fleetFlags) hubConfig() (cfg hub.Config, err error) {
	for _, u := range append(append([]string{}, f.Webhook...), f.OTLP) {
		if u == "" {
			continue
		}
		p, err := url.Parse(u)
		if err != nil || p.Host == "" || p.Scheme != "http" && p.Scheme != "https" {
			return cfg, fmt.Errorf("%q: expected an address such as https://host/path", u)
		}
	}
	cfg.Webhooks, cfg.Traces = f.Webhook, f.OTLP
	if f.Secret == "" {
		return cfg, nil
	}
	if len(f.Webhook) == 0 {
		return cfg, errors.New("--webhook-secret-file: there is no --webhook to sign for")
	}
	secret, err := os.ReadFile(f.Secret)
	if err != nil {
		return cfg, failure.Cannot(fmt.Errorf("--webhook-secret-file: %w", err))
	}
	cfg.Secret = []byte(strings.TrimSpace(string(secret)))
	if len(cfg.Secret) < 16 {
		return cfg, fmt.Errorf("--webhook-secret-file: %d characters; expected 16 or more", len(cfg.Secret))
	}
	return cfg, nil
}

func (f *fleetFlags) busConfig() (cfg bus.Config, err error) {
	cfg = bus.Config{URLs: f.NATS, Creds: f.NATSCreds, CA: f.NATSCA}
	if len(f.NATS) == 0 && (f.NATSCreds != "" || f.NATSCA != "") {
		return cfg, errors.New("--nats-creds and --nats-ca are for --nats")
	}
	if f.Keep != "0" {
		keep, err := unit.ParseSpan(f.Keep)
		if err != nil || keep < unit.Hour || keep > 100*unit.Year {
			return cfg, fmt.Errorf("--keep %s: expected a time from an hour up, such as 90d", f.Keep)
		}
		cfg.Keep = time.Duration(keep.Seconds() * float64(time.Second))
	}
	return cfg, nil
}

// connect reaches the cluster that was named, or starts a server of our own.
func (s *served) connect(e *env, c *serveRunCmd, dir string, cfg bus.Config) (err error) {
	if len(c.NATS) > 0 {
		s.bus, err = bus.Connect(cfg)
		if err != nil {
			return failure.Cannot(fmt.Errorf("--nats: %w", err))
		}
	} else {
		host, _, err := net.SplitHostPort(c.BusListen)
		if err != nil {
			return fmt.Errorf("--bus-listen %s: %w; expected HOST:PORT, such as 127.0.0.1:7642", c.BusListen, err)
		}
		shown, err := c.certificate(dir, host)
		if err != nil {
			return err
		}
		ip := net.ParseIP(host)
		if local := host == "localhost" || ip != nil && ip.IsLoopback(); !local && shown == nil && !c.BusPlain {
			return fmt.Errorf("--bus-listen %s: others could read what agents say; give --tls-cert and --tls-key, or --tls-self-signed, or --bus-plain where nobody else is on the network", c.BusListen)
		}
		s.srv, err = bus.Start(bus.ServerConfig{Dir: filepath.Join(dir, "bus"), Listen: c.BusListen, TLS: shown, Plain: c.BusPlain, OnLog: storeNotes(e.stderr, time.Now)})
		if errors.Is(err, syscall.EADDRINUSE) {
			return failure.Cannot(fmt.Errorf("--bus-listen: %w; another busbar serve may have it: stop that one, or give another port, such as --bus-listen 127.0.0.1:7652", err))
		}
		if err != nil {
			return failure.Cannot(fmt.Errorf("--bus-listen: %w", err))
		}
		if s.bus, err = s.srv.Connect(cfg); err != nil {
			return failure.Cannot(err)
		}
	}
	return s.ensure()
}

// ensure makes the stream, or finds it. Without the rights for that nobody would ever answer.
func (s *served) ensure() error {
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	done := make(chan struct{})
	defer close(done)
	wg.Go(func() {
		for s.bus.Refused() == 0 {
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
		cancel()
	})
	err := s.bus.Ensure(ctx)
	switch {
	case err != nil && s.bus.Refused() > 0:
		return failure.Cannot(errors.New("--nats-creds: these credentials lack rights that a server needs; busbar serve token hub makes some that have them"))
	case err != nil:
		return failure.Cannot(err)
	}
	return nil
}

// routes are the hub's, with the page's roles.
func (s *served) routes() (list []web.Route) {
	for _, x := range s.hub.Endpoints() {
		role := web.Read
		if x.Orders {
			role = web.Order
		}
		list = append(list, web.Route{
			Method: x.Method, Path: x.Path, Role: role, Body: 1 << 20,
			Handler: web.Packed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { x.Serve(w, r, web.Asker(r).Name) })),
		})
	}
	return list
}

// storeNotes passes on what the store has to complain about, such as a disk that is full: each thing
// once a minute. What single clients do wrong is no news.
func storeNotes(w io.Writer, now func() time.Time) func(level, text string) {
	var mu sync.Mutex
	said := map[string]time.Time{}
	return func(_, text string) {
		if !strings.Contains(text, "JetStream") && !strings.Contains(text, "space") && !strings.Contains(text, "stream") && !strings.HasPrefix(text, "the store ") {
			return
		}
		if strings.Contains(text, "failed to store a msg") || strings.Contains(text, "ritical write error") {
			return // the bus says so in its own words, with what to do
		}
		mu.Lock()
		defer mu.Unlock()
		at := now()
		for k, t := range said {
			if at.Sub(t) >= time.Minute {
				delete(said, k)
			}
		}
		if _, known := said[text]; known || len(said) >= 32 {
			return
		}
		said[text] = at
		fmt.Fprintln(w, "note: the store:", strings.TrimPrefix(text, "the store "))
	}
}
