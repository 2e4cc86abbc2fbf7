package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
)

// interfaceRules are about reaching other hosts at all.
func interfaceRules() []Rule {
	return []Rule{
		{"wrong-interface", "the interface of bootstrap or sockets, NCCL_SOCKET_IFNAME, failed connections", "NCCL took an interface that does not reach the other hosts", envGuide + "#nccl-socket-ifname", []string{"connect-failed", "nccl-error", "collective-timeout", "peer-died", "rendezvous", "socket-fallback", "gid-index", "bad-link", "ports-exhausted"}, wrongInterface},
		{"no-interface", "NCCL's warning that no interface was found", "NCCL_SOCKET_IFNAME leaves no interface", envGuide + "#nccl-socket-ifname", []string{"nccl-error", "connect-failed", "rendezvous"}, noInterface},
		{"connect-failed", "connections that are refused, time out or have no route", "hosts cannot reach each other's ports: a firewall, a wrong interface, or a dead process", trouble, []string{"nccl-error", "collective-timeout", "rendezvous"}, connectFailed},
		{"rendezvous", "time-outs of torchrun's store", "ranks could not meet at MASTER_ADDR", "https://docs.pytorch.org/docs/stable/elastic/rendezvous.html", []string{"nccl-error"}, rendezvous},
		{"port-taken", "address already in use", "another process holds the port", "https://docs.pytorch.org/docs/stable/elastic/run.html", []string{"nccl-error", "rendezvous"}, portTaken},
	}
}

// virtualNames begin the names of interfaces that exist on one host only, or
// that no training traffic should take.
var virtualNames = []struct{ prefix, what string }{
	{"docker", "Docker's bridge"},
	{"br-", "a Docker bridge"},
	{"virbr", "libvirt's bridge"},
	{"veth", "one end of a container's cable"},
	{"lo", "the loopback"},
	{"ip6tnl", "a tunnel"},
	{"tunl", "a tunnel"},
	{"sit", "a tunnel"},
	{"gre", "a tunnel"},
	{"tun", "a VPN's tunnel"},
	{"tap", "a virtual machine's cable"},
	{"wg", "WireGuard"},
	{"tailscale", "Tailscale"},
	{"zt", "ZeroTier"},
	{"cni", "a bridge of Kubernetes"},
	{"cali", "Calico's cable"},
	{"flannel", "Flannel's tunnel"},
	{"kube", "a bridge of Kubernetes"},
	{"lxc", "a container's cable"},
	{"lxd", "LXD's bridge"},
	{"vmnet", "a virtual machine's network"},
	{"vboxnet", "VirtualBox's network"},
	{"usb", "a USB network"},
	{"enx", "a USB network"},
	{"wlan", "wireless"},
	{"wlp", "wireless"},
	{"dummy", "a dummy interface"},
	{"podman", "Podman's bridge"},
	{"nodelocaldns", "a DNS cache"},
	{"idrac", "the management controller"},
	{"ipmi", "the management controller"},
	{"bmc", "the management controller"},
}

// virtual says what an interface is when its name tells that it leads nowhere.
func virtual(name string) string {
	for _, v := range virtualNames {
		rest, ok := strings.CutPrefix(name, v.prefix)
		if ok && (v.prefix != "lo" || rest == "") && (v.prefix != "usb" && v.prefix != "tun" && v.prefix != "sit" && v.prefix != "tap" && v.prefix != "wg" || rest == "" || rest[0] >= '0' && rest[0] <= '9') {
			return v.what
		}
	}
	return ""
}

// badInterface finds an interface in use that cannot reach other hosts.
func (c *Case) badInterface() (o *evidence.Observation, name, why string) {
	for _, k := range []evidence.Kind{evidence.Bootstrap, evidence.SocketUsing} {
		for _, o := range c.All(k) {
			classes := strings.Split(o.Arg(1), ",")
			for i, n := range strings.Split(o.Arg(0), ",") {
				class := classes[min(i, len(classes)-1)]
				if what := virtual(n); what != "" && (i == 0 || c.multinode() || c.Has(evidence.ConnectError, evidence.ConnectRetry)) {
					return o, n, what // a further one is of no use on one host, and no harm
				}
				if class == "link-local" && i == 0 {
					return o, n, "an interface with a link-local address, which no other network can reach"
				}
			}
		}
	}
	return nil, "", ""
}

func wrongInterface(c *Case) *finding.Finding {
	o, name, why := c.badInterface()
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.9,
		Fix: "NCCL_SOCKET_IFNAME=<interface of the cluster's network> on every host (also GLOO_SOCKET_IFNAME); a list to avoid is NCCL_SOCKET_IFNAME=^lo,docker,veth,virbr; ip -br addr shows them.",
	}
	lo := name == "lo"
	switch far := c.farAddress(); {
	case o == nil && c.Has(evidence.OtherNet):
		f.Title = "No interface of this host lies in the network of the first rank"
		f.Cause = "The address that ranks shall meet at belongs to another network than any interface here: the container has a bridge of its own and not the host's addresses, or the address is that of another interface."
		f.Fix = "docker run --network=host (hostNetwork: true); or an address of the network that all containers share. " + f.Fix
		f.Confidence, f.Evidence = 0.88, c.quotes(evidence.OtherNet, evidence.Bootstrap, "NCCL_COMM_ID")
	case o == nil && far != nil:
		f.Title = "A peer is called at an address that leads nowhere (" + far.Arg(0) + ")"
		f.Cause = farAddresses[far.Arg(0)] + " Every host gives the address of the interface that it took itself, so the fault is on the host that gave it."
		f.Confidence, f.Evidence = 0.85, c.quotes(far, evidence.ConnectError, "NCCL_SOCKET_IFNAME")
	case o != nil && lo && c.hosts < 2 && !c.Has(evidence.ConnectError, evidence.ConnectRetry) && !c.broken():
		return nil // a job on one host may talk to itself
	case o != nil && (c.multinode() || c.broken() || c.Told || c.Has(evidence.ConnectRetry)):
		f.Title = fmt.Sprintf("NCCL uses the wrong network interface: %s", name)
		f.Cause = fmt.Sprintf("%s is %s: other hosts cannot be reached through it, or only slowly. NCCL chooses the first interface that is not docker or lo, unless NCCL_SOCKET_IFNAME names another.", name, why)
		f.Evidence = c.quotes(o, evidence.ConnectError, evidence.ConnectRetry, "NCCL_SOCKET_IFNAME")
		if !c.broken() && !c.Has(evidence.ConnectRetry) && !c.Told {
			f.Severity, f.Confidence = finding.Warn, 0.6
		}
	case o == nil && c.toldVirtual() != "":
		f.Title = "NCCL_SOCKET_IFNAME names an interface that reaches no other host"
		f.Cause = "NCCL_SOCKET_IFNAME is " + c.value("NCCL_SOCKET_IFNAME") + ", which is " + c.toldVirtual() + "."
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.7, c.quotes("NCCL_SOCKET_IFNAME")
	case c.about("installed") && c.broken():
		f.Title = "A new virtual interface is in the way"
		f.Cause = "What was installed brought an interface of its own (docker0, virbr0, tun0, tailscale0), and NCCL, Gloo or MPI now take it first though it reaches no other host."
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.65, c.told("installed", "hang", "crash")
	case c.namedInterface(f), c.otherInterface(f):
	case c.about("mgmt") && c.slow():
		f.Title = "Training traffic goes over the management network"
		f.Cause = "The interface that NCCL is told to use, or finds first, is the management port, which is slower than the network that was built for training."
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.75, append(c.told("mgmt", "slow"), c.quotes("NCCL_SOCKET_IFNAME")...)
	case c.mixedLayers() != nil:
		f.Title = "InfiniBand and Ethernet (RoCE) ports are used together"
		f.Cause = "NCCL_IB_HCA lets NCCL use ports of both link layers; they cannot talk to each other, and rails then differ between hosts."
		f.Fix = "NCCL_IB_HCA=<the compute NICs only>, e.g. NCCL_IB_HCA=^mlx5_3,mlx5_4 to leave out Ethernet or storage ports."
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.75, c.quotes(c.mixedLayers(), evidence.NetMismatch)
		switch {
		case !c.multinode() && c.Has(evidence.CUDAFailure, evidence.IPCFailure):
			f.Severity, f.Confidence = finding.Note, 0.4 // what failed has nothing to do with NICs
		case c.broken() || c.Has(evidence.Completion):
			f.Severity, f.Confidence = finding.Error, 0.8
		}
	case c.devicesDiffer() != "":
		f.Title = "UCX and NCCL are told to use different NICs"
		f.Cause = c.devicesDiffer()
		f.Fix = "Name the same devices in UCX_NET_DEVICES and NCCL_IB_HCA."
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.6, c.quotes("UCX_NET_DEVICES", "NCCL_IB_HCA")
	default:
		return nil
	}
	return f
}

// farAddresses are kinds of addresses that no other host reaches.
var farAddresses = map[string]string{
	"link-local": "The address is a link-local one (fe80::, 169.254.), which is valid on one cable only: the interface has no other, or NCCL_SOCKET_FAMILY asks for IPv6.",
	"loopback":   "The address is the loopback: the other host's name leads to itself, or it was told to use lo.",
	"docker":     "The address is that of Docker's own bridge, which every host has.",
	"bridge":     "The address is that of a container bridge on the other host (Docker's networks begin like this), which is not reached from outside.",
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
	return virtual(name)
}

// mixedLayers is a list of adapters with both link layers.
func (c *Case) mixedLayers() *evidence.Observation {
	return cmp.Or(c.Find(evidence.IBUsing, func(o *evidence.Observation) bool { return o.Arg(1) == "IB+RoCE" }), c.First(evidence.NetMismatch))
}

// devicesDiffer compares the devices that UCX and NCCL may use.
func (c *Case) devicesDiffer() string {
	ucx, nccl := c.value("UCX_NET_DEVICES"), c.value("NCCL_IB_HCA")
	if ucx == "" || nccl == "" || ucx == "all" || strings.HasPrefix(nccl, "^") {
		return ""
	}
	names := func(s string) []string {
		var list []string
		for _, n := range strings.Split(strings.TrimPrefix(s, "="), ",") {
			n, _, _ = strings.Cut(n, ":")
			list = append(list, n)
		}
		return list
	}
	u, n := names(ucx), names(nccl)
	if !strings.HasPrefix(u[0], "mlx") || slices.ContainsFunc(u, func(d string) bool {
		return slices.ContainsFunc(n, func(p string) bool { return strings.HasPrefix(d, p) })
	}) {
		return ""
	}
	return fmt.Sprintf("UCX_NET_DEVICES is %s and NCCL_IB_HCA is %s: MPI and NCCL use different NICs, of which one set may not be the compute fabric.", ucx, nccl)
}

func noInterface(c *Case) *finding.Finding {
	if c.Has(evidence.NoAddress) && !c.Has(evidence.NoInterface) {
		return noAddress(c)
	}
	if !c.Has(evidence.NoInterface) {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.95, Title: "NCCL found no network interface to use",
		Cause: "NCCL_SOCKET_IFNAME excludes every interface of this host, or names one that is not there (a container often has eth0 only, and lo).",
		Fix:   "unset NCCL_SOCKET_IFNAME, or name one that `ip -br addr` shows inside the container.", Evidence: c.quotes(evidence.NoInterface, "NCCL_SOCKET_IFNAME"),
	}
}

// noAddress is for a rank that was given no address of the first one: releases that
// do not complain about a missing interface pass on an empty one.
func noAddress(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.75, Title: "The first rank gave no address: it found no interface, or its id never came",
		Cause: "The address in NCCL's unique id is of no family. The host that made it has no interface of the name in NCCL_SOCKET_IFNAME, or the id was not passed on (nccl-tests without MPI, ranks of different builds of NCCL).",
		Fix:   "NCCL_SOCKET_IFNAME must name an interface of every host, the first above all (ip -br addr); a list such as eno1,eth0 where names differ; one NCCL and an MPI build everywhere.", Evidence: c.quotes(evidence.NoAddress, "NCCL_SOCKET_IFNAME"),
	}
	if c.Env("NCCL_SOCKET_IFNAME") != nil {
		f.Confidence = 0.9
	}
	return f
}

func connectFailed(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.75, Title: "Hosts cannot connect to each other (firewall, port or interface)",
		Cause: "A TCP connection of NCCL's bootstrap or sockets failed. NCCL uses ports that the kernel picks, so a firewall or security group must let all ports pass between the hosts; else the address belongs to an interface that does not reach, or the peer has died.",
		Fix:   "nc -l 12345 on one host and nc HOST 12345 on the other; allow all TCP between the nodes (ufw, firewalld, security group); NCCL_SOCKET_IFNAME to the right network; ip_local_port_range to bound the ports.",
	}
	f.Evidence = c.quotes(evidence.ConnectError, evidence.ConnectRetry, evidence.Firewall)
	switch list := c.All(evidence.ConnectError); {
	case len(list) == 1 && list[0].Arg(0) == "proxy":
		if c.Has(evidence.VerbsFailure, evidence.Completion, evidence.OFIFailure, evidence.ShmFailure) {
			return nil // what it says in detail
		}
		f.Confidence = 0.65
		f.Cause = "NCCL's proxy thread could not connect to its peer, and gives no reason. Where ranks run in containers, the address of the container's own bridge is not reached from the other host. " + f.Cause
		f.Fix = "docker run --network=host (hostNetwork: true, or an overlay that reaches all pods); " + f.Fix
	case c.Has(evidence.ConnectError) && c.First(evidence.ConnectError, "refused") != nil && len(c.All(evidence.ConnectError)) == 1:
		f.Confidence = 0.65
		f.Cause = "A connection was refused: nothing listens at that address, because the process there has died (look at its log first), has not started, or a firewall rejects. " + f.Cause
	case c.Has(evidence.ConnectError):
	case c.Has(evidence.ConnectRetry) && c.broken():
		f.Confidence = 0.6
		if c.First(evidence.ConnectRetry, "refused") != nil {
			f.Confidence = 0.4 // a process that ends refuses too
		}
	case c.First(evidence.ConnectRetry, "refused") != nil && c.Log == nil:
		f.Severity, f.Confidence, f.Title = finding.Note, 0.4, "Connections were refused and tried again"
		f.Cause = "Nothing listened there yet: ranks that start before the first one print this in healthy jobs too. Where nothing came after it, the first process has died or never started, or MASTER_ADDR and MASTER_PORT name another."
	case c.about("firewall"):
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.65, c.told("firewall", "hang", "crash")
	default:
		return nil
	}
	if c.Has(evidence.Firewall) {
		f.Confidence = 0.85
	}
	return f
}

func rendezvous(c *Case) *finding.Finding {
	if !c.Has(evidence.Rendezvous, evidence.Gloo) {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.7, Title: "Ranks could not meet (rendezvous time-out)",
		Cause: "The store at MASTER_ADDR was not reached in time or some ranks never came: a wrong address or port, a firewall, fewer processes than WORLD_SIZE, or a rank that died while importing.",
		Fix:   "MASTER_ADDR must resolve to the same reachable address on all hosts; check that all nodes started (--nnodes, --node_rank); raise the time-out for slow file systems; GLOO_SOCKET_IFNAME to the right network.", Evidence: c.quotes(evidence.Rendezvous, evidence.Gloo, "MASTER_ADDR", "MASTER_PORT"),
	}
}

func portTaken(c *Case) *finding.Finding {
	if !c.Has(evidence.AddressInUse) {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.9, Title: "The port is taken (address already in use)",
		Cause: "Another job, or a left-over process of the last one, holds MASTER_PORT on this host.",
		Fix:   "Another MASTER_PORT or --rdzv-endpoint=HOST:0; end the left-over process (ss -ltnp).", Evidence: c.quotes(evidence.AddressInUse, "MASTER_PORT"),
	}
}
