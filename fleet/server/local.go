package server

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"busbar.dev/fleet"
	"busbar.dev/fleet/agent"
)

// beNode makes this machine a node of its own fleet.
func (s *running) beNode() error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	name, err := fleet.ParseName(host)
	if err != nil {
		return err
	}
	cfg := agent.Config{
		Name: name, Dir: filepath.Join(s.dir, "agent"), Meet: meetHere(s.BusListen), Map: s.Machine,
		Version: s.Page.Version, Measure: s.Child.Measure,
	}
	if cfg.Bus, err = s.srv.Node(name); err != nil {
		return err
	}
	return agent.Run(s.ctx, cfg)
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
