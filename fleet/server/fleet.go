package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/hub"
	"busbar.dev/internal/failure"
	"busbar.dev/unit"
	"busbar.dev/web"
)

// startFleet starts the bus and the hub. On Windows the store has not been tried, and no agents run.
func (s *running) startFleet() error {
	cfg, err := s.hubConfig()
	if err != nil {
		return err
	}
	keep, err := lasts("--keep", s.Keep, unit.Hour)
	if err != nil {
		return err
	}
	if err := s.startKube(); err != nil {
		return err
	}
	if s.NoFleet || runtime.GOOS == "windows" && len(s.NATS) == 0 {
		return nil
	}
	if s.Cluster != "" {
		if cfg.Network, err = s.Network(s.Cluster); err != nil {
			return err
		}
	}
	if err := s.connect(bus.Config{URLs: s.NATS, Creds: s.NATSCreds, CA: s.NATSCA, Keep: keep}); err != nil {
		return err
	}
	cfg.Bus = hub.OnBus(s.bus)
	cfg.Publish = func(kind string, v any) {
		if err := s.events.Publish(kind, v); err != nil {
			s.Note(fmt.Sprint("an event for the page: ", err))
		}
	}
	cfg.Version = s.Page.Version
	cfg.Warn = func(err error) { s.Note(err.Error()) }
	s.hub = hub.New(cfg)
	s.work.Go(func() {
		if err := s.hub.Run(s.ctx); err != nil {
			s.cancel(err)
		}
	})
	if s.KubeConditions {
		s.work.Go(s.reportConditions)
	}
	if !s.NoLocal && s.srv != nil { // else the keys are somebody else's; busbar agent needs credentials from there
		s.work.Go(func() {
			if err := s.beNode(); err != nil && s.ctx.Err() == nil {
				s.Note(fmt.Sprint("this machine is not a node of its fleet: ", err))
			}
		})
	}
	return nil
}

// lasts is a time that a flag gives, 0 for none.
func lasts(flag, text string, least unit.Span) (time.Duration, error) {
	if text == "" || text == "0" {
		return 0, nil
	}
	span, err := unit.ParseSpan(text)
	if err != nil || span < least || span > 100*unit.Year {
		return 0, fmt.Errorf("%s %s: expected a time from %v up, such as 90d", flag, text, least)
	}
	return span.Duration(), nil
}

func (s *running) hubConfig() (cfg hub.Config, err error) {
	switch {
	case s.NoFleet && (len(s.NATS) > 0 || len(s.Webhook) > 0 || s.Cluster != ""):
		return cfg, errors.New("--no-fleet: --nats, --webhook and --cluster are for a fleet; leave one of both out")
	case len(s.NATS) == 0 && (s.NATSCreds != "" || s.NATSCA != ""):
		return cfg, errors.New("--nats-creds and --nats-ca are for --nats")
	case len(s.Webhook) == 0 && s.Secret != "":
		return cfg, errors.New("--webhook-secret-file: there is no --webhook to sign for")
	}
	for _, u := range s.Webhook {
		p, err := url.Parse(u)
		if err != nil || p.Host == "" || p.Scheme != "http" && p.Scheme != "https" {
			return cfg, fmt.Errorf("%q: expected an address such as https://host/path", u)
		}
	}
	cfg.Webhooks = s.Webhook
	if s.Secret == "" {
		return cfg, nil
	}
	secret, err := os.ReadFile(s.Secret)
	if err != nil {
		return cfg, failure.Cannot(fmt.Errorf("--webhook-secret-file: %w", err))
	}
	cfg.Secret = []byte(strings.TrimSpace(string(secret)))
	if len(cfg.Secret) < 16 {
		return cfg, fmt.Errorf("--webhook-secret-file: %d characters; expected 16 or more", len(cfg.Secret))
	}
	return cfg, nil
}

// connect reaches the cluster that was named, or starts a server of our own, and makes the stream or finds it.
func (s *running) connect(cfg bus.Config) (err error) {
	flag := "--nats"
	if len(s.NATS) > 0 {
		s.bus, err = bus.Connect(cfg)
	} else {
		flag = "--bus-listen"
		if err := private(flag, s.BusListen, s.shown != nil || s.BusPlain, "--bus-plain on a private network"); err != nil {
			return err
		}
		s.srv, err = bus.Start(bus.ServerConfig{
			Dir: filepath.Join(s.dir, "bus"), Listen: s.BusListen, TLS: s.shown.Clone(),
			OnLog: storeNotes(s.Note, time.Now),
		})
		if err == nil {
			flag = "--data"
			s.bus, err = s.srv.Connect(cfg)
		}
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
		defer cancel()
		err = s.bus.Ensure(ctx)
	}
	if err != nil {
		return cannot(flag, err)
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
	if s.KubeAgents != "" {
		list = append(list, s.exchange())
	}
	return append(list, web.Route{
		Method: http.MethodGet, Path: "/api/fleet/scene", Role: web.Read, Computes: true, Handler: web.Scene(s.hub.Cluster),
	})
}

// storeNotes passes on what the store has to complain about, such as a disk that is full: each thing
// once a minute. What single clients do wrong is no news, and that it cannot write the bus says in its own words.
func storeNotes(note func(text string), now func() time.Time) func(text string) {
	var mu sync.Mutex
	var since time.Time
	var said []string
	return func(text string) {
		has := func(part string) bool { return strings.Contains(text, part) }
		if !slices.ContainsFunc([]string{"JetStream", "space", "stream", "the store "}, has) ||
			has("failed to store a msg") || has("ritical write error") {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if now().Sub(since) >= time.Minute {
			since, said = now(), nil
		}
		if len(said) < 32 && !slices.Contains(said, text) {
			said = append(said, text)
			note("the store: " + strings.TrimPrefix(text, "the store "))
		}
	}
}
