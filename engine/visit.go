package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// visit is Join of the other ranks: find rank 0, tell it where this rank can be reached, and
// wait for the table of all.
// A rank that listens already says where.
func (n *network) visit(ctx context.Context, addrs []netip.AddrPort) error {
	if _, err := n.greetCoordinator(ctx, addrs); err != nil {
		return err
	}
	conn := n.up.c
	defer closing(n.quit, conn)()
	if limit, ok := ctx.Deadline(); ok {
		conn.SetReadDeadline(limit.Add(time.Second)) // rank 0 may have something to say about it
	}
	stop := context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Now().Add(time.Second)) })
	defer stop()
	m, err := n.up.receive(noteTable, noteAbort, noteVerdict)
	var bad *protocolError
	switch {
	case errors.As(err, &bad):
		return n.errorOf(endOf(0, "", err))
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("rank 0 is gone before all had come: %w", err)
	case m.kind == noteAbort:
		return fmt.Errorf("rank 0 gave up: %q", m.text)
	case m.kind == noteVerdict: // of a rank that was lost before it had all addresses
		return n.errorOf(m.verdict)
	}
	conn.SetReadDeadline(time.Time{})
	n.members = m.table
	n.reachCoordinator(conn)
	close(n.tabled)
	n.heard.Store(now())
	n.tasks.Add(2)
	go n.readControl()
	go n.heartbeat()
	return nil
}

// greetCoordinator finds rank 0 and tells it where this rank listens, from now on where it does not yet.
func (n *network) greetCoordinator(ctx context.Context, addrs []netip.AddrPort) ([]netip.AddrPort, error) {
	conn, err := n.findCoordinator(ctx)
	if err != nil {
		return nil, err
	}
	n.up = &control{c: conn, size: n.cfg.Size, limit: n.cfg.Timeout}
	n.met.Store(true)
	if addrs == nil {
		if addrs, err = n.endpoint.listen(n.endpoint.reachableFrom(conn, &n.cfg), 0); err != nil {
			return nil, err
		}
	}
	return addrs, n.up.sendJSON(noteMember, n.own(addrs))
}

// reachCoordinator replaces addresses of rank 0 and of ranks on its host that mean any by the one that
// has just worked.
func (n *network) reachCoordinator(conn net.Conn) {
	from := addrPort(conn.RemoteAddr()).Addr()
	for _, m := range n.members {
		if m.Boot != n.members[0].Boot {
			continue
		}
		for i, a := range m.Addrs {
			if a.Addr().IsUnspecified() {
				m.Addrs[i] = netip.AddrPortFrom(from, a.Port())
			}
		}
	}
}

// findCoordinator dials rank 0 until it is there.
func (n *network) findCoordinator(ctx context.Context) (net.Conn, error) {
	var last error
	begun, pause := time.Now(), 2*time.Millisecond
	for {
		for _, addr := range n.cfg.candidates(&last) {
			conn, err := n.dialCoordinator(ctx, addr)
			if err == nil {
				return conn, nil
			}
			if ctx.Err() == nil || last == nil { // that it was called off says less than why it was not let in
				last = fmt.Errorf("%s: %w", addr, err)
			}
			// A file may still name a job of yesterday, whose port somebody else has now.
			if final(err) && (!n.cfg.meetsInFile() || certain(err) || time.Since(begun) > time.Second) {
				return nil, last
			}
		}
		select {
		case <-ctx.Done():
			if last != nil {
				return nil, fmt.Errorf("%w; last: %w", context.Cause(ctx), last)
			}
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
		pause = min(pause*3/2, 200*time.Millisecond)
	}
}

// dialLimit is how long one attempt to reach rank 0 may take.
func dialLimit(ctx context.Context) time.Duration {
	limit := 2 * time.Second
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, max(time.Until(end), time.Millisecond))
	}
	return limit
}

func (n *network) dialCoordinator(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := n.endpoint.dial(ctx, 0, addr, dialLimit(ctx))
	if err != nil {
		return nil, err
	}
	stop := closing(n.quit, conn)
	h := hello{purpose: forControl, epoch: n.epoch, rank: n.cfg.Rank, size: n.cfg.Size}
	err = n.endpoint.introduce(conn, h)
	stop()
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// candidates are the addresses at which rank 0 may be. Of a file, those that rank 0 wrote into
// it; on the same host the last, its loopback, comes first.
func (c *Config) candidates(last *error) []string {
	if !c.meetsInFile() {
		return []string{c.Meet}
	}
	var x note0
	err := plainFile(c.Meet)
	if err == nil {
		var b []byte
		if b, err = readFile(c.Meet); err == nil {
			x, err = decodeMeeting(b)
		}
	}
	if err != nil {
		if *last == nil {
			*last = err
		}
		return nil
	}
	if x.Host == c.Host {
		slices.Reverse(x.Addrs)
	}
	list := make([]string, len(x.Addrs))
	for i, a := range x.Addrs {
		list[i] = a.String()
	}
	return list
}
