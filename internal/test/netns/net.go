// Package netns makes hosts of network namespaces: each with a name, an address and one network
// card of its own, joined by a switch. Tests and measurements take them for machines. It needs
// Linux, root and iproute2.
package netns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Net is a few hosts and their switch. The switch is a namespace too, so that nothing shows in
// the machine's own.
type Net struct {
	id    string
	dir   string // what the hosts see as /etc/hosts
	Hosts []Host
}

// Host is one namespace.
type Host struct {
	Name  string // as its programs see it
	Addr  string
	space string
}

// ErrNotHere is wrapped by the error of a machine on which no namespaces can be made.
var ErrNotHere = errors.New("network namespaces cannot be made here")

// New makes n hosts. Their cards carry rate both ways, in tc's words ("1gbit"); "" is as fast as
// the machine goes.
func New(n int, rate string) (*Net, error) {
	if n < 1 || n > 200 {
		return nil, fmt.Errorf("%d hosts; 1 to 200 are possible", n)
	}
	if os.Getuid() != 0 {
		return nil, fmt.Errorf("%w: not root", ErrNotHere)
	}
	for _, tool := range []string{"ip", "tc", "unshare"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("%w: no %s (Debian's packages are iproute2 and util-linux)", ErrNotHere, tool)
		}
	}
	dir, err := os.MkdirTemp("", "busbar-netns-")
	if err != nil {
		return nil, err
	}
	x := &Net{id: fmt.Sprintf("bb%d%s", os.Getpid(), strings.TrimPrefix(filepath.Base(dir), "busbar-netns-")), dir: dir}
	names := "127.0.0.1 localhost\n"
	for i := range n {
		h := Host{Name: fmt.Sprintf("host%d", i), Addr: fmt.Sprintf("10.97.0.%d", i+1), space: fmt.Sprintf("%s.%d", x.id, i)}
		x.Hosts = append(x.Hosts, h)
		names += h.Addr + " " + h.Name + "\n"
	}
	if err := os.WriteFile(x.etcHosts(), []byte(names), 0o644); err != nil {
		x.Close()
		return nil, err
	}
	if err := x.wire(rate); err != nil {
		x.Close()
		return nil, err
	}
	return x, nil
}

func (x *Net) etcHosts() string  { return filepath.Join(x.dir, "hosts") }
func (x *Net) switching() string { return x.id + ".sw" }

// wire makes the namespaces and joins them.
func (x *Net) wire(rate string) error {
	sw := x.switching()
	if err := ip("netns", "add", sw); err != nil {
		return fmt.Errorf("%w: %w", ErrNotHere, err)
	}
	steps := [][]string{
		{"-n", sw, "link", "add", "br0", "type", "bridge"},
		{"-n", sw, "link", "set", "br0", "up"},
	}
	for i, h := range x.Hosts {
		port := fmt.Sprintf("p%d", i)
		steps = append(steps,
			[]string{"netns", "add", h.space},
			[]string{"-n", sw, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", h.space},
			[]string{"-n", sw, "link", "set", port, "master", "br0", "up"},
			[]string{"-n", h.space, "link", "set", "lo", "up"},
			[]string{"-n", h.space, "addr", "add", h.Addr + "/24", "dev", "eth0"},
			[]string{"-n", h.space, "link", "set", "eth0", "up"})
	}
	for _, s := range steps {
		if err := ip(s...); err != nil {
			return err
		}
	}
	if rate == "" {
		return nil
	}
	for i, h := range x.Hosts {
		for _, end := range [][2]string{{h.space, "eth0"}, {sw, fmt.Sprintf("p%d", i)}} {
			if err := run("tc", "-n", end[0], "qdisc", "add", "dev", end[1], "root", "tbf", "rate", rate, "burst", "256k",
				"latency", "50ms"); err != nil {
				return err
			}
		}
	}
	return nil
}

// Command is a program on host i: in its namespace, under its name, with all hosts in its
// /etc/hosts.
func (x *Net) Command(ctx context.Context, i int, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", append(x.enter(i), args...)[1:]...)
}

// enter is what stands before a program to put it on host i.
func (x *Net) enter(i int) []string {
	h := x.Hosts[i]
	const script = `hostname "$1" && mount --bind "$2" /etc/hosts && shift 2 && exec "$@"`
	return []string{
		"ip", "netns", "exec", h.space, "unshare", "--uts", "--mount", "sh", "-c", script, "sh", h.Name, x.etcHosts(),
	}
}

// Agent is a shell script that stands in for ssh: options, a host by name or address, and a
// command line for its shell. Launchers take it.
func (x *Net) Agent() string {
	var b strings.Builder
	b.WriteString("#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\nhost=$1; shift\ncase $host in\n")
	for i, h := range x.Hosts {
		fmt.Fprintf(&b, "%s|%s) exec", h.Name, h.Addr)
		for _, w := range x.enter(i) {
			fmt.Fprintf(&b, " '%s'", w)
		}
		b.WriteString(" sh -c \"$*\" ;;\n")
	}
	b.WriteString("esac\necho \"no host $host\" >&2; exit 255\n")
	return b.String()
}

// Close takes the hosts away. Programs on them should have ended.
func (x *Net) Close() error {
	var all []error
	for _, h := range x.Hosts {
		if _, err := os.Stat("/run/netns/" + h.space); err == nil {
			all = append(all, ip("netns", "del", h.space))
		}
	}
	if _, err := os.Stat("/run/netns/" + x.switching()); err == nil {
		all = append(all, ip("netns", "del", x.switching()))
	}
	return errors.Join(append(all, os.RemoveAll(x.dir))...)
}

func ip(args ...string) error { return run("ip", args...) }

func run(name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
