package doctor

import (
	"fmt"
	"slices"
	"strings"

	"busbar/cluster"
	"busbar/evidence"
)

// interfaceRules are about reaching other hosts at all.
func interfaceRules() []Rule {
	return []Rule{
		{"wrong-interface", "the interface of bootstrap or sockets, NCCL_SOCKET_IFNAME, failed connections", "NCCL took an interface that does not reach the other hosts", envGuide + "#nccl-socket-ifname", []string{"connect-failed", "nccl-error", "collective-timeout", "peer-died", "rendezvous", "socket-fallback", "gid-index", "bad-link"}, wrongInterface},
		{"no-interface", "NCCL's warning that no interface was found", "NCCL_SOCKET_IFNAME leaves no interface", envGuide + "#nccl-socket-ifname", []string{"nccl-error", "connect-failed"}, noInterface},
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
				if what := virtual(n); what != "" {
					return o, n, what
				}
				if class == "link-local" && i == 0 {
					return o, n, "an interface with a link-local address, which no other network can reach"
				}
			}
		}
	}
	return nil, "", ""
}

func wrongInterface(c *Case) *Finding {
	o, name, why := c.badInterface()
	f := &Finding{
		Severity: Error, Confidence: 0.9,
		Fix: "NCCL_SOCKET_IFNAME=<interface of the cluster's network> on every host (also GLOO_SOCKET_IFNAME); a list to avoid is NCCL_SOCKET_IFNAME=^lo,docker,veth,virbr; ip -br addr shows them.",
	}
	lo := name == "lo"
	switch {
	case o != nil && lo && c.hosts < 2 && !c.Has(evidence.ConnectError, evidence.ConnectRetry) && !c.broken():
		return nil // a job on one host may talk to itself
	case o != nil && (c.multinode() || c.broken() || c.Told || c.Has(evidence.ConnectRetry)):
		f.Title = fmt.Sprintf("NCCL uses the wrong network interface: %s", name)
		f.Cause = fmt.Sprintf("%s is %s: other hosts cannot be reached through it, or only slowly. NCCL takes the first interface that is not docker or lo unless it is told.", name, why)
		f.Evidence = c.quotes(o, evidence.ConnectError, evidence.ConnectRetry, "NCCL_SOCKET_IFNAME")
		if !c.broken() && !c.Has(evidence.ConnectRetry) && !c.Told {
			f.Severity, f.Confidence = Warn, 0.6
		}
	case c.namedInterface(f), c.otherInterface(f):
	case c.about("mgmt") && c.slow():
		f.Title = "Training traffic goes over the management network"
		f.Cause = "The interface that NCCL is told to use, or finds first, is the management port, which is slower than the network that was built for training."
		f.Severity, f.Confidence, f.Evidence = Warn, 0.75, append(c.told("mgmt", "slow"), c.quotes("NCCL_SOCKET_IFNAME")...)
	case c.mixedLayers() != nil:
		f.Title = "InfiniBand and Ethernet (RoCE) ports are used together"
		f.Cause = "NCCL_IB_HCA lets NCCL use ports of both link layers; they cannot talk to each other, and rails then differ between hosts."
		f.Fix = "NCCL_IB_HCA=<the compute NICs only>, e.g. NCCL_IB_HCA=^mlx5_3,mlx5_4 to leave out Ethernet or storage ports."
		f.Severity, f.Confidence, f.Evidence = Warn, 0.75, c.quotes(c.mixedLayers(), evidence.NetMismatch)
		if c.broken() || c.Has(evidence.Completion) {
			f.Severity, f.Confidence = Error, 0.8
		}
	case c.devicesDiffer() != "":
		f.Title = "UCX and NCCL are told to use different NICs"
		f.Cause = c.devicesDiffer()
		f.Fix = "Name the same devices in UCX_NET_DEVICES and NCCL_IB_HCA."
		f.Severity, f.Confidence, f.Evidence = Warn, 0.6, c.quotes("UCX_NET_DEVICES", "NCCL_IB_HCA")
	default:
		return nil
	}
	return f
}

// mixedLayers is a list of adapters with both link layers.
func (c *Case) mixedLayers() *evidence.Observation {
	for _, o := range c.All(evidence.IBUsing) {
		if o.Arg(1) == "IB+RoCE" {
			return o
		}
	}
	return c.First(evidence.NetMismatch)
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

func noInterface(c *Case) *Finding {
	if !c.Has(evidence.NoInterface) {
		return nil
	}
	return &Finding{
		Severity: Error, Confidence: 0.95, Title: "NCCL found no network interface to use",
		Cause: "NCCL_SOCKET_IFNAME excludes every interface of this host, or names one that is not there (a container often has eth0 only, and lo).",
		Fix:   "unset NCCL_SOCKET_IFNAME, or name one that `ip -br addr` shows inside the container.", Evidence: c.quotes(evidence.NoInterface, "NCCL_SOCKET_IFNAME"),
	}
}

func connectFailed(c *Case) *Finding {
	f := &Finding{
		Severity: Error, Confidence: 0.75, Title: "Hosts cannot connect to each other (firewall, port or interface)",
		Cause: "A TCP connection of NCCL's bootstrap or sockets failed. NCCL uses ports that the kernel picks, so a firewall or security group must let all ports pass between the hosts; else the address belongs to an interface that does not reach, or the peer has died.",
		Fix:   "nc -l 12345 on one host and nc HOST 12345 on the other; allow all TCP between the nodes (ufw, firewalld, security group); NCCL_SOCKET_IFNAME to the right network; ip_local_port_range to bound the ports.",
	}
	f.Evidence = c.quotes(evidence.ConnectError, evidence.ConnectRetry, evidence.Firewall)
	switch {
	case c.Has(evidence.ConnectError) && c.First(evidence.ConnectError, "refused") != nil && len(c.All(evidence.ConnectError)) == 1:
		f.Confidence = 0.65
		f.Cause = "A connection was refused: nothing listens at that address, because the process there has died (look at its log first), has not started, or a firewall rejects. " + f.Cause
	case c.Has(evidence.ConnectError):
	case c.Has(evidence.ConnectRetry) && c.broken():
		f.Confidence = 0.6
		if c.First(evidence.ConnectRetry, "refused") != nil {
			f.Confidence = 0.4 // a process that ends refuses too
		}
	case c.about("firewall"):
		f.Severity, f.Confidence, f.Evidence = Warn, 0.65, c.told("firewall", "hang", "crash")
	default:
		return nil
	}
	if c.Has(evidence.Firewall) {
		f.Confidence = 0.85
	}
	return f
}

func rendezvous(c *Case) *Finding {
	if !c.Has(evidence.Rendezvous, evidence.Gloo) {
		return nil
	}
	return &Finding{
		Severity: Error, Confidence: 0.7, Title: "Ranks could not meet (rendezvous time-out)",
		Cause: "The store at MASTER_ADDR was not reached in time or some ranks never came: a wrong address or port, a firewall, fewer processes than WORLD_SIZE, or a rank that died while importing.",
		Fix:   "MASTER_ADDR must resolve to the same reachable address on all hosts; check that all nodes started (--nnodes, --node_rank); raise the time-out for slow file systems; GLOO_SOCKET_IFNAME to the right network.", Evidence: c.quotes(evidence.Rendezvous, evidence.Gloo, "MASTER_ADDR", "MASTER_PORT"),
	}
}

func portTaken(c *Case) *Finding {
	if !c.Has(evidence.AddressInUse) {
		return nil
	}
	return &Finding{
		Severity: Error, Confidence: 0.9, Title: "The port is taken (address already in use)",
		Cause: "Another job, or a left-over process of the last one, holds MASTER_PORT on this host.",
		Fix:   "Another MASTER_PORT or --rdzv-endpoint=HOST:0; end the left-over process (ss -ltnp).", Evidence: c.quotes(evidence.AddressInUse, "MASTER_PORT"),
	}
}

// networkRules are about which network NCCL uses.
func networkRules() []Rule {
	return []Rule{
		{"net-mismatch", "different networks, NIC counts or link layers between ranks", "hosts do not use the same network or NICs", trouble, []string{"nccl-error", "collective-timeout", "socket-fallback", "ib-device-unusable", "peer-died"}, netMismatch},
		{"container-no-rdma", "sockets or no device in a container", "the container or pod has no RDMA devices", "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html", []string{"socket-fallback", "ib-device-unusable"}, containerNoRDMA},
		{"libfabric", "libfabric's provider, failures of the OFI plugin, or a missing plugin on AWS", "EFA or another libfabric network is not in use", "https://github.com/aws/aws-ofi-nccl", []string{"socket-fallback"}, libfabric},
		{"ib-disabled", "NCCL_IB_DISABLE=1 or NCCL_NET=Socket", "InfiniBand is switched off by a setting", envGuide + "#nccl-ib-disable", []string{"socket-fallback"}, ibDisabled},
		{"ib-device-unusable", "devices that cannot be opened", "the RDMA devices are seen but cannot be used", trouble + "#networking-issues", []string{"socket-fallback"}, ibUnusable},
		{"socket-fallback", "sockets between hosts", "traffic between hosts goes over TCP sockets", envGuide, nil, socketFallback},
		{"gpudirect-tcpx", "GCP's network plugin", "the GPUDirect-TCPX plugin is not active", "https://cloud.google.com/kubernetes-engine/docs/how-to/gpu-bandwidth-gpudirect-tcpx", []string{"socket-fallback"}, tcpx},
	}
}

func netMismatch(c *Case) *Finding {
	f := &Finding{
		Severity: Error, Confidence: 0.85, Title: "Hosts do not use the same network or NICs",
		Cause: "NCCL has no agreement over networks: where one host uses InfiniBand and another sockets, or the lists of NICs differ, connections wait for ever or go to the wrong rail.",
		Fix:   "The same NCCL_IB_HCA and devices on every host; expose the missing device or leave it out everywhere; NCCL_IB_DISABLE=1 everywhere to confirm; do not set NCCL_IGNORE_NET_MISMATCH.",
	}
	nets := c.All(evidence.Network)
	names := map[string]bool{}
	hostsOf := map[string]string{}
	several := false
	for _, o := range nets {
		names[o.Arg(0)] = true
		for _, h := range o.HostNames() {
			if had, ok := hostsOf[h]; ok && had != o.Arg(0) {
				several = true // several runs in one text
			}
			hostsOf[h] = o.Arg(0)
		}
	}
	ignored := c.Env("NCCL_IGNORE_NET_MISMATCH") != nil && c.value("NCCL_IGNORE_NET_MISMATCH") == "1"
	switch {
	case len(names) > 1 && !several && len(hostsOf) > 1:
		f.Evidence = c.quotes(evidence.Network)
		f.Where = hosts(nets)
	case ignored && c.Has(evidence.DeviceFailure, evidence.NoIB):
		f.Confidence, f.Evidence = 0.9, c.quotes("NCCL_IGNORE_NET_MISMATCH", evidence.DeviceFailure, evidence.NoIB)
	case c.Has(evidence.NetDevCounts):
		f.Severity, f.Confidence, f.Evidence = Warn, 0.8, c.quotes(evidence.NetDevCounts)
	case c.adaptersDiffer() != nil:
		f.Severity, f.Confidence, f.Evidence = Warn, 0.75, c.adaptersDiffer()
		f.Where = hosts(c.All(evidence.IBUsing))
	case c.about("nicset") && (c.broken() || c.slow()):
		f.Severity, f.Confidence, f.Evidence = Warn, 0.65, c.told("nicset", "hang")
	case c.is("hang") && c.rdma() && (c.in("container") || c.in("multinode")) && c.Has(evidence.OverNet) && !c.Has(evidence.ConnectError, evidence.Completion):
		f.Severity, f.Confidence, f.Evidence = Warn, 0.5, append(c.told("hang", "container"), c.quotes(evidence.OverNet)...)
	default:
		return nil
	}
	return f
}

// adaptersDiffer are two different lists of adapters on different hosts of one job.
func (c *Case) adaptersDiffer() []evidence.Quote {
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

func containerNoRDMA(c *Case) *Finding {
	f := &Finding{
		Severity: Warn, Confidence: 0.6, Title: "The container has no RDMA devices",
		Cause: "Inside the container or pod NCCL sees no InfiniBand device and falls back to sockets: /dev/infiniband is not passed in, the pod does not request the RDMA resource, or IPC_LOCK is missing.",
		Fix:   "docker run --device=/dev/infiniband --cap-add=IPC_LOCK --ulimit memlock=-1 --network=host; in Kubernetes request the RDMA resource (rdma/ib, nvidia.com/hostdev, vpc.amazonaws.com/efa) and the secondary network.",
	}
	sockets := c.First(evidence.Network, "Socket") != nil || c.Has(evidence.NoIB)
	big := c.greatestDrop()
	switch {
	case c.about("ibdisabled") && c.in("container"):
		f.Confidence, f.Evidence = 0.75, c.told("ibdisabled", "container")
	case c.in("container") && sockets && (c.multinode() || c.Has(evidence.NoIB)):
		f.Confidence, f.Evidence = 0.75, append(c.told("container"), c.quotes(evidence.NoIB, evidence.Network)...)
	case c.in("container") && (big >= 20 || c.tableDrop() >= 20):
		f.Confidence, f.Evidence = 0.7, append(c.told("container", "slow", "drop"), c.changeQuotes()...)
	default:
		return nil
	}
	return f
}

func libfabric(c *Case) *Finding {
	f := &Finding{
		Severity: Error, Confidence: 0.9, Title: "The libfabric network (EFA, Slingshot) is not in use",
		Fix: "Install aws-ofi-nccl and libfabric in the image and put them in LD_LIBRARY_PATH; FI_PROVIDER=efa; attach EFA to every instance and let the security group allow all traffic to itself; on Slingshot enable the container's CXI hook. The log must say \"Selected Provider is efa\" (or cxi).",
	}
	for _, o := range c.All(evidence.Provider) {
		if p := strings.ToLower(o.Arg(0)); !strings.HasPrefix(p, "efa") && !strings.HasPrefix(p, "cxi") && !strings.HasPrefix(p, "verbs") && !strings.HasPrefix(p, "psm") && !strings.HasPrefix(p, "opx") {
			f.Title = "libfabric chose the provider " + o.Arg(0) + " instead of the fast one"
			f.Cause = "The OFI plugin runs over TCP: the libfabric it loaded has no efa (or cxi) provider, or the device is not visible."
			f.Evidence = c.quotes(o)
			return f
		}
	}
	cloud := c.in("efa", "slingshot") || c.value("FI_PROVIDER") != "" || c.Env("FI_EFA_USE_DEVICE_RDMA") != nil || slices.ContainsFunc(c.EnvNames(), func(n string) bool { return strings.HasPrefix(n, "FI_") || strings.HasPrefix(n, "OFI_NCCL_") })
	none := c.First(evidence.NoNetwork)
	switch {
	case c.Has(evidence.OFIFailure) && (c.broken() || c.First(evidence.Network, "AWS Libfabric") == nil):
		f.Title, f.Cause = "libfabric found no usable device", "The OFI plugin was loaded but its provider gave no device or endpoint: no EFA is attached, it is not passed into the container, or the security group blocks it."
		f.Evidence = c.quotes(evidence.OFIFailure, evidence.NoNetwork)
	case none != nil && (strings.Contains(none.Arg(0), "libfabric") || strings.Contains(none.Arg(0), "ofi") || strings.Contains(none.Arg(0), "aws")):
		f.Cause = "NCCL was told to use the libfabric plugin and did not find it: the plugin or the container hook that brings it is not active."
		f.Evidence = c.quotes(evidence.NoNetwork)
	case cloud && c.Has(evidence.NoPlugin):
		f.Title, f.Cause = "The network plugin for EFA (aws-ofi-nccl) was not found", "NCCL has no support for EFA of its own; without the plugin it uses TCP sockets."
		f.Evidence = append(c.quotes(evidence.NoPlugin), c.told("efa")...)
	default:
		return nil
	}
	return f
}

func ibDisabled(c *Case) *Finding {
	off := c.value("NCCL_IB_DISABLE")
	socket := c.value("NCCL_NET") == "socket"
	if off != "1" && off != "true" && !socket {
		return nil
	}
	f := &Finding{
		Severity: Warn, Confidence: 0.8, Title: "InfiniBand/RoCE is switched off by a setting",
		Cause: "NCCL_IB_DISABLE=1 (or NCCL_NET=Socket) makes NCCL use TCP sockets between hosts; it is often left over from debugging.",
		Fix:   "unset NCCL_IB_DISABLE NCCL_NET", Cost: c.socketCost(), Evidence: c.quotes("NCCL_IB_DISABLE", "NCCL_NET"),
	}
	if c.experiment() || !c.multinode() || !c.rdma() && c.First(evidence.Network, "Socket") != nil && !c.is("slow") {
		f.Severity, f.Confidence = Note, 0.6 // nothing is lost on one host, or where there is no RDMA
	}
	return f
}

func ibUnusable(c *Case) *Finding {
	o := c.First(evidence.DeviceFailure)
	if o == nil {
		return nil
	}
	f := &Finding{
		Severity: Warn, Confidence: 0.7, Title: "RDMA devices cannot be opened",
		Cause: "The NICs are listed but opening them failed: /dev/infiniband is not in the container, rights are missing, or user-space and kernel drivers differ.",
		Fix:   "ls -l /dev/infiniband; ibv_devinfo as the same user in the same container; --device=/dev/infiniband; matching rdma-core and OFED.", Evidence: c.quotes(evidence.DeviceFailure),
	}
	if !c.multinode() && !c.broken() {
		f.Severity = Note // a job on one host does not need them
	}
	return f
}

func socketFallback(c *Case) *Finding {
	o := c.socketNetwork()
	var over *evidence.Observation
	for _, x := range c.All(evidence.OverNet) {
		if strings.EqualFold(x.Arg(0), "Socket") {
			over = x
		}
	}
	if o == nil && over == nil {
		return nil
	}
	f := &Finding{
		Severity: Note, Confidence: 0.6, Title: "Hosts talk over TCP sockets",
		Cause: "NCCL uses sockets between hosts: every byte is copied by the CPU and GPUDirect RDMA is not possible.",
		Fix:   "If there is InfiniBand, RoCE or EFA: make it visible (ibv_devinfo, /dev/infiniband, the plugin) and set NCCL_NET=IB, so that a job fails instead of running slowly. Without: NCCL_SOCKET_NTHREADS=4 NCCL_NSOCKS_PERTHREAD=4 for fast Ethernet.",
		Cost:  c.socketCost(), Evidence: c.quotes(o, over, evidence.NoIB),
	}
	switch {
	case !c.multinode():
		return nil
	case c.rdma() && c.hosts > 1, c.Has(evidence.IBUsing), c.slow() && !c.in("tcp"):
		f.Severity, f.Confidence = Warn, 0.8
		f.Title = "NCCL fell back to TCP sockets although RDMA is there"
	case c.is("slow"):
		f.Severity, f.Confidence = Warn, 0.6
	}
	if c.fastCluster() {
		f.Severity, f.Confidence = Warn, 0.8
	}
	return f
}

// fastCluster reports that the joined cluster has NICs for RDMA.
func (c *Case) fastCluster() bool {
	if c.Cluster == nil || len(c.Cluster.Hosts) < 2 {
		return false
	}
	for _, t := range c.Cluster.Types {
		for _, i := range t.Of(cluster.NIC) {
			if n := t.Devices[i].NIC; n != nil && (n.Kind == cluster.InfiniBand || n.Kind == cluster.RoCE || n.Kind == cluster.EFA) {
				return true
			}
		}
	}
	return false
}

func tcpx(c *Case) *Finding {
	if !c.in("gcp") || !c.slow() && !c.about("plugin") && c.First(evidence.Network, "Socket") == nil {
		return nil
	}
	return &Finding{
		Severity: Warn, Confidence: 0.6, Title: "GPUDirect-TCPX/TCPXO is probably not active",
		Cause: "On Google's A3 machines the plugin, its receive daemon and the device injector (NRI) must all be in the pod; else NCCL uses plain TCP. The symptom is an average bus bandwidth below what the operator publishes.",
		Fix:   "Apply the NCCL configuration and NRI device injector manifests; the log must name the network FasTrak or GPUDirectTCPX; compare with the published threshold.", Evidence: c.told("gcp", "slow", "plugin"),
	}
}
