package agent

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/client"
	"busbar.dev/internal/failure"
	"busbar.dev/unit"
)

// Options are how an agent is asked to be. Their tags are the flags of busbar agent.
type Options struct {
	Join      []string      `required:"" placeholder:"URL" help:"Address of a fleet server's agent port: tls://HOST:7642, or nats:// without TLS. Repeatable for a cluster of servers."`
	Creds     string        `placeholder:"FILE" env:"BUSBAR_CREDS" help:"Credentials of this node, from busbar serve token node; also BUSBAR_CREDS."`
	KubeToken string        `name:"kube-token" placeholder:"FILE" help:"In a pod of Kubernetes: token of its service account for the audience busbar, which --server exchanges for the credentials of the pod's node (busbar serve --kube-agents)."`
	Server    string        `placeholder:"URL" help:"Page of the server for --kube-token (default: the host of --join, https, port 7641)."`
	Name      string        `placeholder:"NAME" help:"Name of this node (default: the name in its credentials, or the host name)."`
	Data      string        `placeholder:"DIR" help:"Folder where events wait until they are stored (default: systemd's state directory, /var/lib/busbar/agent for root, or ~/.local/state/busbar/agent)."`
	MeetPort  int           `name:"meet-port" default:"7643" placeholder:"PORT" least:"1" most:"65535" help:"Port for measurements with other nodes (default 7643)."`
	Bind      string        `placeholder:"IFACE|ADDR" help:"Interface or address to measure (default: the one that routes to the server)."`
	TLSCA     string        `name:"tls-ca" placeholder:"FILE" help:"CA certificates to trust with tls:// (default: the machine's)."`
	Memory    string        `name:"max-memory" default:"2GiB" placeholder:"SIZE" help:"Memory limit of a measurement on this node (default 2GiB)."`
	Perftest  string        `placeholder:"DIR" help:"Folder of the perftest programs, for orders that measure RDMA (default: PATH)."`
	Look      time.Duration `default:"30s" least:"1s" placeholder:"TIME" help:"Interval between readings of ports and their counters (default 30s)."`
}

// Config is what Run takes, with what the options and this machine say.
func (o *Options) Config() (Config, error) {
	cfg := Config{Bus: bus.Config{URLs: o.Join, Creds: o.Creds, CA: o.TLSCA}, Bind: o.Bind, Dir: o.Data, Look: o.Look}
	for _, u := range o.Join {
		if err := bus.CheckURL(u); err != nil {
			return cfg, fmt.Errorf("--join: %w", err)
		}
	}
	var err error
	if cfg.Name, err = o.name(); err != nil {
		return cfg, err
	}
	if cfg.MaxMemory, err = unit.ParseBytes(o.Memory); err != nil {
		return cfg, fmt.Errorf("--max-memory: %w", err)
	}
	if o.TLSCA != "" {
		if _, err := os.Stat(o.TLSCA); err != nil {
			return cfg, fmt.Errorf("--tls-ca: %w; a server with --tls-self-signed has its certificate in self-signed.pem of "+
				"its --data: copy it to this machine", err)
		}
	}
	if cfg.Dir == "" {
		if cfg.Dir, err = stateFolder(); err != nil {
			return cfg, err
		}
	}
	if cfg.Meet, err = MeetAt(o.Bind, o.Join[0], o.MeetPort); err != nil {
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
func (o *Options) name() (fleet.Name, error) {
	var of fleet.Name
	if o.Creds != "" {
		data, err := os.ReadFile(o.Creds)
		if err != nil {
			return "", fmt.Errorf("--creds: %w; busbar serve token node NAME -o FILE makes it, on the server's machine", err)
		}
		if of, err = bus.NodeOf(data); err != nil {
			return "", fmt.Errorf("--creds %s: no credentials (%w); busbar serve token node NAME -o FILE makes them, on the "+
				"server's machine", o.Creds, err)
		}
	}
	text := o.Name
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
		return "", fmt.Errorf("--name %s: the credentials in %s are for %s; leave --name out, or make others with busbar "+
			"serve token node %s", name, o.Creds, of, name)
	}
	return name, nil
}

// stateFolder is where an agent keeps its files.
func stateFolder() (string, error) {
	if dir, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":"); dir != "" {
		return dir, nil
	}
	if os.Geteuid() == 0 {
		return "/var/lib/busbar/agent", nil
	}
	dir, err := client.Folder{}.Path()
	return filepath.Join(dir, "agent"), err
}
