package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/doctor/evidence"
	"busbar.dev/doctor/told"
	"busbar.dev/finding"
	"busbar.dev/input/nccllog"
	"busbar.dev/internal/lazyre"
)

// layersMixed is a list of devices with InfiniBand and RoCE among them, unless the log shows that channels use those of
// one kind alone.
func (c *Case) layersMixed() *evidence.Observation {
	list := c.Find(evidence.IBUsing, func(o *evidence.Observation) bool { return o.Arg(1) == "IB+RoCE" })
	if list == nil || c.Log == nil {
		return list
	}
	type device struct {
		host  string
		index int
	}
	layer := map[device]string{}
	for i := range c.Log.NICs {
		if n := &c.Log.NICs[i]; n.Layer != "" {
			layer[device{n.Host, n.Index}] = n.Layer
		}
	}
	used := map[string]bool{}
	for i := range c.Log.Connections {
		if x := &c.Log.Connections[i]; x.NetDev >= 0 && x.Net != "Socket" {
			used[layer[device{x.Host, x.NetDev}]] = true
		}
	}
	if delete(used, ""); len(used) == 1 {
		return nil
	}
	return list
}

// badInterface is an interface in use that cannot reach other hosts, and what it is.
func (c *Case) badInterface() *clue {
	for _, k := range []evidence.Kind{evidence.Bootstrap, evidence.SocketUsing} {
		for _, o := range c.All(k) {
			classes := strings.Split(o.Arg(1), ",")
			for i, n := range strings.Split(o.Arg(0), ",") {
				class := classes[min(i, len(classes)-1)]
				if what := nccllog.Virtual(n); what != "" &&
					(i == 0 || c.multinode() || c.Has(evidence.ConnectError, evidence.ConnectRetry)) {
					return &clue{[]string{n, what}, first(o.Quotes, 1)} // a further one is of no use on one host, and no harm
				}
				if class == "link-local" && i == 0 {
					return &clue{
						[]string{n, "an interface with a link-local address, which no other network can reach"}, first(o.Quotes, 1),
					}
				}
			}
		}
	}
	return nil
}

// farAddresses are kinds of addresses that no other host reaches.
var farAddresses = map[string]string{
	"link-local": "The address is a link-local one (fe80::, 169.254.), which is valid on one cable only: the interface " +
		"has no other, or NCCL_SOCKET_FAMILY asks for IPv6.",
	"loopback": "The address is the loopback: the other host's name leads to itself, or it was told to use lo.",
	"docker":   "The address is that of Docker's own bridge, which every host has.",
	"bridge": "The address is that of a container bridge on the other host (Docker's networks begin like this), " +
		"which is not reached from outside.",
}

// farAddress is an address that could not be reached and never will be. A bridge's
// address may be right where the host's own lies beside it.
func (c *Case) farAddress() *evidence.Observation {
	for _, o := range c.All(evidence.PeerNet) {
		if farAddresses[o.Arg(0)] == "" || !c.Has(evidence.ConnectError) || c.Has(evidence.Gloo) {
			continue
		}
		beside := false
		for _, own := range c.All(evidence.OwnNet) {
			beside = beside || own.Arg(1) == o.Arg(2)
		}
		if !beside && (o.Arg(0) != "loopback" || c.multinode()) {
			return o
		}
	}
	return nil
}

// toldVirtual is what the interface that NCCL is told to use is, when it exists on
// one host only. A job on one host may well use the loopback.
func (c *Case) toldVirtual() string {
	name := strings.TrimPrefix(c.value("NCCL_SOCKET_IFNAME"), "=")
	if name == "" || name[0] == '^' || strings.Contains(name, ",") || name == "lo" || c.experiment() {
		return ""
	}
	return nccllog.Virtual(name)
}

// devicesDiffer reports that UCX and NCCL are told to use different NICs.
func (c *Case) devicesDiffer() bool {
	ucx, nccl := c.value("UCX_NET_DEVICES"), c.value("NCCL_IB_HCA")
	if !strings.HasPrefix(ucx, "mlx") || nccl == "" || strings.HasPrefix(nccl, "^") {
		return false
	}
	for d := range strings.SplitSeq(ucx, ",") {
		for n := range strings.SplitSeq(strings.TrimPrefix(nccl, "="), ",") {
			if n, _, _ = strings.Cut(n, ":"); strings.HasPrefix(d, n) {
				return false
			}
		}
	}
	return true
}

// farWhy says what the address that cannot be reached is.
func (c *Case) farWhy() string {
	if o := c.farAddress(); o != nil {
		return farAddresses[o.Arg(0)]
	}
	return ""
}

// namedInterface says what is wrong with the interface that a setting names, or leaves.
func (c *Case) namedInterface() string {
	e := c.Env("NCCL_SOCKET_IFNAME")
	if e == nil || !c.broken() && !c.tells(told.Slow) || !c.multinode() &&
		!c.Has(evidence.ConnectError, evidence.PeerGone) && c.Log != nil {
		return ""
	}
	return c.whyUnreachable(e.Value)
}

// whyUnreachable says what is wrong with a value of NCCL_SOCKET_IFNAME, "" when
// nothing is known to be.
func (c *Case) whyUnreachable(value string) string {
	names, avoid := strings.CutPrefix(value, "^")
	for _, n := range strings.Split(strings.TrimPrefix(names, "="), ",") {
		n = strings.TrimPrefix(n, "=")
		switch what := nccllog.Virtual(n); {
		case avoid && n == "lo":
			return ""
		case !avoid && what != "":
			return fmt.Sprintf("NCCL_SOCKET_IFNAME=%s names %s: other hosts cannot be reached through it.", value, what)
		}
	}
	if avoid && (c.tells(told.Hang) || c.Has(evidence.ConnectError)) {
		return "NCCL_SOCKET_IFNAME=" + value + " replaces NCCL's own list of interfaces to avoid, which has lo and docker " +
			"in it: the loopback is then the first one left, and other hosts are told an address that leads to themselves."
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

// fastCluster reports that the joined cluster has NICs for RDMA.
func (c *Case) fastCluster() bool {
	on := cmp.Or(c.Cluster, c.Given)
	if on == nil || len(on.Hosts) < 2 {
		return false
	}
	for _, t := range on.Types {
		for _, i := range t.Of(cluster.NIC) {
			if n := t.Devices[i].NIC; n != nil &&
				(n.Kind == cluster.InfiniBand || n.Kind == cluster.RoCE || n.Kind == cluster.EFA) {
				return true
			}
		}
	}
	return false
}

// ibInterface is how the kernel and udev name interfaces of IP over InfiniBand: ib0, ibs3, ibp65s0f1.
var ibInterface = lazyre.New(`^ib(?:\d+|[sp]\d+\w*)$`)

// ibSeen reports that InfiniBand is there although NCCL does not name it: it lists an interface of IP over InfiniBand
// among those it could use, or a map of the machine has an InfiniBand NIC.
func (c *Case) ibSeen() bool {
	for _, o := range append(slices.Clone(c.All(evidence.SocketUsing)), c.All(evidence.Bootstrap)...) {
		if slices.ContainsFunc(strings.Split(o.Arg(0), ","), ibInterface.MatchString) {
			return true
		}
	}
	return c.Cluster != nil && slices.ContainsFunc(c.Cluster.Types, func(t *cluster.NodeType) bool {
		return slices.ContainsFunc(t.Of(cluster.NIC),
			func(i int) bool { n := t.Devices[i].NIC; return n != nil && n.Kind == cluster.InfiniBand })
	})
}

// socketNetwork is the line that says that NCCL uses sockets. The list of their
// interfaces alone is printed where no other network was found.
func (c *Case) socketNetwork() *evidence.Observation {
	o := c.First(evidence.Network, "Socket")
	if o == nil && c.Told && !c.Has(evidence.IBUsing, evidence.Network) {
		o = c.First(evidence.SocketUsing)
	}
	return o
}

// sharedNet is a network that two interfaces of one host lie in.
func (c *Case) sharedNet() *clue {
	list := c.All(evidence.Subnet)
	for i, a := range list {
		for _, b := range list[i+1:] {
			if a.Arg(0) == b.Arg(0) && a.Arg(2) == b.Arg(2) && a.Arg(1) != b.Arg(1) && nccllog.Virtual(a.Arg(1)) == "" &&
				nccllog.Virtual(b.Arg(1)) == "" {
				return &clue{[]string{a.Arg(1), b.Arg(1), a.Arg(0)}, slices.Concat(first(a.Quotes, 1), first(b.Quotes, 1))}
			}
		}
	}
	return nil
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

// slowProvider is libfabric's provider where it is none for RDMA.
func (c *Case) slowProvider() *evidence.Observation {
	return c.Find(evidence.Provider, func(o *evidence.Observation) bool {
		return !slices.ContainsFunc([]string{"efa", "cxi", "verbs", "psm", "opx"},
			func(p string) bool { return strings.HasPrefix(strings.ToLower(o.Arg(0)), p) })
	})
}

// libfabricSettings reports settings of libfabric or its plugin.
func (c *Case) libfabricSettings() bool {
	return slices.ContainsFunc(c.EnvNames(),
		func(n string) bool { return strings.HasPrefix(n, "FI_") || strings.HasPrefix(n, "OFI_NCCL_") })
}

// socketLoss reports that sockets are in use where RDMA is, or somebody complains of speed.
func (c *Case) socketLoss() bool {
	return c.rdma() && c.hosts > 1 || c.Has(evidence.IBUsing) || c.tells(told.Slow)
}
