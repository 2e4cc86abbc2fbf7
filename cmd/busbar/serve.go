package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"busbar.dev/fleet/bus"
	"busbar.dev/internal/failure"
	"busbar.dev/web"
)

// serveCmd is the fleet's memory and the page people look at.
type serveCmd struct {
	Start serveRunCmd   `cmd:"" name:"run" default:"withargs" hidden:"" help:"Serve the page on this machine."`
	Token serveTokenCmd `cmd:"" help:"Who may look at the page and order measurements."`
}

type serveRunCmd struct {
	common
	serveFlags
	fleetFlags
	Listen string   `default:"127.0.0.1:7641" placeholder:"ADDRESS" help:"Where the page is served. Without it 127.0.0.1:7641. Other machines reach it only with TLS: --tls-cert and --tls-key, or --tls-self-signed."`
	Cert   string   `name:"tls-cert" placeholder:"FILE" help:"The certificate of this server, with those between it and its root."`
	Key    string   `name:"tls-key" placeholder:"FILE" help:"The certificate's key."`
	Self   bool     `name:"tls-self-signed" help:"Make a certificate for this server; browsers will ask whether to trust it."`
	Host   []string `placeholder:"NAME" help:"Names under which the page may be asked for besides this machine's own, where something stands before it. Repeatable."`
}

// serveFlags are what serve and its subcommands share.
type serveFlags struct {
	Data string `placeholder:"DIR" help:"Where the server keeps what it knows. Without it: busbar in $XDG_STATE_HOME, or in ~/.local/state."`
}

// Help ends with examples.
func (serveRunCmd) Help() string {
	return "Serves the page: topology, predictions, training steps, plans and the doctor, each answer computed as the command of the same name does. " +
		"It is also where the agents of other machines report to (busbar agent --join), keeps what they say, measures when it is ordered to (busbar order) and finds what is wrong (busbar nodes). " +
		"At the first start it makes a token and prints the address that logs in with it; busbar serve token makes others. " +
		"Answers never read files of this machine beyond its own topology, and what is uploaded stays in the folder of --data.\n\n" +
		"Examples:\n" +
		"  busbar serve\n" +
		"  busbar serve --listen 127.0.0.1:8080 --data /var/lib/busbar\n" +
		"  busbar serve --bus-listen 0.0.0.0:7642 --tls-self-signed --webhook https://chat.example/hook\n" +
		"  busbar serve --nats tls://nats1:4222,tls://nats2:4222 --nats-creds hub.creds\n" +
		"  busbar serve --listen 0.0.0.0:7641 --tls-cert server.pem --tls-key server.key"
}

// path is where the server keeps what it knows.
func (f *serveFlags) path() (string, error) {
	dir := f.Data
	if dir == "" {
		state := os.Getenv("XDG_STATE_HOME")
		if !filepath.IsAbs(state) {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", failure.Cannot(fmt.Errorf("%w; give a folder with --data", err))
			}
			state = filepath.Join(home, ".local", "state")
		}
		dir = filepath.Join(state, "busbar")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", failure.Cannot(fmt.Errorf("--data: %w", err))
	}
	return dir, nil
}

// folder is that, made for its owner alone.
func (f *serveFlags) folder() (string, error) {
	dir, err := f.path()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", failure.Cannot(fmt.Errorf("--data: %w; give a folder that can be written to", err))
	}
	return dir, nil
}

// room makes sure that the folder can be written to, before anything is half begun.
func (f *serveFlags) room() error {
	dir, err := f.folder()
	if err != nil {
		return err
	}
	err = bus.CheckRoom(dir)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return failure.Cannot(fmt.Errorf("--data %s: no space is left on its disk; make room, or give another folder with --data", dir))
	}
	return failure.Cannot(fmt.Errorf("--data %s: it cannot be written to (%w); the server keeps there what it knows: give a folder that it may write to", dir, err))
}

func (f *serveFlags) tokens() (*web.Tokens, string, error) {
	dir, err := f.folder()
	if err != nil {
		return nil, "", err
	}
	t, err := web.OpenTokens(filepath.Join(dir, "tokens.json"))
	if err != nil {
		return nil, "", failure.Cannot(err)
	}
	return t, dir, nil
}

// Run serves until it is told to stop.
func (c *serveRunCmd) Run(e *env) error {
	if c.JSON {
		return errors.New("--json: a server has no document; ask it: GET /api/map")
	}
	if err := c.room(); err != nil {
		return err
	}
	tokens, dir, err := c.tokens()
	if err != nil {
		return err
	}
	unlock, err := onlyServer(dir)
	if err != nil {
		return err
	}
	defer unlock()
	l, shown, err := c.listen(dir)
	if err != nil {
		return err
	}
	defer l.Close()
	fl, err := c.fleet(e, dir)
	if err != nil {
		return err
	}
	defer fl.close()
	s, err := web.New(web.Config{
		Events: fl.events, More: fl.routes(),
		Run: confined, Tokens: tokens, Data: dir, Secure: shown != nil, Hosts: c.names(l.Addr()), Version: buildVersion(),
		Note: func(text string) { fmt.Fprintln(e.stderr, "note:", text) },
	})
	if err != nil {
		return failure.Cannot(err)
	}
	first, err := c.first(tokens)
	if err != nil {
		return err
	}
	// Before the address is printed: who reads it may ask at once.
	if err := localToken(tokens, dir); err != nil {
		return err
	}
	if err := c.leave(dir, l.Addr(), shown, c.joined()); err != nil {
		return err
	}
	c.welcome(e, first, address(l.Addr(), shown != nil))
	e.lasting.Store(true)
	if err := s.Serve(fl.ctx, l); err != nil && !errors.Is(err, net.ErrClosed) {
		return failure.Cannot(err)
	}
	if err := fl.failed(); err != nil {
		return failure.Cannot(err)
	}
	var by interrupted
	if errors.As(context.Cause(e.ctx), &by) && !c.Quiet {
		fmt.Fprintln(e.stderr, "stopped")
	}
	return nil
}

// onlyServer keeps a second server away from the folder.
func onlyServer(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, "serve.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, failure.Cannot(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, failure.Cannot(fmt.Errorf("another busbar serve uses %s; stop it, or give this one a folder of its own with --data", dir))
	}
	return func() { f.Close() }, nil
}

// first is a token for whoever starts a server that nobody has a token of; else it is empty.
func (c *serveRunCmd) first(tokens *web.Tokens) (string, error) {
	list, err := tokens.List()
	if err != nil {
		return "", failure.Cannot(err)
	}
	if len(list) > 0 {
		return "", nil
	}
	secret, err := tokens.Add("first", web.Order)
	if err != nil {
		return "", failure.Cannot(err)
	}
	return secret, nil
}

// welcome says where the page is.
func (c *serveRunCmd) welcome(e *env, first, at string) {
	if first == "" {
		fmt.Fprintf(e.stdout, "serving %s (log in with a token; busbar serve token add NAME makes one)\n", at)
		return
	}
	// The part after # is not sent to any server, so that it stands in no log.
	fmt.Fprintf(e.stdout, "open %s/login#%s\n", at, first)
}
