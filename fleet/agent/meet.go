package agent

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
)

// UsualPort is where nodes meet when nobody says otherwise.
const UsualPort = 7643

// MeetAt is the address at which other nodes find this one: that of the interface or address
// bind, or else the one from which toward, a server's address, is reached.
func MeetAt(bind, toward string, port int) (string, error) {
	text := strconv.Itoa(port)
	if bind != "" {
		if ip := net.ParseIP(bind); ip != nil {
			return net.JoinHostPort(bind, text), nil
		}
		i, err := net.InterfaceByName(bind)
		if err != nil {
			return "", fmt.Errorf("bind to %q: neither an address nor an interface of this host", bind)
		}
		addrs, err := i.Addrs()
		if err != nil {
			return "", err
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && !n.IP.IsLinkLocalUnicast() {
				return net.JoinHostPort(n.IP.String(), text), nil
			}
		}
		return "", fmt.Errorf("bind to %q: the interface has no address that others could reach", bind)
	}
	u, err := url.Parse(toward)
	if err != nil {
		return "", err
	}
	to := cmp.Or(u.Port(), "4222")
	// Nothing is sent: the kernel only says which address it would send from.
	c, err := net.Dial("udp", net.JoinHostPort(u.Hostname(), to))
	if err != nil {
		return "", fmt.Errorf("no route to %s, so this node's address is unknown; give it with --bind: %w", u.Hostname(), err)
	}
	defer c.Close()
	return net.JoinHostPort(c.LocalAddr().(*net.UDPAddr).IP.String(), text), nil
}

// place is an address at which a node is met. Nodes announce addresses and no names: a name may stand for something
// else when it is resolved again.
func place(meet string) (netip.AddrPort, error) {
	at, err := netip.ParseAddrPort(meet)
	if err != nil || at.Port() == 0 {
		return at, &placeError{fmt.Sprintf("%.80q is no rendezvous address; expected ADDRESS:PORT", meet)}
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), nil
}

// placeError tells that the place to meet is no place for this node.
type placeError struct{ text string }

func (e *placeError) Error() string { return e.text }

// reachable refuses to be sent to a place where no other node can be: this machine's own services, or addresses of the
// link such as those at which clouds hand out secrets. A node says where it is met, and one in the wrong hands may say
// anything. Nodes that are all on this machine meet there.
func reachable(at, own netip.Addr) error {
	local := func(ip netip.Addr) bool { return ip.IsLoopback() || ip.IsUnspecified() }
	odd := func(ip netip.Addr) bool { return ip.IsLinkLocalUnicast() || ip.IsMulticast() }
	if local(at) && !local(own) || odd(at) && !odd(own) {
		return &placeError{fmt.Sprintf("the group's rendezvous is %s, which no other node can reach", at)}
	}
	return nil
}
