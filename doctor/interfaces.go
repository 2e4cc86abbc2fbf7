package doctor

import (
	"fmt"
	"strings"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
)

// namedInterface fills in a finding where the interface that a setting names, or
// leaves, reaches no other host.
func (c *Case) namedInterface(f *finding.Finding) bool {
	e := c.Env("NCCL_SOCKET_IFNAME")
	if e == nil || !c.broken() && !c.is("slow") || !c.multinodeTold() && !c.multinode() && !c.Has(evidence.ConnectError, evidence.PeerGone) && !c.in("container") {
		return false
	}
	why := c.whyUnreachable(e.Value)
	if why == "" {
		return false
	}
	f.Title, f.Cause = "NCCL_SOCKET_IFNAME picks an interface that does not reach other hosts", why
	f.Confidence, f.Evidence = 0.8, c.quotes("NCCL_SOCKET_IFNAME", evidence.ConnectError, evidence.ConnectRetry)
	return true
}

// whyUnreachable says what is wrong with a value of NCCL_SOCKET_IFNAME, "" when
// nothing is known to be.
func (c *Case) whyUnreachable(value string) string {
	names, avoid := strings.CutPrefix(value, "^")
	for _, n := range strings.Split(strings.TrimPrefix(names, "="), ",") {
		n = strings.TrimPrefix(n, "=")
		switch what := virtual(n); {
		case avoid && n == "lo":
			return ""
		case !avoid && what != "":
			return fmt.Sprintf("NCCL_SOCKET_IFNAME=%s names %s: other hosts cannot be reached through it.", value, what)
		}
	}
	if avoid && (c.is("hang", "timeout") || c.Has(evidence.ConnectError)) {
		return "NCCL_SOCKET_IFNAME=" + value + " replaces NCCL's own list of interfaces to avoid, which has lo and docker in it: the loopback is then the first one left, and other hosts are told an address that leads to themselves."
	}
	return ""
}

// otherInterface fills in a finding where people tell that traffic takes another
// interface than the one they want.
func (c *Case) otherInterface(f *finding.Finding) bool {
	if c.about("vpn") && (c.slow() || c.broken()) {
		f.Title = "An address of a VPN or tunnel is in use"
		f.Cause = "A VPN makes an interface of its own and often the default route: programs that ask the kernel for \"my address\" get the tunnel's, which peers cannot reach, or only slowly and through NAT."
		f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.7, append(c.told("vpn"), c.quotes("NCCL_SOCKET_IFNAME", evidence.Rendezvous)...)
		return true
	}
	if !c.about("wrongif") || !c.slow() && !c.broken() {
		return false
	}
	f.Title = "Traffic goes over another interface than it should"
	f.Cause = "NCCL_SOCKET_IFNAME says where NCCL listens; the kernel's routes say where it sends from. With two interfaces in reach of the peer, or a default route over the slow one, traffic leaves by the wrong one."
	f.Severity, f.Confidence, f.Evidence = finding.Warn, 0.75, append(c.told("wrongif", "slow"), c.quotes("NCCL_SOCKET_IFNAME")...)
	return true
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
