package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/agent"
	"busbar.dev/fleet/bus"
	"busbar.dev/internal/failure"
	"busbar.dev/query"
	"busbar.dev/unit"
)

type agentCmd struct {
	common
	Join     []string      `required:"" placeholder:"URL" help:"A server of the fleet, at its port for agents: tls://HOST:7642, or nats:// without TLS. Repeatable, for the servers of a cluster."`
	Creds    string        `placeholder:"FILE" env:"BUSBAR_CREDS" help:"This node's credentials, as busbar serve token node wrote them; also in BUSBAR_CREDS."`
	Name     string        `placeholder:"NAME" help:"This node's name; without it the one that its credentials are for, or its host name."`
	Data     string        `placeholder:"DIR" help:"Where news waits for the store: systemd's state directory, /var/lib/busbar/agent for root, or ~/.local/state/busbar/agent."`
	MeetPort int           `name:"meet-port" placeholder:"PORT" least:"1" most:"65535" help:"The port at which other nodes find this one when they measure together; without it 7643, or the next free one where another agent or program has that."`
	Bind     string        `placeholder:"IFACE|ADDR" help:"The interface or address to measure; without it the one that leads to the server."`
	TLSCA    string        `name:"tls-ca" placeholder:"FILE" help:"Certificates to trust with tls://, the machine's own without it."`
	Memory   string        `name:"max-memory" default:"2GiB" placeholder:"SIZE" help:"What a measurement may take of this node's memory; 2GiB without it."`
	Look     time.Duration `default:"30s" least:"1s" placeholder:"TIME" help:"How often ports and their counters are read; 30s without it."`
}

// Help ends with examples.
func (agentCmd) Help() string {
	return "The node's side of a fleet: tells the server what this node has, how its ports do and that it lives, and measures with other nodes when it is asked to. " +
		"What it has to tell waits on disk until the server's store has it, so that servers may be restarted and networks cut; an agent also begins without a server. " +
		"It measures within the bounds that the order sets, refuses while the node carries a job's traffic, and runs no other programs for anybody. " +
		"--json prints what happens as lines of JSON. Exit code 3 when another agent has the same name or uses the same folder.\n\n" +
		"Examples:\n" +
		"  busbar agent --join tls://head:7642 --creds /etc/busbar/node.creds\n" +
		"  BUSBAR_CREDS=node.creds busbar agent --join tls://head:7642 --tls-ca ca.pem --bind ib0 --json"
}

// Run is the node until a signal ends it.
func (c *agentCmd) Run(e *env) error {
	cfg, err := c.config(e)
	if err != nil {
		return err
	}
	debug.SetGCPercent(50) // it lives long and does little: memory counts more than a collection
	err = agent.Run(e.ctx, cfg)
	if errors.As(err, new(*bus.ConflictError)) || errors.As(err, new(*agent.RivalError)) || errors.As(err, new(*os.PathError)) || errors.Is(err, bus.ErrInUse) {
		return failure.Cannot(err)
	}
	return err
}

func (c *agentCmd) config(e *env) (agent.Config, error) {
	cfg := agent.Config{
		Bus: bus.Config{URLs: c.Join, Creds: c.Creds, CA: c.TLSCA}, Bind: c.Bind, Dir: c.Data, Version: ownVersion(), Look: c.Look,
		On: c.printer(e), Map: e.ownMap,
	}
	for _, u := range c.Join {
		if err := bus.CheckURL(u); err != nil {
			return cfg, fmt.Errorf("--join: %w", err)
		}
	}
	var err error
	if cfg.Name, err = c.name(); err != nil {
		return cfg, err
	}
	if cfg.MaxMemory, err = unit.ParseBytes(c.Memory); err != nil {
		return cfg, fmt.Errorf("--max-memory: %w", err)
	}
	if c.TLSCA != "" {
		if _, err := os.Stat(c.TLSCA); err != nil {
			return cfg, fmt.Errorf("--tls-ca: %w", err)
		}
	}
	if cfg.Dir == "" {
		if cfg.Dir, err = stateFolder("agent"); err != nil {
			return cfg, err
		}
	}
	if c.Creds == "" && !c.Quiet {
		fmt.Fprintln(e.stderr, "note: no --creds; busbar serve refuses that: busbar serve token node", cfg.Name, "on its machine makes them")
	}
	port := c.MeetPort
	if port == 0 {
		port, cfg.AnyPort = agent.UsualPort, true
	}
	if cfg.Meet, err = agent.MeetAt(c.Bind, c.Join[0], port); err != nil {
		err = fmt.Errorf("--bind: %w", err)
		var network *net.OpError
		if errors.As(err, &network) { // it may come up later
			err = failure.Cannot(err)
		}
		return cfg, err
	}
	return cfg, nil
}

// name is what was asked for, else what the credentials are for, else the host's. Credentials for another
// name would be refused by the server, without an end.
func (c *agentCmd) name() (fleet.Name, error) {
	var of fleet.Name
	if c.Creds != "" {
		data, err := os.ReadFile(c.Creds)
		if err != nil {
			return "", fmt.Errorf("--creds: %w; busbar serve token node NAME -o FILE makes it, on the server's machine", err)
		}
		if of, err = bus.NodeOf(data); err != nil {
			return "", fmt.Errorf("--creds %s: no credentials (%w); busbar serve token node NAME -o FILE makes them, on the server's machine", c.Creds, err)
		}
	}
	text := c.Name
	if text == "" && of != "" {
		return of, nil
	}
	if text == "" {
		var err error
		if text, err = os.Hostname(); err != nil {
			return "", failure.Cannot(err)
		}
	}
	name, err := fleet.ParseName(text)
	if err != nil {
		return "", fmt.Errorf("--name: %w", err)
	}
	if of != "" && of != name {
		return "", fmt.Errorf("--name %s: the credentials in %s are for %s; leave --name out, or make others with busbar serve token node %s", name, c.Creds, of, name)
	}
	return name, nil
}

// stateFolder is where a part of busbar that runs for long keeps its files.
func stateFolder(part string) (string, error) {
	if dir, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":"); dir != "" {
		return dir, nil
	}
	if os.Geteuid() == 0 {
		return filepath.Join("/var/lib/busbar", part), nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "busbar", part), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("--data: no folder is known to keep files in; name one: %w", err)
	}
	return filepath.Join(home, ".local", "state", "busbar", part), nil
}

// ownMap is this machine as busbar map --json prints it.
func (e *env) ownMap() (json.RawMessage, error) {
	cl, err := e.load(nil, common{Quiet: true})
	if err != nil {
		return nil, err
	}
	return json.Marshal(query.MapOf(cl))
}

// printer prints what happens: lines of JSON on standard output, or words on standard error.
func (c *agentCmd) printer(e *env) func(agent.Event) {
	var mu sync.Mutex
	return func(v agent.Event) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case c.JSON:
			if data, err := json.Marshal(v); err == nil {
				fmt.Fprintf(e.stdout, "%s\n", data)
			}
		case !c.Quiet:
			fmt.Fprintf(e.stderr, "%s %s: %s\n", v.At.Format(time.TimeOnly), v.What, v.Text)
		}
	}
}
