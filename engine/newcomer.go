package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// guest is a newcomer that waits for the members' next boundary.
type guest struct {
	ctl *control
	m   member
}

// maxCrowd limits how many newcomers wait at once.
const maxCrowd = 4096

// elsewhere is where the members are, rank 0 first.
type elsewhere struct {
	Addrs [][]string `json:"addrs"`
}

// receiveGuest lets a newcomer wait, where this member is rank 0, and sends it there from any
// other.
func (e *Elastic) receiveGuest(c net.Conn) {
	ctl := &control{c: c, limit: e.cfg.Timeout}
	c.SetReadDeadline(time.Now().Add(patience))
	kind, body, err := ctl.receive(nil)
	var m member
	if err != nil || kind != noteMember || json.Unmarshal(body, &m) != nil || m.ID == "" || len(m.Addrs) == 0 {
		c.Close()
		return
	}
	c.SetReadDeadline(time.Time{})
	from := c.RemoteAddr().(*net.TCPAddr)
	for i, a := range m.Addrs { // an address that means any is the one it came from
		host, port, err := net.SplitHostPort(a)
		if ip := net.ParseIP(host); err == nil && (ip == nil || ip.IsUnspecified()) {
			m.Addrs[i] = net.JoinHostPort(from.IP.String(), port)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.base == nil || e.err != nil || len(e.guests) == maxCrowd {
		c.Close()
		return
	}
	if e.seen.Rank != 0 {
		var x elsewhere
		for _, m := range e.base.Members {
			x.Addrs = append(x.Addrs, m.Addrs)
		}
		ctl.sendJSON(noteElsewhere, x)
		c.Close()
		return
	}
	e.guests = append(e.guests, guest{ctl, m})
	e.crowd.Store(int64(len(e.guests)))
}

// invite asks the newcomers that wait whether they are still there.
func (e *Elastic) invite() []guest {
	e.mu.Lock()
	list := e.guests
	e.guests = nil
	e.crowd.Store(0)
	e.mu.Unlock()
	here := make([]bool, len(list))
	var wg sync.WaitGroup
	for i, x := range list {
		wg.Go(func() {
			stop := closing(e.ctx.Done(), x.ctl.c)
			defer stop()
			x.ctl.c.SetReadDeadline(time.Now().Add(min(e.cfg.Timeout, patience)))
			defer x.ctl.c.SetReadDeadline(time.Time{})
			if x.ctl.send(noteCome, nil) != nil {
				return
			}
			kind, _, err := x.ctl.receive(nil)
			here[i] = err == nil && kind == noteHere
		})
	}
	wg.Wait()
	var come []guest
	for i, x := range list {
		if here[i] {
			come = append(come, x)
		} else {
			x.ctl.c.Close()
		}
	}
	return come
}

// dismiss sends newcomers away that came to a member which is not rank 0 any more; they will
// find the one that is. The caller holds the lock.
func (e *Elastic) dismiss() {
	for _, x := range e.guests {
		x.ctl.c.Close()
	}
	e.guests = nil
	e.crowd.Store(0)
	e.published = false // somebody else has
}

// announce lets newcomers find this member, which is rank 0 now: in the file where the ranks
// met, or at the address, if that is this host's. The caller holds the lock.
func (e *Elastic) announce(n *network) {
	if e.cfg.meetsInFile() {
		if _, err := n.publish(n.members[0].Addrs); err == nil {
			e.published = true
		}
		return
	}
	if e.atMeeting {
		return
	}
	if ips, port, err := n.meetingPlace(); err == nil && port != 0 {
		_, err = e.door.listen(ips, port)
		e.atMeeting = err == nil
	}
}

// enter is how a newcomer gets in: it finds rank 0 and waits.
func (e *Elastic) enter(ctx context.Context) error {
	defer e.sayNotIn()()
	var last error
	var addrs []string
	pause := 5 * time.Millisecond
	for {
		for _, addr := range append(e.cfg.candidates(&last), e.known...) {
			ok, err := e.knock(ctx, addr, &addrs)
			if ok {
				return nil
			}
			if err != nil && (ctx.Err() == nil || last == nil) {
				last = fmt.Errorf("%s: %w", addr, err)
			}
			if final(err) {
				return last
			}
		}
		select {
		case <-ctx.Done():
			if last != nil {
				return fmt.Errorf("%w; last: %w", context.Cause(ctx), last)
			}
			return context.Cause(ctx)
		case <-time.After(pause):
		}
		pause = min(pause*3/2, 200*time.Millisecond)
	}
}

// knock asks a member for a place, and waits for it.
func (e *Elastic) knock(ctx context.Context, addr string, addrs *[]string) (in bool, err error) {
	limit := 2 * time.Second
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, max(time.Until(end), time.Millisecond))
	}
	c, err := e.door.dial(ctx, 0, addr, limit)
	if err != nil {
		return false, err
	}
	defer func() {
		if !in {
			c.Close()
		}
	}()
	stop := closing(ctx.Done(), c)
	defer stop()
	if err := e.door.introduce(c, hello{purpose: forGuest}); err != nil {
		return false, err
	}
	if *addrs == nil {
		ips := e.door.bind
		if len(ips) == 0 {
			ip := c.LocalAddr().(*net.TCPAddr).IP
			if ip.IsLoopback() && !e.cfg.meetsAtLoopback() {
				ip = nil
			}
			ips = []net.IP{ip}
		}
		if *addrs, err = e.door.listen(ips, 0); err != nil {
			return false, err
		}
	}
	ctl := &control{c: c, limit: e.cfg.Timeout}
	own := member{Host: e.cfg.Host, Pid: os.Getpid(), Addrs: *addrs, Boot: hostIdentity(), ID: e.id}
	if err := ctl.sendJSON(noteMember, own); err != nil {
		return false, err
	}
	e.found.Store(true)
	defer e.found.Store(false)
	for {
		kind, body, err := ctl.receive(nil)
		if err != nil {
			return false, err
		}
		switch kind {
		case noteElsewhere:
			var x elsewhere
			if json.Unmarshal(body, &x) != nil {
				return false, errors.New("no address of another member")
			}
			e.known = e.known[:0]
			for _, list := range x.Addrs {
				e.known = append(e.known, list...)
			}
			return false, nil
		case noteCome:
			if err := ctl.send(noteHere, nil); err != nil {
				return false, err
			}
		case noteDecide:
			var p proposal
			if err := json.Unmarshal(body, &p); err != nil || p.Decision.valid() != nil || !p.Formed || p.Decision.at(e.id) < 1 {
				return false, errors.New("the members decided otherwise")
			}
			return e.form(&p.Decision, ctl, nil), nil
		}
	}
}
