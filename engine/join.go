package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Join makes this process a rank of a job. It returns when all ranks have come, or fails when
// they do not within Config.JoinTimeout or the context.
func Join(ctx context.Context, cfg Config) (*Group, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if cfg.Transport == Mem && cfg.Size > 1 {
		return nil, errors.New("transport mem joins ranks of one process; use Local")
	}
	if cfg.Size == 1 {
		return newGroup(cfg, newNotifier()), nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.JoinTimeout,
		fmt.Errorf("not all ranks came within %v", cfg.JoinTimeout))
	defer cancel()
	d, err := newEndpoint(&cfg)
	if err != nil {
		return nil, err
	}
	w, err := newPoller()
	if err != nil {
		return nil, err
	}
	g := newGroup(cfg, w)
	g.net = newNetwork(cfg, d, g)
	n := g.net
	d.receive = n.receive
	err = n.join(ctx)
	if err != nil {
		n.left.Store(true)
		n.abandon()
		return nil, fmt.Errorf("rank %d of %d joins at %s: %w", cfg.Rank, cfg.Size, cfg.Meet, err)
	}
	g.driver.spin, g.driver.yields = spin, true
	return g, nil
}

// newNetwork is the standing of a group, or of a star where that is nil. Of rank 0 it lets the others in.
func newNetwork(cfg Config, d *endpoint, g *Group) *network {
	n := &network{g: g, cfg: cfg, endpoint: d, tabled: make(chan struct{}), quit: make(chan struct{})}
	if cfg.Rank == 0 {
		n.coordinator = newCoordinator(n)
	}
	return n
}

// abandon undoes a Join that failed.
func (n *network) abandon() {
	g := n.g
	g.closed.Store(true)
	g.fail(ErrClosed)
	g.driver.stop()
	n.close()
	g.driver.waiter.close()
}

// join meets the others.
func (n *network) join(ctx context.Context) error {
	if n.cfg.OnWait != nil {
		defer n.reportMissing()()
	}
	if n.cfg.Rank == 0 {
		return n.host(ctx)
	}
	return n.visit(ctx, nil)
}

// host is Join of rank 0.
func (n *network) host(ctx context.Context) error {
	addrs, withdraw, err := n.open()
	if err != nil {
		return err
	}
	defer withdraw()
	return n.gather(ctx, addrs)
}

// open lets the others find rank 0, and says where it listens; withdraw removes the file that says so.
func (n *network) open() (addrs []netip.AddrPort, withdraw func(), err error) {
	ips, port, err := n.meetingPlace()
	if err != nil {
		return nil, nil, err
	}
	if addrs, err = n.endpoint.listen(ips, port); err != nil || !n.cfg.meetsInFile() {
		return addrs, func() {}, err
	}
	file, err := n.publish(addrs)
	return addrs, func() { os.Remove(file) }, err
}

// gather waits for the others at addresses where rank 0 listens, and tells all of all.
func (n *network) gather(ctx context.Context, addrs []netip.AddrPort) error {
	select {
	case <-n.coordinator.full:
	case <-ctx.Done():
		missing := n.coordinator.missing()
		n.coordinator.broadcast(noteAbort, []byte(rankList(missing)+" did not come"))
		return fmt.Errorf("%s did not come: %w", rankList(missing), context.Cause(ctx))
	}
	n.coordinator.begin(n.own(addrs))
	table, err := json.Marshal(n.members)
	if err != nil {
		return err
	}
	n.coordinator.broadcast(noteTable, table)
	n.tasks.Add(1)
	go n.coordinator.watch()
	return nil
}

// missing is the ranks that have not come.
func (c *coordinator) missing() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []int
	for r := 1; r < len(c.ranks); r++ {
		if c.ranks[r].c == nil || c.ranks[r].m.Pid == 0 {
			list = append(list, r)
		}
	}
	return list
}

// begin admits nobody else and makes the table.
func (c *coordinator) begin(own member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started = true
	c.n.members = []member{own}
	for r := 1; r < len(c.ranks); r++ {
		c.ranks[r].heard = time.Now()
		c.n.members = append(c.n.members, c.ranks[r].m)
	}
	close(c.n.tabled)
}

// meetingPlace is where rank 0 listens.
func (n *network) meetingPlace() ([]net.IP, int, error) {
	if n.cfg.meetsInFile() {
		if len(n.endpoint.bind) > 0 {
			return n.endpoint.bind, 0, nil
		}
		return []net.IP{nil}, 0, nil
	}
	host, number, err := n.cfg.meetingPort()
	if err != nil {
		return nil, 0, err
	}
	if len(n.endpoint.bind) > 0 {
		return n.endpoint.bind, number, nil
	}
	if n.cfg.meetsAtLoopback() { // nobody outside needs to reach us
		ip := net.ParseIP(host)
		if ip == nil {
			ip = net.IPv4(127, 0, 0, 1)
		}
		return []net.IP{ip}, number, nil
	}
	return []net.IP{nil}, number, nil
}

// note0 is what rank 0 leaves in the file.
type note0 struct {
	Busbar int              `json:"busbar"`
	Host   string           `json:"host"`
	Addrs  []netip.AddrPort `json:"addrs"`
}

// decodeMeeting reads what rank 0 left in the file.
func decodeMeeting(b []byte) (x note0, err error) {
	err = json.Unmarshal(b, &x)
	x.Addrs = x.Addrs[:min(len(x.Addrs), maxMeeting)]
	return x, err
}

// maxMeeting is how many addresses of rank 0 are tried.
const maxMeeting = 64

// publish writes where rank 0 is into the file at which all meet.
func (n *network) publish(addrs []netip.AddrPort) (string, error) {
	b, err := n.meetingNote(addrs)
	if err != nil {
		return "", err
	}
	var r [4]byte
	rand.Read(r[:])
	name := filepath.Clean(n.cfg.Meet)
	if err := isForeignFile(name); err != nil {
		return "", err
	}
	tmp := name + "." + hex.EncodeToString(r[:])
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return "", fmt.Errorf("the file to meet in: %w", err)
	}
	if err := os.Rename(tmp, name); err != nil {
		os.Remove(tmp)
		return "", fmt.Errorf("the file to meet in: %w", err)
	}
	return name, nil
}

// isForeignFile reports a file that is there and was not written by publish: it is somebody's.
func isForeignFile(name string) error {
	if err := plainFile(name); err != nil {
		return err
	}
	b, err := readFile(name)
	if errors.Is(err, errLong) {
		return fmt.Errorf("the file to meet in: %w; remove it or name another", err)
	}
	if err != nil || len(bytes.TrimSpace(b)) == 0 {
		return nil // none, or writing it will say why not
	}
	if x, err := decodeMeeting(b); err != nil || x.Busbar == 0 {
		return fmt.Errorf("the file to meet in: %s is there and was not written by a job; remove it or name another", name)
	}
	return nil
}

// meetingNote is what publish writes.
func (n *network) meetingNote(addrs []netip.AddrPort) ([]byte, error) {
	x := note0{Busbar: version, Host: n.cfg.Host}
	for _, a := range addrs {
		if !a.Addr().IsUnspecified() {
			x.Addrs = append(x.Addrs, a)
			continue
		}
		for _, ip := range ownAddresses() {
			x.Addrs = append(x.Addrs, netip.AddrPortFrom(ip, a.Port()))
		}
	}
	b, err := json.Marshal(x)
	return append(b, '\n'), err
}

// ownAddresses are this host's, the loopback last.
func ownAddresses() []netip.Addr {
	var list, last []netip.Addr
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		switch ip := p.Addr(); {
		case err != nil || ip.IsLinkLocalUnicast():
		case ip.IsLoopback():
			last = append(last, ip)
		default:
			list = append(list, ip)
		}
	}
	return append(list, last...)
}

// spin is how long a rank looks again and again before it sleeps, yielding in between: longer
// than a message takes. With more ranks than cores it is the yielding that lets the others
// run; without that everything takes ten times as long.
const spin = 50 * time.Microsecond

// hostIdentity tells this host from others of the same name.
func hostIdentity() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	ns, _ := os.Readlink("/proc/self/ns/net")
	return strings.TrimSpace(string(b)) + " " + ns
}
