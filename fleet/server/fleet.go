package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
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

// running is the fleet's side of a server.
type running struct {
	env    *Env
	ctx    context.Context
	cancel context.CancelCauseFunc
	srv    *bus.Server // nil with a cluster that somebody else runs
	floods chan bus.Flood
	bus    *bus.Bus
	hub    *hub.Hub
	events *web.Events
	work   sync.WaitGroup
}

// start starts the bus and the hub.
func start(ctx context.Context, o *Options, env *Env, dir string) (*running, error) {
	cfg, err := o.hubConfig()
	if err != nil {
		return nil, err
	}
	busCfg, err := o.busConfig()
	if err != nil {
		return nil, err
	}
	s := &running{env: env, events: &web.Events{}, floods: make(chan bus.Flood, 64)}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	if o.alone() {
		return s, nil
	}
	if err := s.connect(o, dir, busCfg); err != nil {
		s.close()
		return nil, err
	}
	if o.Cluster != "" {
		if cfg.Network, err = env.Network(o.Cluster); err != nil {
			s.close()
			return nil, err
		}
	}
	cfg.Bus = hub.OnBus(s.bus)
	cfg.Publish = func(kind string, v any) {
		if err := s.events.Publish(kind, v); err != nil {
			env.Note(fmt.Sprint("an event for the page: ", err))
		}
	}
	cfg.Warn = func(err error) { env.Note(err.Error()) }
	s.hub = hub.New(cfg)
	s.work.Go(func() {
		if err := s.hub.Run(s.ctx); err != nil {
			s.cancel(fleetError{err})
		}
	})
	s.work.Go(s.reportReading)
	s.work.Go(s.reportFloods)
	if !o.NoLocal {
		s.work.Go(func() { s.beNode(o.BusListen, dir) })
	}
	return s, nil
}

// alone reports a server of the page without a fleet. On Windows the store has not been tried, and no agents run.
func (f *Fleet) alone() bool {
	return f.NoFleet || runtime.GOOS == "windows" && len(f.NATS) == 0
}

// reportReading says how far the server is with what was stored, where that takes long.
func (s *running) reportReading() {
	began := time.Now()
	tick := time.NewTicker(5 * time.Second) // and then less often
	defer tick.Stop()
	for told := false; ; told = true {
		select {
		case <-s.ctx.Done():
			return
		case <-s.hub.Ready():
			if told {
				s.env.Note(fmt.Sprintf("stored events read in %v", time.Since(began).Round(time.Second)))
			}
			return
		case <-tick.C:
		}
		tick.Reset(30 * time.Second)
		share, _ := s.hub.Reading()
		s.env.Note(fmt.Sprintf("reading stored events: %.0f%%; the page shows the fleet after that", 100*share))
	}
}

// flood is told by the bus whom it has shut out, maybe before there is a hub.
func (s *running) flood(f bus.Flood) {
	select {
	case s.floods <- f:
	default:
	}
}

// reportFloods passes it on.
func (s *running) reportFloods() {
	for {
		select {
		case <-s.ctx.Done():
			return
		case f := <-s.floods:
			s.hub.Flood(f)
			s.env.Note(fmt.Sprintf("node %s floods the bus (%s); its credentials are refused for a minute", f.Node, f.What))
		}
	}
}

// fleetError is why a server cannot go on.
type fleetError struct{ error }

// failed is why the fleet's side ended by itself, or nil.
func (s *running) failed() error {
	var f fleetError
	if errors.As(context.Cause(s.ctx), &f) {
		return f.error
	}
	return nil
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

func (f *Fleet) hubConfig() (cfg hub.Config, err error) {
	if f.NoFleet && (len(f.NATS) > 0 || len(f.Webhook) > 0 || f.Cluster != "") {
		return cfg, errors.New("--no-fleet: --nats, --webhook and --cluster are for a fleet; leave one of both out")
	}
	for _, u := range f.Webhook {
		p, err := url.Parse(u)
		if err != nil || p.Host == "" || p.Scheme != "http" && p.Scheme != "https" {
			return cfg, fmt.Errorf("%q: expected an address such as https://host/path", u)
		}
	}
	cfg.Webhooks = f.Webhook
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

func (f *Fleet) busConfig() (cfg bus.Config, err error) {
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
func (s *running) connect(o *Options, dir string, cfg bus.Config) (err error) {
	if len(o.NATS) > 0 {
		s.bus, err = bus.Connect(cfg)
		if err != nil {
			return failure.Cannot(fmt.Errorf("--nats: %w", err))
		}
	} else {
		host, _, err := net.SplitHostPort(o.BusListen)
		if err != nil {
			return fmt.Errorf("--bus-listen %s: %w; expected HOST:PORT, such as 127.0.0.1:7642", o.BusListen, err)
		}
		shown, err := o.certificate(dir, host)
		if err != nil {
			return err
		}
		ip := net.ParseIP(host)
		if local := host == "localhost" || ip != nil && ip.IsLoopback(); !local && shown == nil && !o.BusPlain {
			return fmt.Errorf("--bus-listen %s: others could read the agents' messages; give --tls-cert and --tls-key, or "+
				"--tls-self-signed, or --bus-plain on a private network", o.BusListen)
		}
		s.srv, err = bus.Start(bus.ServerConfig{
			Dir: filepath.Join(dir, "bus"), Listen: o.BusListen, TLS: shown, Plain: o.BusPlain,
			OnLog: storeNotes(s.env.Note, time.Now), OnFlood: s.flood,
		})
		if errors.Is(err, syscall.EADDRINUSE) {
			return failure.Cannot(fmt.Errorf("--bus-listen: %w; another busbar serve may have it: stop that one, or give "+
				"another port, such as --bus-listen 127.0.0.1:7652", err))
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
func (s *running) ensure() error {
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
		return failure.Cannot(errors.New("--nats-creds: these credentials lack rights that a server needs; busbar serve " +
			"token hub makes some that have them"))
	case err != nil:
		return failure.Cannot(err)
	}
	return nil
}

// routes are the hub's, with the page's roles; none without a fleet.
func (s *running) routes() (list []web.Route) {
	if s.hub == nil {
		return nil
	}
	for _, x := range s.hub.Endpoints() {
		role := web.Read
		if x.Orders {
			role = web.Order
		}
		list = append(list, web.Route{
			Method: x.Method, Path: x.Path, Role: role, Body: 1 << 20, Computes: !x.Waits,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { x.Serve(w, r, web.Requester(r).Name) }),
		})
	}
	return append(list, web.Route{
		Method: http.MethodGet, Path: "/api/fleet/scene", Role: web.Read, Computes: true, Handler: web.Scene(s.hub.Cluster),
	})
}

// storeNotes passes on what the store has to complain about, such as a disk that is full: each thing
// once a minute. What single clients do wrong is no news.
func storeNotes(note func(text string), now func() time.Time) func(level, text string) {
	var mu sync.Mutex
	said := map[string]time.Time{}
	return func(_, text string) {
		if !strings.Contains(text, "JetStream") && !strings.Contains(text, "space") && !strings.Contains(text, "stream") &&
			!strings.HasPrefix(text, "the store ") {
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
		note("the store: " + strings.TrimPrefix(text, "the store "))
	}
}
