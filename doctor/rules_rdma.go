package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
	"busbar.dev/internal/counter"
)

// rdmaRules are about RDMA transfers that fail or lose packets.
func rdmaRules() []Rule {
	return []Rule{
		{"mtu-mismatch", "length errors, or different or small MTUs", "the MTU differs along the path or is too small", "https://enterprise-support.nvidia.com/s/article/MLNX2-117-1682kn", []string{"nccl-error", "collective-timeout"}, mtuMismatch},
		{"gid-index", "retry errors on RoCE, ibv_modify_qp that times out, the GID table", "the GID index is not the routable RoCE v2 one", envGuide + "#nccl-ib-gid-index", []string{"nccl-error", "collective-timeout", "peer-died"}, gidIndex},
		{"roce-loss", "counters of lost and re-sent packets, pause frames, dips", "the RoCE fabric drops packets: PFC and ECN are not set up from end to end", "https://enterprise-support.nvidia.com/s/article/recommended-network-configuration-examples-for-roce-deployment", []string{"nccl-error", "collective-timeout"}, roceLoss},
		{"bad-link", "error counters, port events, a link that goes down", "a cable, transceiver, port or NIC is bad", trouble, []string{"nccl-error", "collective-timeout", "peer-died"}, badLink},
		{"port-down", "ports that are not active", "an InfiniBand port is down", trouble, []string{"net-mismatch", "ib-device-unusable", "gid-index"}, portDown},
	}
}

// status is a completion with a status.
func (c *Case) status(code string, vendors ...string) *evidence.Observation {
	return c.Find(evidence.Completion, func(o *evidence.Observation) bool {
		return o.Arg(0) == code && (len(vendors) == 0 || slices.Contains(vendors, o.Arg(1)))
	})
}

// verdictOf is a work completion's error by name, as words or as NCCL's number.
func (c *Case) verdictOf(name, code string) *evidence.Observation {
	return cmp.Or(c.Find(evidence.Verdict, func(o *evidence.Observation) bool { return strings.HasPrefix(o.Arg(0), name) }), c.status(code))
}

func mtuMismatch(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.85, Title: "MTU mismatch on the RDMA or Ethernet path",
		Cause: "The two ends of a connection use different MTUs, or a switch between them passes less: messages above the smaller one are refused (length errors) or vanish.",
		Fix:   "The same MTU on all hosts and switch ports: ibv_devinfo | grep active_mtu and ip link show agree everywhere; jumbo frames (9000, RDMA 4096) from end to end, or the smaller one on all; ping -M do -s 8972 HOST tests it.",
	}
	length := c.verdictOf("LOC_LEN_ERR", "1")
	sizes := map[string]bool{}
	for _, o := range c.All(evidence.ActiveMTU) {
		for _, n := range strings.Split(o.Arg(0), ",") {
			sizes[n] = true
		}
	}
	switch small := c.smallMTU(); {
	case len(sizes) > 1 && (c.broken() || c.is("slow") || c.Told) || length != nil && c.Has(evidence.ActiveMTU):
		f.Confidence, f.Evidence = 0.9, c.quotes(evidence.ActiveMTU, length)
	case length != nil:
		f.Evidence = c.quotes(length)
	case c.about("mtu") && c.Told && !c.about("howto"):
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.7, c.told("mtu", "hang", "crash", "slow")
	case small != nil:
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.6, c.quotes(small)
		f.Title = "Standard frames (MTU 1500) on a fast network"
		f.Cause = fmt.Sprintf("%s has an MTU of %s. With frames of 1500 bytes the CPU handles six times as many packets as with 9000, and RoCE falls back to 1024-byte packets.", small.Arg(0), small.Arg(1))
	default:
		return nil
	}
	return f
}

// smallMTU is an MTU of 1500 or less on an interface that carries training
// traffic over a fast network.
func (c *Case) smallMTU() *evidence.Observation {
	for _, o := range c.All(evidence.MTU) {
		n := atoi(o.Arg(1))
		if n <= 0 || n > 1500 || virtual(o.Arg(0)) != "" {
			continue
		}
		if strings.HasPrefix(o.Arg(0), "ib") || c.usesInterface(o.Arg(0)) {
			return o
		}
	}
	return nil
}

// usesInterface reports that NCCL's sockets or RoCE use an interface.
func (c *Case) usesInterface(name string) bool {
	for _, o := range c.All(evidence.SocketUsing) {
		for _, n := range strings.Split(o.Arg(0), ",") {
			if n == name {
				return true
			}
		}
	}
	return false
}

func gidIndex(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.75, Title: "The GID index is not the routable RoCE v2 one",
		Cause: "RoCE connections fail right away: the GID that NCCL uses (index 0 before 2.21) is a link-local or RoCE v1 one that cannot be routed between switches or subnets.",
		Fix:   "show_gids; NCCL_IB_GID_INDEX=3 (the RoCE v2 entry with the IPv4 address) on all hosts; from 2.21 leave it unset, NCCL picks it. If it stays: the link and PFC.",
	}
	retry := c.status("12")
	modify := cmp.Or(c.failed("timeout", "ibv_modify_qp"), c.failed("unreachable", "ibv_modify_qp"), c.failed("invalid", "ibv_modify_qp"))
	f.Evidence = c.quotes(modify, retry, "NCCL_IB_GID_INDEX", evidence.GID)
	layer := c.layer()
	switch bad := c.badGID(); {
	case bad != nil:
		f.Confidence, f.Evidence = 0.9, c.quotes(bad, "NCCL_IB_GID_INDEX", retry, modify)
	case c.First(evidence.GIDInUse, "link-local") != nil && c.Has(evidence.Completion):
		f.Confidence, f.Evidence = 0.85, c.quotes(c.First(evidence.GIDInUse, "link-local"), "NCCL_IB_GID_INDEX")
	case layer == "IB" && retry != nil:
		return nil // InfiniBand has no such choice; see bad-link
	case (retry != nil || modify != nil) && c.routableGID():
		f.Severity, f.Confidence = finding.Warn, 0.5
		f.Cause = "The GID in the message is a routable one, so the index is likely right on this side; compare it on the other. " + f.Cause
	case modify != nil && layer != "IB":
		f.Confidence = 0.8
	case retry != nil && c.Has(evidence.Counter):
		f.Confidence, f.Severity = 0.5, finding.Warn
	case retry != nil && layer == "RoCE":
		f.Confidence = 0.75
	case retry != nil:
		f.Confidence = 0.65
	case c.verdictOf("RETRY_EXC_ERR", "12") != nil && layer == "RoCE":
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.5, c.quotes(evidence.Verdict)
	case c.about("gid") && c.broken():
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.65, c.told("gid", "crash", "timeout")
	default:
		return nil
	}
	return f
}

// routableGID reports that the message of a failure shows an address that can be
// routed and none that cannot.
func (c *Case) routableGID() bool {
	return c.Has(evidence.GIDPair) && c.First(evidence.GIDInUse, "link-local") == nil && (c.First(evidence.GIDInUse, "ipv4") != nil || c.crossed())
}

// badGID is the GID at the index in use when it is link-local or of RoCE v1.
func (c *Case) badGID() *evidence.Observation {
	index := c.value("NCCL_IB_GID_INDEX")
	if index == "" {
		if !c.before(2, 21) || c.release == [3]int{} {
			return nil
		}
		index = "0"
	}
	var bad *evidence.Observation
	better := false
	for _, o := range c.All(evidence.GID) {
		if o.Arg(1) == index && (o.Arg(2) == "link-local" || o.Arg(3) == "v1") {
			bad = o
		}
		better = better || o.Arg(2) == "ipv4" && o.Arg(3) == "v2"
	}
	if !better {
		return nil
	}
	return bad
}

// counters are the observations of counters of some kinds that reach a size (as evidence
// writes it: 1, 10, 1000, 1000000).
func (c *Case) counters(least int, kinds ...counter.Kind) []*evidence.Observation {
	var list []*evidence.Observation
	for _, o := range c.All(evidence.Counter) {
		if m := counter.Find(o.Arg(0)); m != nil && slices.Contains(kinds, m.Kind) && atoi(o.Arg(1)) >= least {
			list = append(list, o)
		}
	}
	return list
}

func all(list []*evidence.Observation) (out []any) {
	for _, o := range list {
		out = append(out, o)
	}
	return out
}

func roceLoss(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Warn, Confidence: 0.8, Title: "The RoCE fabric loses or holds up packets (PFC/ECN)",
		Cause: "RDMA over Ethernet needs a network that does not drop: without priority flow control and ECN on the same traffic class on every host and switch port, packets are lost, re-sent and throughput dips, stalls or ends in retry errors.",
		Fix:   "The same DSCP and priority with PFC and ECN (DCQCN) on hosts and switches: NCCL_IB_TC=106 with trust dscp is usual; mlnx_qos and switch counters show where it drops; else lossy accelerations of the NIC; NCCL_IB_ECE_ENABLE=0 where firmware mishandles it.",
	}
	counters := c.counters(1000, counter.Loss, counter.Pause, counter.Slow)
	retry := c.verdictOf("RETRY_EXC_ERR", "12")
	layer := c.layer()
	switch {
	case len(counters) > 0 && (c.broken() || c.Told || retry != nil):
		f.Confidence, f.Evidence = 0.85, c.quotes(append(all(counters), retry)...)
	case len(counters) > 0:
		f.Confidence, f.Evidence, f.Severity = 0.6, c.quotes(all(counters)...), finding.Note
	case c.in("lossy") || c.about("pfc", "ece"):
		f.Confidence, f.Evidence = 0.7, c.told("lossy", "pfc", "ece", "unstable", "slow")
	case c.is("unstable") && (layer == "RoCE" || layer == "" && c.is("slow")) && !c.in("ib") && !c.Has(evidence.NVLSFailure) && !c.about("nvls"):
		f.Confidence, f.Evidence = 0.55, c.told("unstable", "roce", "slow")
	case retry != nil && layer == "RoCE":
		f.Confidence, f.Evidence = 0.6, c.quotes(retry)
	case c.is("unstable") && c.in("roce"):
		f.Confidence, f.Evidence = 0.55, c.told("unstable", "roce")
	default:
		return nil
	}
	return f
}

func badLink(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.8, Title: "A cable, transceiver, port or NIC is bad",
		Cause: "A link has errors or goes down: transfers over it are re-sent until they give up (error 12), and one such link slows every collective that crosses it.",
		Fix:   "ibqueryerrors, mlxlink -d DEV -m or ethtool -S on both ends; reseat or replace cable and transceiver; drain the host or leave the NIC out with NCCL_IB_HCA=^DEV; NCCL_IB_TIMEOUT=22 rides out short flaps.",
	}
	counters := c.counters(10, counter.Link, counter.Lane)
	retry := c.verdictOf("RETRY_EXC_ERR", "12")
	down := c.First(evidence.LinkDown)
	f.Evidence = c.quotes(append(all(counters), evidence.AsyncEvent, down, retry)...)
	switch {
	case c.portEvent() != nil:
		f.Confidence, f.Where = 0.9, hosts(c.All(evidence.AsyncEvent))
	case len(counters) > 0 && (retry != nil || c.broken() || c.is("slow")):
	case len(counters) > 0:
		f.Severity, f.Confidence = finding.Warn, 0.6
	case down != nil && c.broken():
		f.Confidence = 0.7
	case c.blames("nic") && (c.is("crash", "slow", "hang") || c.broken()):
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.75, append(c.told("nic", "crash"), first(c.quotes(evidence.Symptom), 1)...)
	case c.about("flap"):
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.75, c.told("flap", "hang")
	case retry != nil && c.layer() == "IB":
		f.Severity, f.Confidence = finding.Warn, 0.6
		f.Cause = "A transfer was re-sent until it gave up (IBV_WC_RETRY_EXC_ERR): the other end did not answer. On InfiniBand that is a link that is down or flaps, a peer that died, or a fabric without route. " + f.Cause
	case retry != nil && c.layer() == "":
		f.Severity, f.Confidence = finding.Warn, 0.5
	default:
		return nil
	}
	return f
}

// portEvent is an event of a port: error, fatal.
func (c *Case) portEvent() *evidence.Observation {
	return c.Find(evidence.AsyncEvent, func(o *evidence.Observation) bool {
		a := o.Arg(0)
		return strings.Contains(a, "port") || strings.Contains(a, "fatal") || strings.Contains(a, "device")
	})
}

func portDown(c *Case) *finding.Finding {
	list := c.All(evidence.PortState)
	if len(list) == 0 {
		return nil
	}
	f := &finding.Finding{
		Severity: finding.Note, Confidence: 0.5, Title: "A port of an RDMA NIC is not active",
		Cause: "A port is down, polling or disabled. That is right for a port without a cable, and wrong for one of the compute fabric.",
		Fix:   "ibstat; check the cable, the switch port and the subnet manager.", Evidence: c.quotes(evidence.PortState),
	}
	if c.broken() || c.is("slow") {
		f.Severity = finding.Warn
	}
	if !c.Has(evidence.PortActive) && c.Has(evidence.VerbsFailure, evidence.NoIB) && c.First(evidence.PortState, "down", "disabled") != nil {
		f.Severity, f.Confidence, f.Title = finding.Error, 0.88, "No RDMA port that was shown is active"
		f.Cause = "The ports in the output are down or disabled, and calls on the device fail: there is no link to carry anything. " + f.Cause
		f.Fix = "ip link set DEV up and an address for RoCE; " + f.Fix
	}
	return f
}
