package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing/fstest"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/agent"
	"busbar.dev/fleet/bus"

	"github.com/nats-io/nats-server/v2/server"
)

// roleVariable tells a process that the soak started what it is.
const roleVariable = "BUSBAR_SOAK_ROLE"

// part is what a process is told to be.
type part struct {
	// Of a server: its folder, the keys' where it is one of a cluster, its name, ports and
	// the others' routes.
	Dir, Keys, Name string
	Listen          string
	Route           int
	Routes          []int
	// Of a process of agents: who they are, where the server is, and where to write down
	// what they have said.
	From, To int
	URL      string
	Ledger   string
}

func play(text string) error {
	var p part
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	switch {
	case p.To > 0:
		return p.agents()
	case len(p.Routes) > 0:
		return p.member()
	}
	if _, err := bus.Start(bus.ServerConfig{Dir: p.Dir, Listen: p.Listen}); err != nil {
		return err
	}
	fmt.Println("ready")
	select {}
}

// member is a server of a cluster, as NATS itself runs it.
func (p *part) member() error {
	keys, err := bus.OpenKeys(p.Keys)
	if err != nil {
		return err
	}
	o, err := keys.ServerOptions(bus.ServerConfig{Dir: p.Dir, Listen: p.Listen})
	if err != nil {
		return err
	}
	o.ServerName = p.Name
	o.Cluster = server.ClusterOpts{Name: "soak", Host: "127.0.0.1", Port: p.Route}
	// Agents should not learn of addresses that are not cut.
	o.Cluster.NoAdvertise = true
	for _, r := range p.Routes {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", r)})
	}
	ns, err := server.NewServer(o)
	if err != nil {
		return err
	}
	ns.Start()
	if !ns.ReadyForConnections(time.Minute) {
		return fmt.Errorf("%s takes no connections", p.Name)
	}
	fmt.Println("ready")
	select {}
}

func nodeName(i int) fleet.Name { return fleet.Name(fmt.Sprintf("node%04d", i)) }

// meetOf is where a node would be met; nobody is.
func meetOf(i int) string { return fmt.Sprintf("127.0.0.1:%d", 10000+i) }

// agents is a process of nodes.
func (p *part) agents() error {
	ledger, err := os.OpenFile(p.Ledger, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Println("ready")
	var all sync.WaitGroup
	for i := p.From; i < p.To; i++ {
		all.Go(func() {
			if err := p.agent(ctx, i, ledger); err != nil {
				fmt.Fprintf(os.Stderr, "soak: %s: %v\n", nodeName(i), err)
			}
		})
	}
	all.Wait()
	return nil
}

func (p *part) agent(ctx context.Context, i int, ledger *os.File) error {
	name := nodeName(i)
	return agent.Run(ctx, agent.Config{
		Name: name, Meet: meetOf(i), Version: "soak", Dir: filepath.Join(p.Dir, string(name)),
		Bus: bus.Config{URLs: []string{p.URL}, Creds: filepath.Join(p.Dir, string(name)+".creds")},
		Sys: machine(),
		Map: func() (json.RawMessage, error) {
			return json.RawMessage(`{"summary":{"nodes":1,"gpus":8,"nics":8}}`), nil
		},
		Beat:    2 * time.Second,
		Look:    10 * time.Second,
		Measure: measure,
		On: func(e agent.Event) {
			// It is said after the spool has it. The kernel keeps the line when the process is killed.
			if id, _, ok := strings.Cut(e.Text, ":"); ok && e.OK && e.What == "measured" {
				fmt.Fprintf(ledger, "%s %s\n", name, id)
			} else if e.What == "conflict" || e.What == "spool" {
				fmt.Fprintf(os.Stderr, "soak: %s: %s: %s\n", name, e.What, e.Text)
			}
		},
	})
}

// machine is a /sys of which one counter moves now and then.
func machine() fstest.MapFS {
	const port = "sys/class/infiniband/mlx5_0/ports/1/"
	return fstest.MapFS{
		port + "state":                 {Data: []byte("4: ACTIVE\n")},
		port + "rate":                  {Data: []byte("400 Gb/sec (4X NDR)\n")},
		port + "counters/symbol_error": {Data: fmt.Appendln(nil, rand.IntN(10))},
	}
}

// measure takes some time and makes figures up.
func measure(ctx context.Context, p *fleet.Part, at func(int, int, string)) (*fleet.Measured, error) {
	at(0, 1, "pairs")
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(20*time.Millisecond + rand.N(180*time.Millisecond)):
	}
	m := &fleet.Measured{}
	for _, k := range [][2]int{{0, 1}, {1, 0}} {
		m.Pairs = append(m.Pairs, fleet.PairSample{
			From: p.Ranks[k[0]], To: p.Ranks[k[1]], Rate: 11e9, Both: 9e9, Latency: 25e6,
		})
	}
	return m, nil
}
