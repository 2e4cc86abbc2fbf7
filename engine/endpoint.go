package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// endpoint is where others reach this process: the sockets that listen, and the handshake that
// whoever comes has to pass. It is also the way out: all connections to others are made here.
type endpoint struct {
	key        []byte
	work       uint64      // what the ranks are to do
	tls        *tls.Config // nil without
	bind       []net.IP
	mayDial    func(netip.AddrPort) error // nil: anything
	mu         sync.Mutex                 // guards listeners and handshakes
	listeners  []net.Listener
	handshakes []net.Conn // strangers in theirs, the oldest first; guarded by mu
	refused    [refusals]atomic.Int64
	quit       chan struct{}
	tasks      sync.WaitGroup

	// receive takes a connection that has proven itself, and ends the handshake by the answer.
	receive func(c net.Conn, h hello, answer func(Refusal) error) Refusal
	// told hears of everybody who was turned away; nil: nobody does.
	told func(Refused)
}

// maxHandshakes is how many connections may be in their handshake at once.
const maxHandshakes = 256

func newEndpoint(cfg *Config) (*endpoint, error) {
	bind, err := cfg.bindAddresses()
	if err != nil {
		return nil, err
	}
	return &endpoint{
		key: jobKey(cfg.Job, cfg.Secret), work: workKey(cfg.Work), told: cfg.OnRefusal, tls: cfg.TLS, bind: bind,
		mayDial: cfg.MayDial, quit: make(chan struct{}),
	}, nil
}

// listen opens the sockets at which others reach this rank, and says at which addresses.
func (d *endpoint) listen(ips []net.IP, port int) (addrs []netip.AddrPort, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := len(d.listeners)
	for _, ip := range ips {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: ip, Port: port})
		if err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
		d.listeners = append(d.listeners, l)
		addrs = append(addrs, addrPort(l.Addr()))
	}
	for _, l := range d.listeners[first:] {
		d.tasks.Add(1)
		go d.accept(l)
	}
	return addrs, nil
}

// addrPort is the address of a socket, IPv4 as such.
func addrPort(a net.Addr) netip.AddrPort {
	at := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

// reachableFrom is where a rank listens that has reached rank 0, or a member, over a connection. The
// address that reaches it reaches the others as well. A loopback, which does on its own host only,
// is none to tell others of: they find this rank where they find rank 0.
func (d *endpoint) reachableFrom(c net.Conn, cfg *Config) []net.IP {
	if len(d.bind) > 0 {
		return d.bind
	}
	ip := c.LocalAddr().(*net.TCPAddr).IP
	if ip.IsLoopback() && !cfg.meetsAtLoopback() {
		ip = nil
	}
	return []net.IP{ip}
}

// accept lets connections in that prove themselves.
func (d *endpoint) accept(l net.Listener) {
	defer d.tasks.Done()
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors, or the like
			select {
			case <-d.quit:
				return
			case <-time.After(10 * time.Millisecond):
			}
			continue
		}
		d.admit(c)
		d.tasks.Go(func() { d.welcome(c) })
	}
}

// admit counts a stranger. Where there are too many, the one that has taken longest is turned away: a rank of the job
// is done within moments, and who only holds connections keeps nobody out.
func (d *endpoint) admit(c net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.handshakes) >= maxHandshakes {
		old := d.handshakes[0]
		d.handshakes = d.handshakes[1:]
		d.refused[TooMany].Add(1)
		old.Close() // its handshake ends with that
	}
	d.handshakes = append(d.handshakes, c)
}

// dismiss forgets a stranger whose handshake has ended.
func (d *endpoint) dismiss(c net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.handshakes, c); i >= 0 {
		d.handshakes = slices.Delete(d.handshakes, i, i+1)
	}
}

// welcome is the handshake with a connection that came, and its reception.
func (d *endpoint) welcome(c net.Conn) {
	came := c
	stop := closing(d.quit, c)
	c, why := d.secure(c)
	var h hello
	var answer func(Refusal) error
	if why == 0 {
		h, answer, why = receiveHello(c, d.key)
	}
	stop()
	d.dismiss(came)
	if why == 0 && h.work != d.work {
		why = OtherWork
	}
	switch {
	case why == 0:
		why = d.receive(c, h, answer)
	case answer != nil:
		answer(why)
	}
	if why != 0 {
		d.refuse(c, h, why)
	}
}

// refuse counts a connection that is turned away, and tells of it.
func (d *endpoint) refuse(c net.Conn, h hello, why Refusal) {
	d.refused[why].Add(1)
	from := c.RemoteAddr().String()
	c.Close()
	if d.told == nil {
		return
	}
	rank := -1
	if h.purpose == forControl || h.purpose == forData {
		rank = h.rank
	}
	d.told(Refused{From: from, Rank: rank, Why: why})
}

// introduce is the handshake with a rank that this one has dialled.
func (d *endpoint) introduce(c net.Conn, h hello) error {
	h.work = d.work
	return introduce(c, d.key, h)
}

// secure is the handshake of TLS, where the job has it.
func (d *endpoint) secure(c net.Conn) (net.Conn, Refusal) {
	if d.tls == nil {
		return c, 0
	}
	t := wrapServer(c, d.tls)
	t.SetDeadline(time.Now().Add(patience))
	if err := t.Handshake(); err != nil {
		return t, Untrusted
	}
	return t, 0
}

// forbiddenError is an address that this rank may not connect to.
type forbiddenError struct {
	to  netip.AddrPort
	err error
}

func (e *forbiddenError) Error() string { return fmt.Sprintf("%s is not dialled: %v", e.to, e.err) }

// allow is the gate of all connections: whoever names an address, this rank connects to those alone that
// Config.MayDial lets pass.
func (d *endpoint) allow(to netip.AddrPort) error {
	if d.mayDial == nil {
		return nil
	}
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	if err := d.mayDial(to); err != nil {
		return &forbiddenError{to, err}
	}
	return nil
}

// dial connects from the k-th of the addresses to bind to, where there are any of the same
// family.
func (d *endpoint) dial(ctx context.Context, k int, addr string, limit time.Duration) (net.Conn, error) {
	dialer := net.Dialer{Timeout: limit, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address) // what a name stands for, just before it is connected to
		if err == nil {
			err = d.allow(to)
		}
		return err
	}}
	if len(d.bind) > 0 {
		ip := d.bind[k%len(d.bind)]
		host, _, err := net.SplitHostPort(addr)
		if to := net.ParseIP(host); err == nil && (to == nil || (to.To4() == nil) == (ip.To4() == nil)) {
			dialer.LocalAddr = &net.TCPAddr{IP: ip}
		}
	}
	c, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil || d.tls == nil {
		return c, err
	}
	t := wrapClient(c, d.tls)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := t.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return t, nil
}

// close lets nobody in any more.
func (d *endpoint) close() {
	d.mu.Lock()
	close(d.quit)
	for _, l := range d.listeners {
		l.Close()
	}
	d.mu.Unlock()
	d.tasks.Wait()
}

// closing closes a connection when something ends; the function it returns calls that off, for
// good once it has returned.
func closing(end <-chan struct{}, c net.Conn) func() {
	off, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-end:
			c.Close()
		case <-off:
		}
	}()
	return func() {
		close(off)
		<-over
	}
}
