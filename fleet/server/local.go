package server

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"busbar.dev/fleet"
	"busbar.dev/fleet/agent"
)

// beNode makes this machine a node of its own fleet, where the bus is within.
func (s *running) beNode(listen, dir string) {
	if s.srv == nil {
		return // the keys are somebody else's; busbar agent needs credentials from there
	}
	err := func() error {
		name, err := hostName()
		if err != nil {
			return err
		}
		cfg := agent.Config{
			Name: name, Dir: filepath.Join(dir, "agent"), Meet: meetHere(listen), AnyPort: true, Map: s.env.Machine,
			Version: s.env.Version, Child: s.env.Child,
		}
		if cfg.Bus, err = s.srv.Node(name); err != nil {
			return err
		}
		return agent.Run(s.ctx, cfg)
	}()
	if err != nil && s.ctx.Err() == nil {
		s.env.Note(fmt.Sprint("this machine is not a node of its fleet: ", err))
	}
}

// meetHere is where this machine is found when it is measured: as agents reach the bus, and where that
// is any address, by the one that leads out.
func meetHere(listen string) string {
	host, _, _ := net.SplitHostPort(listen) // it was listened at
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "192.0.2.1" // of no network (RFC 5737); nothing is sent there
	}
	meet, err := agent.MeetAt("", "nats://"+net.JoinHostPort(host, "1"), agent.UsualPort)
	if err != nil {
		return net.JoinHostPort("127.0.0.1", fmt.Sprint(agent.UsualPort))
	}
	return meet
}

// hostName is this machine as a node of a fleet.
func hostName() (fleet.Name, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", err
	}
	return fleet.ParseName(host)
}
