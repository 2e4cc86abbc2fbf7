package doctor

import (
	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
)

// subnetRules are about addresses that are right one by one and wrong together.
func subnetRules() []Rule {
	const arp = "https://docs.kernel.org/networking/ip-sysctl.html"
	return []Rule{
		{"rails-apart", "a failed connection between NICs of different networks", "NICs of different rails cannot reach each other", envGuide + "#nccl-cross-nic", []string{"gid-index", "roce-loss", "bad-link", "nccl-error", "peer-died", "collective-timeout"}, railsApart},
		{"same-subnet", "two interfaces of a host in one network, and connections that fail", "traffic leaves by another interface than it should", arp, []string{"gid-index", "bad-link", "connect-failed", "roce-loss", "nccl-error", "peer-died", "wire-faster-than-nccl"}, sameSubnet},
		{"netdev-absent", "ibv_modify_qp that knows no such device", "the interface behind a RoCE address is not in this container", "https://github.com/Mellanox/k8s-rdma-shared-dev-plugin", []string{"gid-index", "nccl-error", "peer-died"}, netdevAbsent},
		{"memory-refused", "completions with status 9 to 11, events of a work queue", "the other NIC refused the memory of a request", trouble + "#networking-issues", []string{"nccl-error", "peer-died", "flushed-work"}, memoryRefused},
	}
}

// crossed reports a connection that failed between two networks.
func (c *Case) crossed() bool { return c.First(evidence.GIDPair, "apart") != nil }

func railsApart(c *Case) *finding.Finding {
	if !c.crossed() {
		return nil
	}
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.75, Title: "Two NICs of different networks (rails) do not reach each other",
		Cause: "The two ends of the failed connection lie in different subnets. Where every rail is a network of its own, only NICs of the same number can talk; all-to-all, gather and trees connect others unless NCCL is told to stay on a rail.",
		Fix:   "NCCL_CROSS_NIC=0 and PXN (NCCL_PXN_DISABLE=0) keep traffic on its rail; or routes between the rails, with a gateway in the RoCE interfaces' tables; ib_write_bw -d NIC0 to NIC1 of the other host tests it.",
	}
	f.Evidence = c.quotes(c.First(evidence.GIDPair, "apart"), "NCCL_CROSS_NIC")
	if c.First(evidence.GIDPair, "together") != nil {
		f.Confidence = 0.6 // within a network it fails too
	}
	return f
}

// sharedNet is a network that two interfaces of one host lie in.
func (c *Case) sharedNet() (a, b *evidence.Observation) {
	list := c.All(evidence.Subnet)
	for i, a := range list {
		for _, b := range list[i+1:] {
			if a.Arg(0) == b.Arg(0) && a.Arg(2) == b.Arg(2) && a.Arg(1) != b.Arg(1) && virtual(a.Arg(1)) == "" && virtual(b.Arg(1)) == "" {
				return a, b
			}
		}
	}
	return nil, nil
}

func sameSubnet(c *Case) *finding.Finding {
	a, b := c.sharedNet()
	if a == nil || !c.Has(evidence.ConnectError, evidence.Completion, evidence.Verdict, evidence.VerbsFailure, evidence.Rendezvous) && !c.is("hang", "slow", "timeout", "crash") {
		return nil // many fabrics are one network, and well set up
	}
	return &finding.Finding{
		Severity: finding.Warn, Confidence: 0.88, Title: "Two interfaces of a host lie in one network: " + a.Arg(1) + " and " + b.Arg(1),
		Cause: "The kernel sends to " + a.Arg(0) + " by the first of them, answers ARP for both, and drops what comes back by the other: connections that are bound to the second one time out, or all traffic takes one NIC.",
		Fix:   "A network for each interface (NCCL pairs them by rail); or arp_ignore=1, arp_announce=2, rp_filter=2 and a routing table for each interface (ip rule from ADDRESS).", Evidence: c.quotes(a, b),
	}
}

func netdevAbsent(c *Case) *finding.Finding {
	o := c.failed("device", "ibv_modify_qp")
	if o == nil {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.85, Title: "The network interface behind the RDMA device is not in this container",
		Cause: "The RDMA device is passed in, but a RoCE address (GID) belongs to a network interface, and that one lies in another network namespace: the GIDs are seen and cannot be used.",
		Fix:   "--network=host (hostNetwork: true), or the interface itself in the pod (SR-IOV or host-device CNI with the RDMA CNI and rdma system set netns exclusive; macvlan only with the shared mode); show_gids inside must list an address of an interface that ip addr shows.", Evidence: c.quotes(o, evidence.GID),
	}
}

// refusals are the statuses with which the responder turns down a request.
var refusals = []struct{ name, code string }{{"REM_INV_REQ_ERR", "9"}, {"REM_ACCESS_ERR", "10"}, {"REM_OP_ERR", "11"}, {"LOC_ACCESS_ERR", "8"}}

func memoryRefused(c *Case) *finding.Finding {
	var o *evidence.Observation
	for _, r := range refusals {
		if o == nil {
			o = c.verdictOf(r.name, r.code)
		}
	}
	if o == nil && !c.Has(evidence.Refused) {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.6, Title: "A NIC refused the memory of an RDMA request",
		Cause: "The responder did not accept where or how much was to be written (IBV_WC_REM_INV_REQ_ERR, REM_ACCESS_ERR, a local access violation): a registration of GPU memory that does not hold (nvidia-peermem or DMA-BUF against an older driver or firmware), ranks whose sizes differ, or a network plugin that fits another release of NCCL.",
		Fix:   "NCCL_NET_GDR_LEVEL=LOC and NCCL_DMABUF_ENABLE=0 to see whether GPU memory is what fails; the same release and plugin everywhere; firmware and OFED of one release; NCCL_IB_PCI_RELAXED_ORDERING=0.", Where: hosts([]*evidence.Observation{o, c.First(evidence.Refused)}), Evidence: c.quotes(o, evidence.Refused),
	}
}
