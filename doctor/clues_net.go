package doctor

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/doctor/evidence"
	"busbar.dev/doctor/told"
	"busbar.dev/finding"
	"busbar.dev/input/nccllog"
	"busbar.dev/internal/lazyre"
)

// badInterface is an interface in use that cannot reach other hosts, and what it is.
func (c *Case) badInterface() *clue {
	for _, k := range []evidence.Kind{evidence.Bootstrap, evidence.SocketUsing} {
		for _, o := range c.All(k) {
			for i, n := range strings.Split(o.Arg(0), ",") {
				if what := nccllog.Virtual(n); what != "" &&
					(i == 0 || c.multinode() || c.Has(evidence.ConnectError, evidence.ConnectRetry)) {
					// a further one is of no use on one host, and no harm
					return &clue{args: []string{n, what}, quotes: first(o.Quotes, 1)}
				}
				if k == evidence.Bootstrap && o.Arg(1) != "" {
					what := "an interface with a link-local address, which no other network can reach"
					return &clue{args: []string{n, what}, quotes: first(o.Quotes, 1)}
				}
			}
		}
	}
	return nil
}

// namedInterface says what is wrong with the interface that NCCL_SOCKET_IFNAME names, or leaves. A job on one host may
// well use the loopback.
func (c *Case) namedInterface() string {
	e := c.Env("NCCL_SOCKET_IFNAME")
	if e == nil || c.experiment() {
		return ""
	}
	several := c.multinode() || c.Log == nil || c.Has(evidence.ConnectError, evidence.PeerGone)
	names, avoid := strings.CutPrefix(e.Value, "^")
	for n := range strings.SplitSeq(strings.TrimPrefix(names, "="), ",") {
		switch what := nccllog.Virtual(n); {
		case avoid && n == "lo":
			return ""
		case !avoid && what != "" && (n != "lo" || several && (c.broken() || c.tells(told.Slow))):
			return fmt.Sprintf("NCCL_SOCKET_IFNAME=%s names %s: other hosts cannot be reached through it.", e.Value, what)
		}
	}
	if avoid && several && (c.tells(told.Hang) || c.Has(evidence.ConnectError)) {
		return "NCCL_SOCKET_IFNAME=" + e.Value + " replaces NCCL's own list of interfaces to avoid, which has lo and " +
			"docker in it: the loopback is then the first one left, and other hosts are told an address that leads to " +
			"themselves."
	}
	return ""
}

// adaptersDiffer are two different lists of adapters on different hosts of one job.
func (c *Case) adaptersDiffer() []finding.Quote {
	list := c.All(evidence.IBUsing)
	if len(list) < 2 {
		return nil
	}
	for _, a := range list {
		for _, b := range list {
			if a == b || len(a.Hosts) == 0 || len(b.Hosts) == 0 {
				continue
			}
			if strings.Count(a.Arg(0), ",") != strings.Count(b.Arg(0), ",") && !overlap(a.Hosts, b.Hosts) {
				return append(first(a.Quotes, 1), first(b.Quotes, 1)...)
			}
		}
	}
	return nil
}

func overlap(a, b map[string]bool) bool {
	for h := range a {
		if b[h] {
			return true
		}
	}
	return false
}

// ibInterface is how the kernel and udev name interfaces of IP over InfiniBand: ib0, ibs3, ibp65s0f1.
var ibInterface = lazyre.New(`^ib(?:\d+|[sp]\d+\w*)$`)

// ibSeen reports that InfiniBand is there although NCCL does not name it: it lists an interface of IP over InfiniBand
// among those it could use.
func (c *Case) ibSeen() bool {
	return slices.ContainsFunc(append(slices.Clone(c.All(evidence.SocketUsing)), c.All(evidence.Bootstrap)...),
		func(o *evidence.Observation) bool {
			return slices.ContainsFunc(strings.Split(o.Arg(0), ","), ibInterface.MatchString)
		})
}

// socketNetwork is the line that says that NCCL uses sockets. The list of their
// interfaces alone is printed where no other network was found.
func (c *Case) socketNetwork() *clue {
	o := c.First(evidence.Network, "Socket")
	if o == nil && c.Told && !c.Has(evidence.IBUsing, evidence.Network) {
		o = c.First(evidence.SocketUsing)
	}
	return clueOf(o)
}

// networksDiffer reports hosts of one job that name different networks.
func (c *Case) networksDiffer() bool {
	names, hostsOf := map[string]bool{}, map[string]string{}
	for _, o := range c.All(evidence.Network) {
		names[o.Arg(0)] = true
		for h := range o.Hosts {
			if had, ok := hostsOf[h]; ok && had != o.Arg(0) {
				return false // several runs in one text
			}
			hostsOf[h] = o.Arg(0)
		}
	}
	return len(names) > 1 && len(hostsOf) > 1
}
