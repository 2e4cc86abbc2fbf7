package doctor

import (
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
)

// networkRules are about which network NCCL uses.
func networkRules() []Rule {
	return []Rule{
		{"net-mismatch", "different networks, NIC counts or link layers between ranks", "hosts do not use the same network or NICs", trouble, []string{"nccl-error", "collective-timeout", "socket-fallback", "ib-device-unusable", "peer-died", "gid-index", "bad-link"}, netMismatch},
		{"container-no-rdma", "sockets or no device in a container", "the container or pod has no RDMA devices", "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html", []string{"socket-fallback", "ib-device-unusable"}, containerNoRDMA},
		{"libfabric", "libfabric's provider, failures of the OFI plugin, or a missing plugin on AWS", "EFA or another libfabric network is not in use", "https://github.com/aws/aws-ofi-nccl", []string{"socket-fallback"}, libfabric},
		{"ib-disabled", "NCCL_IB_DISABLE=1 or NCCL_NET=Socket", "InfiniBand is switched off by a setting", envGuide + "#nccl-ib-disable", []string{"socket-fallback"}, ibDisabled},
		{"ib-device-unusable", "devices that cannot be opened", "the RDMA devices are seen but cannot be used", trouble + "#networking-issues", []string{"socket-fallback"}, ibUnusable},
		{"socket-fallback", "sockets between hosts", "traffic between hosts goes over TCP sockets", envGuide, nil, socketFallback},
		{"gpudirect-tcpx", "GCP's network plugin", "the GPUDirect-TCPX plugin is not active", "https://cloud.google.com/kubernetes-engine/docs/how-to/gpu-bandwidth-gpudirect-tcpx", []string{"socket-fallback"}, tcpx},
	}
}

func netMismatch(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.85, Title: "Hosts do not use the same network or NICs",
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
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.8, c.quotes(evidence.NetDevCounts)
	case c.adaptersDiffer() != nil:
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.75, c.adaptersDiffer()
		f.Where = hosts(c.All(evidence.IBUsing))
	case c.about("nicset") && (c.broken() || c.slow() || c.Has(evidence.Completion)):
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.65, c.told("nicset", "hang")
	case c.is("hang") && c.rdma() && (c.in("container") || c.in("multinode")) && c.Has(evidence.OverNet) && !c.Has(evidence.ConnectError, evidence.Completion):
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.5, append(c.told("hang", "container"), c.quotes(evidence.OverNet)...)
	default:
		return nil
	}
	return f
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

func containerNoRDMA(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Warn, Confidence: 0.6, Title: "The container has no RDMA devices",
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

func libfabric(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.9, Title: "The libfabric network (EFA, Slingshot) is not in use",
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
		if c.fastProvider() != nil && c.beyond() {
			f.Title, f.Cause = "The libfabric device is there, but the other hosts are not reached through it", "The fast provider was chosen and then failed between hosts. EFA needs a security group that lets all traffic to and from itself pass, inbound and outbound (a rule for addresses such as 0.0.0.0/0 does not count), hosts in one subnet, and the same plugin and libfabric everywhere."
			f.Evidence = c.quotes(c.fastProvider(), evidence.OFIFailure)
		}
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

// beyond reports a failure of libfabric that names the other side.
func (c *Case) beyond() bool {
	return slices.ContainsFunc(c.All(evidence.OFIFailure), func(o *evidence.Observation) bool {
		low := strings.ToLower(text(o))
		return strings.Contains(low, "remote") || strings.Contains(low, "peer") || strings.Contains(low, "completed with error") || strings.Contains(low, "connect")
	})
}

// fastProvider is libfabric's provider for RDMA where it was chosen.
func (c *Case) fastProvider() *evidence.Observation {
	return c.Find(evidence.Provider, func(o *evidence.Observation) bool {
		p := strings.ToLower(o.Arg(0))
		return strings.HasPrefix(p, "efa") || strings.HasPrefix(p, "cxi")
	})
}

func ibDisabled(c *Case) *finding.Finding {
	off := c.value("NCCL_IB_DISABLE")
	socket := c.value("NCCL_NET") == "socket"
	if off != "1" && off != "true" && !socket {
		return nil
	}
	f := &finding.Finding{
		Severity: finding.Warn, Confidence: 0.8, Title: "InfiniBand/RoCE is switched off by a setting",
		Cause: "NCCL_IB_DISABLE=1 (or NCCL_NET=Socket) makes NCCL use TCP sockets between hosts; it is often left over from debugging.",
		Fix:   "unset NCCL_IB_DISABLE NCCL_NET", Evidence: c.quotes("NCCL_IB_DISABLE", "NCCL_NET"),
	}
	if c.experiment() || !c.multinode() || !c.rdma() && c.First(evidence.Network, "Socket") != nil && !c.is("slow") {
		f.Severity, f.Confidence = finding.Note, 0.6 // nothing is lost on one host, or where there is no RDMA
	}
	return f
}

func ibUnusable(c *Case) *finding.Finding {
	o := c.First(evidence.DeviceFailure)
	if o == nil {
		return nil
	}
	f := &finding.Finding{
		Severity: finding.Warn, Confidence: 0.7, Title: "RDMA devices cannot be opened",
		Cause: "The NICs are listed but opening them failed: /dev/infiniband is not in the container, rights are missing, or user-space and kernel drivers differ.",
		Fix:   "ls -l /dev/infiniband; ibv_devinfo as the same user in the same container; --device=/dev/infiniband; matching rdma-core and OFED.", Evidence: c.quotes(evidence.DeviceFailure),
	}
	if !c.multinode() && !c.broken() && !c.in("container") {
		f.Severity = finding.Note // a job on one host does not need them
	}
	return f
}

func socketFallback(c *Case) *finding.Finding {
	o := c.socketNetwork()
	var over *evidence.Observation
	for _, x := range c.All(evidence.OverNet) {
		if strings.EqualFold(x.Arg(0), "Socket") {
			over = x
		}
	}
	if o == nil && over == nil {
		return c.likelySockets()
	}
	f := &finding.Finding{
		Severity: finding.Note, Confidence: 0.6, Title: "Hosts talk over TCP sockets",
		Cause:    "NCCL uses sockets between hosts: every byte is copied by the CPU and GPUDirect RDMA is not possible.",
		Fix:      "If there is InfiniBand, RoCE or EFA: make it visible (ibv_devinfo, /dev/infiniband, the plugin) and set NCCL_NET=IB, so that a job fails instead of running slowly. Without: NCCL_SOCKET_NTHREADS=4 NCCL_NSOCKS_PERTHREAD=4 for fast Ethernet.",
		Evidence: c.quotes(o, over, evidence.NoIB),
	}
	if lib := c.First(evidence.NoPlugin, "libibverbs.so"); lib != nil {
		f.Cause = "NCCL did not find libibverbs, without which it cannot use InfiniBand or RoCE whatever NICs there are. " + f.Cause
		f.Fix = "Install libibverbs1 and the NIC's provider (rdma-core) in the image. " + f.Fix
		f.Evidence = append(f.Evidence, c.quotes(lib)...)
	}
	switch {
	case !c.multinode() && c.Told && c.in("ib", "roce", "efa") && !c.in("tcp"):
		f.Severity, f.Confidence = finding.Warn, 0.7
	case !c.multinode():
		return nil
	case c.rdma() && c.hosts > 1, c.Has(evidence.IBUsing), c.slow() && !c.in("tcp"):
		f.Severity, f.Confidence = finding.Warn, 0.8
		if c.rdma() || c.in("nvswitch") {
			f.Title = "NCCL fell back to TCP sockets although RDMA is there"
		}
	case c.is("slow"):
		f.Severity, f.Confidence = finding.Warn, 0.6
	}
	if c.fastCluster() {
		f.Severity, f.Confidence = finding.Warn, 0.8
	}
	return f
}

// likelySockets is for a rate that fell twenty times and more: between RDMA and
// sockets there is that much, and little else costs it.
func (c *Case) likelySockets() *finding.Finding {
	if c.Has(evidence.Network, evidence.NoPath) || !c.Told {
		return nil
	}
	if c.slow() && c.tcpLike() {
		return &finding.Finding{
			Severity: finding.Warn, Confidence: 0.6, Title: "The rate is what TCP sockets give",
			Cause: "1 to 4 GB/s between hosts with a network of 100 Gb/s and more is what sockets give.",
			Fix:   "\"Using network\" in NCCL_DEBUG=INFO must say IB (or the plugin); NCCL_IB_HCA with the fast NICs; NCCL_NET=IB makes a job fail instead of running slowly.", Evidence: append(c.told("slow"), c.figureQuotes()...),
		}
	}
	if c.greatestDrop() < 20 {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Warn, Confidence: 0.5, Title: "A loss of twenty times and more: most likely TCP sockets instead of RDMA",
		Cause: "Two figures of what should be the same differ twenty times and more, which is what lies between RDMA and sockets: the container, the plugin or the devices are missing in the slow one.",
		Fix:   "NCCL_DEBUG=INFO and look for \"Using network\"; NCCL_NET=IB (or the plugin's name) makes a job fail instead of running slowly.", Evidence: append(c.quotes(evidence.Average), c.changeQuotes()...),
	}
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

func tcpx(c *Case) *finding.Finding {
	if !c.in("gcp") || !c.slow() && !c.about("plugin") && c.First(evidence.Network, "Socket") == nil {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Warn, Confidence: 0.6, Title: "GPUDirect-TCPX/TCPXO is probably not active",
		Cause: "On Google's A3 machines the plugin, its receive daemon and the device injector (NRI) must all be in the pod; else NCCL uses plain TCP. The symptom is an average bus bandwidth below what the operator publishes.",
		Fix:   "Apply the NCCL configuration and NRI device injector manifests; the log must name the network FasTrak or GPUDirectTCPX; compare with the published threshold.", Evidence: c.told("gcp", "slow", "plugin"),
	}
}
