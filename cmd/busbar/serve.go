package main

import (
	"context"
	"errors"
	"fmt"

	"busbar.dev/cluster"
	"busbar.dev/fleet/server"
	"busbar.dev/web"
)

// serveCmd is the fleet's memory and the page people look at.
type serveCmd struct {
	Start serveRunCmd   `cmd:"" name:"run" default:"withargs" hidden:"" help:"Serve the page on this machine."`
	Token serveTokenCmd `cmd:"" help:"Manage who may read the page and order measurements."`
}

type serveRunCmd struct {
	common
	server.Options
}

// Help ends with examples.
func (serveRunCmd) Help() string {
	return "Serves the page: topology, predictions, training steps, plans and the doctor, each answer computed as the command of the same name does. " +
		"The agents of other machines report to it (busbar agent --join). It stores their events, runs ordered measurements (busbar order) and finds unhealthy nodes (busbar nodes). " +
		"At the first start it creates a token and prints the address that logs in with it; busbar serve token creates others. " +
		"Answers read no files of this machine except its own topology. Uploads stay in the folder of --data.\n\n" +
		"Examples:\n" +
		"  busbar serve\n" +
		"  busbar serve --listen 127.0.0.1:8080 --data /var/lib/busbar\n" +
		"  busbar serve --bus-listen 0.0.0.0:7642 --tls-self-signed --webhook https://chat.example/hook\n" +
		"  busbar serve --nats tls://nats1:4222,tls://nats2:4222 --nats-creds hub.creds\n" +
		"  busbar serve --listen 0.0.0.0:7641 --tls-cert server.pem --tls-key server.key"
}

// Run serves until it is told to stop.
func (c *serveRunCmd) Run(e *env) error {
	if c.JSON {
		return errors.New("--json: a server has no document; ask it: GET /api/map")
	}
	err := server.Run(e.ctx, c.Options, server.Env{
		Page: web.Config{Machine: e.query(common{Quiet: true}).Machine, Version: buildVersion()}, Version: buildVersion(),
		Network: func(name string) (*cluster.Cluster, error) { return e.cluster(common{Quiet: true}, name) },
		Machine: e.ownMap,
		Note:    func(text string) { fmt.Fprintln(e.stderr, "note:", text) },
		Ready: func(address, token string) {
			welcome(e, address, token)
			e.lasting.Store(true)
		},
	})
	var by interrupted
	if err == nil && errors.As(context.Cause(e.ctx), &by) {
		c.say(e, "stopped")
	}
	return err
}

// welcome says where the page is.
func welcome(e *env, at, first string) {
	if first == "" {
		fmt.Fprintf(e.stdout, "serving %s (log in with a token; busbar serve token add NAME makes one)\n", at)
		return
	}
	// The part after # is not sent to any server, so that it stands in no log.
	fmt.Fprintf(e.stdout, "open %s/login#%s\n", at, first)
}
