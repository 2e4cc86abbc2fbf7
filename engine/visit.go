package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"time"
)

// visit is Join of the other ranks: find rank 0, tell it where this rank can be reached, and
// wait for the table of all.
// A rank that listens already says where.
func (n *network) visit(ctx context.Context, addrs []string) error {
	conn, err := n.findCoordinator(ctx)
	if err != nil {
		return err
	}
	n.up = &control{c: conn, limit: n.cfg.Timeout}
	n.met.Store(true)
	defer closing(n.quit, conn)()
	if addrs == nil {
		if addrs, err = n.endpoint.listen(n.endpoint.reachableFrom(conn, &n.cfg), 0); err != nil {
			return err
		}
	}
	if err := n.up.sendJSON(noteMember, n.own(addrs)); err != nil {
		return err
	}
	if limit, ok := ctx.Deadline(); ok {
		conn.SetReadDeadline(limit.Add(time.Second)) // rank 0 may have something to say about it
	}
	stop := context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Now().Add(time.Second)) })
	defer stop()
	for {
		kind, body, err := n.up.receive(nil)
		switch {
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("rank 0 is gone before all had come: %w", err)
		case kind == noteAbort:
			return fmt.Errorf("rank 0 gave up: %.200q", body)
		case kind != noteTable:
			continue
		}
		if err := json.Unmarshal(body, &n.members); err != nil || len(n.members) != n.cfg.Size {
			return fmt.Errorf("a table of %d members from rank 0; expected %d (%v)", len(n.members), n.cfg.Size, err)
		}
		break
	}
	conn.SetReadDeadline(time.Time{})
	n.begin(conn)
	return nil
}

// begin is the life of a rank other than 0, once the table is known.
func (n *network) begin(conn net.Conn) {
	n.reachCoordinator(conn)
	close(n.tabled)
	n.heard.Store(now())
	n.tasks.Add(2)
	go n.readControl()
	go n.heartbeat()
}

// reachCoordinator replaces addresses of rank 0 and of ranks on its host that mean any by the one that
// has just worked.
func (n *network) reachCoordinator(conn net.Conn) {
	from := conn.RemoteAddr().(*net.TCPAddr).IP.String()
	for _, m := range n.members {
		if m.Boot != n.members[0].Boot {
			continue
		}
		for i, a := range m.Addrs {
			host, port, err := net.SplitHostPort(a)
			if ip := net.ParseIP(host); err == nil && (ip == nil || ip.IsUnspecified()) {
				m.Addrs[i] = net.JoinHostPort(from, port)
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
	h := hello{purpose: forControl, epoch: n.epoch, rank: uint32(n.cfg.Rank), size: uint32(n.cfg.Size)}
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
			err = json.Unmarshal(b, &x)
		}
	}
	if err != nil {
		if *last == nil {
			*last = err
		}
		return nil
	}
	if len(x.Addrs) > 64 {
		x.Addrs = x.Addrs[:64]
	}
	if x.Host == c.Host {
		for i, j := 0, len(x.Addrs)-1; i < j; i, j = i+1, j-1 {
			x.Addrs[i], x.Addrs[j] = x.Addrs[j], x.Addrs[i]
		}
	}
	return x.Addrs
}
