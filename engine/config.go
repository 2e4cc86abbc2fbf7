package engine

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"busbar.dev/unit"
)

// Transport is how bytes get from rank to rank.
type Transport string

// Transports.
const (
	Auto Transport = "auto" // shared memory on one host, TCP between hosts
	TCP  Transport = "tcp"
	Shm  Transport = "shm" // shared memory; all ranks on one host
	Mem  Transport = "mem" // plain memory; all ranks in one process, see Local
)

// ParseTransport reads the words of the command line.
func ParseTransport(s string) (Transport, error) {
	switch t := Transport(strings.ToLower(s)); t {
	case Auto, TCP, Shm, Mem:
		return t, nil
	case "":
		return Auto, nil
	}
	return "", fmt.Errorf("transport %q is unknown; use auto, tcp, shm or mem", s)
}

// Config is what a rank needs to find the others. Rank, Size and Meet are necessary where Size
// is above 1.
type Config struct {
	Rank, Size int
	// Meet is where the ranks find each other: host:port, at which rank 0 listens, or the path
	// of a file that all can read and rank 0 can write (anything with a slash in it).
	Meet string
	// Job separates jobs that could meet by accident; ranks of another job are refused.
	Job string
	// Secret is known to all ranks of the job and nobody else.
	Secret string
	// Work is what the ranks are to do, in any words that are the same on all of them. A rank
	// that was told otherwise is refused when the ranks meet, and not when its messages make
	// no sense.
	Work string
	// OnRefusal, where it is set, is told of every connection that this rank turns away, from
	// several goroutines.
	OnRefusal func(Refused)
	// OnWait, where it is set, is told once, from another goroutine, for whom this rank waits when the ranks have not met
	// after two seconds.
	OnWait func(text string)
	// Transport is Auto when empty.
	Transport Transport
	// Bind is the interfaces or addresses to use, comma-separated; connections to a peer are
	// spread over them. Empty: the address that reaches rank 0.
	Bind string
	// MayDial, where it is set, says why this rank may not connect to an address: whatever the other ranks name, it
	// connects nowhere else. It may be asked from several goroutines.
	MayDial func(netip.AddrPort) error
	// Conns is the number of connections to each peer; 0 is 1. Lanes are spread over them.
	Conns int
	// Timeout is how soon a rank that died, hangs or is cut off is noticed; 0 is 10 s.
	Timeout time.Duration
	// JoinTimeout is how long Join waits for all ranks to come; 0 is a minute.
	JoinTimeout time.Duration
	// Stall is how long a call may make no progress while all ranks are alive, which is what
	// a rank that never makes the call looks like; 0 is 10 minutes.
	Stall time.Duration
	// Host is the name that others see; empty is the host's own.
	Host string
	// MaxRate is the most that this rank sends to each peer; 0 is no bound. It holds on Linux,
	// between hosts and over loopback: the kernel spaces the packets of the connections.
	MaxRate unit.Rate
	// TLS, where it is set, protects all connections, and lets only those in that show a
	// certificate; see LoadTLS. Bytes through shared memory stay on the host as they are.
	TLS *tls.Config
}

// limits of a group.
const (
	maxSize  = 1 << 16
	maxConns = 64
)

// Check reports what makes a configuration impossible before anything is started: numbers out
// of bounds, a place to meet that is none, addresses to bind to that this host does not have.
func (c Config) Check() error {
	if err := c.complete(); err != nil {
		return err
	}
	if c.meetsInFile() {
		if err := plainFile(c.Meet); err != nil {
			return err
		}
	} else if c.Meet != "" {
		if _, _, err := c.meetingPort(); err != nil {
			return err
		}
	}
	ips, err := c.bindAddresses()
	if err != nil {
		return err
	}
	return tryAddresses(ips)
}

// tryAddresses listens at each address for a moment: that is how this host says whether it has
// it. Groups of multicast and broadcast can be listened at, but nobody can connect to them.
func tryAddresses(ips []net.IP) error {
	for _, ip := range ips {
		if ip.IsMulticast() || ip.Equal(net.IPv4bcast) {
			return fmt.Errorf("bind to %s: an address of multicast or broadcast; expected one that other ranks can connect to",
				ip)
		}
		l, err := net.Listen("tcp", net.JoinHostPort(ip.String(), "0"))
		if err != nil {
			return fmt.Errorf("bind to %s: this host cannot listen there; expected an address of its own: %w", ip, err)
		}
		l.Close()
	}
	return nil
}

// meetingPort is the host and the port of a place to meet that is no file.
func (c *Config) meetingPort() (host string, port int, err error) {
	host, word, err := net.SplitHostPort(c.Meet)
	if err != nil {
		return "", 0, fmt.Errorf("meet at %q: expected host:port, or the path of a file with a slash in it", c.Meet)
	}
	port, err = net.LookupPort("tcp", word)
	if err != nil || port < 1 {
		return "", 0, fmt.Errorf("meet at %q: the port is %q; expected a number from 1 to 65535", c.Meet, word)
	}
	return host, port, nil
}

// Exposed reports whether ranks of this configuration listen at addresses that other hosts can
// reach.
func (c *Config) Exposed() bool {
	ips, err := c.bindAddresses()
	if err != nil || len(ips) == 0 {
		return c.Size > 1 && !c.meetsAtLoopback()
	}
	return slices.ContainsFunc(ips, func(ip net.IP) bool { return !ip.IsLoopback() })
}

func (c *Config) complete() error {
	c.Transport, c.Conns = cmp.Or(c.Transport, Auto), cmp.Or(c.Conns, 1)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.JoinTimeout = cmp.Or(c.JoinTimeout, time.Minute)
	c.Stall = cmp.Or(c.Stall, 10*time.Minute)
	switch {
	case c.Size < 1 || c.Size > maxSize:
		return fmt.Errorf("a group of %d ranks; 1 to %d are possible", c.Size, maxSize)
	case c.Rank < 0 || c.Rank >= c.Size:
		return fmt.Errorf("rank %d of %d; ranks are 0 to %d", c.Rank, c.Size, c.Size-1)
	case c.Conns < 1 || c.Conns > maxConns:
		return fmt.Errorf("%d connections to each peer; 1 to %d are possible", c.Conns, maxConns)
	case c.Timeout < 50*time.Millisecond || c.JoinTimeout < 0 || c.Stall < 0:
		return fmt.Errorf("a timeout of %v; at least 50 ms are needed to tell a dead rank from a busy one", c.Timeout)
	case c.MaxRate < 0:
		return fmt.Errorf("a bound of %v on what is sent; 0 is none", c.MaxRate)
	case c.Size > 1 && c.Meet == "":
		return errors.New("no place to meet; set Meet to host:port of rank 0, or to a file that all ranks can reach")
	}
	if c.Host == "" {
		c.Host, _ = os.Hostname()
	}
	c.Host = printable(c.Host, maxName)
	_, err := ParseTransport(string(c.Transport))
	return err
}

// meetsInFile reports whether Meet is a file's path.
func (c *Config) meetsInFile() bool { return strings.ContainsRune(c.Meet, '/') }

// meetsAtLoopback reports whether Meet is an address that only this host reaches.
func (c *Config) meetsAtLoopback() bool {
	host, _, err := net.SplitHostPort(c.Meet)
	if err != nil || c.meetsInFile() {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// bindAddresses are the addresses of Bind, none for the usual.
func (c *Config) bindAddresses() ([]net.IP, error) {
	var list []net.IP
	for _, word := range strings.Split(c.Bind, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		ip, err := addressOf(word)
		if err != nil {
			return nil, err
		}
		list = append(list, ip)
	}
	if c.Bind != "" && (len(list) == 0 || len(list) > maxAddrs) {
		return nil, fmt.Errorf("bind to %q: %d addresses in it; expected 1 to %d addresses or interfaces, with commas",
			c.Bind, len(list), maxAddrs)
	}
	return list, nil
}

// addressOf is an address, or the first usable one of an interface: IPv4 before IPv6, for
// link-local ones need a zone that the other side does not know.
func addressOf(word string) (net.IP, error) {
	if ip := net.ParseIP(strings.Trim(word, "[]")); ip != nil {
		return ip, nil
	}
	i, err := net.InterfaceByName(word)
	if err != nil {
		return nil, fmt.Errorf("bind to %q: neither an address nor an interface of this host: %w", word, err)
	}
	addrs, err := i.Addrs()
	if err != nil {
		return nil, fmt.Errorf("bind to interface %s: %w", word, err)
	}
	var six net.IP
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		switch {
		case !ok || n.IP.IsLinkLocalUnicast():
		case n.IP.To4() != nil:
			return n.IP, nil
		case six == nil:
			six = n.IP
		}
	}
	if six == nil {
		return nil, fmt.Errorf("bind to interface %s: it has no address", word)
	}
	return six, nil
}
