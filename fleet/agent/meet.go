package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

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
	if err != nil || u.Hostname() == "" {
		return "", fmt.Errorf("server %q: an address such as nats://host:4222 is expected", toward)
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

// checkMeet refuses what is no host and port.
func checkMeet(meet string) error {
	host, port, err := net.SplitHostPort(meet)
	if err != nil || host == "" {
		return fmt.Errorf("%q is no rendezvous address; expected HOST:PORT", meet)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("%q is no rendezvous address: port %q; expected a number from 1 to 65535", meet, port)
	}
	for _, c := range host {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '.' && c != '-' && c != ':' && c != '_' && c != '%' {
			return errors.New("the rendezvous address has characters that no host name has")
		}
	}
	return nil
}

// placeError tells that the place to meet is no place for this node.
type placeError struct{ text string }

func (e *placeError) Error() string { return e.text }

// resolveTime is how long a name may take to be resolved.
const resolveTime = 2 * time.Second

func resolve(name string) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), resolveTime)
	defer cancel()
	return net.DefaultResolver.LookupHost(ctx, name)
}

// addresses are those of a host.
func addresses(host string, resolve func(string) ([]string, error)) (list []netip.Addr, err error) {
	texts := []string{host}
	if _, err := netip.ParseAddr(host); err != nil {
		if texts, err = resolve(strings.TrimSuffix(host, ".")); err != nil {
			return nil, err
		}
	}
	for _, s := range texts {
		if ip, err := netip.ParseAddr(s); err == nil {
			list = append(list, ip.Unmap())
		}
	}
	if len(list) == 0 {
		return nil, errors.New("it has no address")
	}
	return list, nil
}

// reachableAddress is the address of a place to meet. It refuses to be sent to a place where no other node can be: this
// machine's own services, or addresses of the link such as those at which clouds hand out secrets, also by a name that
// stands for them. A node says where it is met, and one in the wrong hands may say anything. Nodes that are all on this
// machine meet there.
func reachableAddress(meet, own string, resolve func(string) ([]string, error)) (string, error) {
	place := func(s string) (at netip.Addr, loop, odd bool, err error) {
		host, _, _ := net.SplitHostPort(s) // it was checked
		list, err := addresses(host, resolve)
		if err != nil {
			return at, false, false, err
		}
		for _, ip := range list {
			loop = loop || ip.IsLoopback() || ip.IsUnspecified()
			odd = odd || ip.IsLinkLocalUnicast() || ip.IsMulticast()
		}
		return list[0], loop, odd, nil
	}
	at, loop, odd, err := place(meet)
	if err != nil {
		return "", &placeError{fmt.Sprintf("the group's rendezvous is %s, which this node cannot resolve: %v", meet, err)}
	}
	_, ownLoop, ownOdd, _ := place(own) // nothing of its own is no excuse
	if loop && !ownLoop || odd && !ownOdd {
		return "", &placeError{fmt.Sprintf("the group's rendezvous is %s (%s), which no other node can reach", meet, at)}
	}
	_, port, _ := net.SplitHostPort(meet)
	return net.JoinHostPort(at.String(), port), nil
}
