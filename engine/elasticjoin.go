package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// joiner is a newcomer that waits for the members' next boundary.
type joiner struct {
	ctl *control
	m   member
}

// maxNewcomers limits how many newcomers wait at once.
const maxNewcomers = 4096

// joinQueue is where newcomers wait: with the member that is rank 0. The membership's lock guards it.
type joinQueue struct {
	m         *membership
	joiners   []joiner
	waiting   atomic.Int64 // how many there are
	published bool         // this member has said in the file where it is
	atMeeting bool         // this member listens at the address where the ranks met
}

// applicant is a newcomer until it is let in.
type applicant struct {
	m     *membership
	addrs []string    // at which it listens, once it has found a member
	known []string    // at which other members may be found
	found atomic.Bool // a member has heard of it
}

// elsewhere is where the members are, rank 0 first.
type elsewhere struct {
	Addrs [][]string `json:"addrs"`
}

// receive lets a newcomer wait, where this member is rank 0, and sends it there from any
// other.
func (l *joinQueue) receive(c net.Conn) {
	m := l.m
	ctl := &control{c: c, limit: m.cfg.Timeout}
	c.SetReadDeadline(time.Now().Add(patience))
	kind, body, err := ctl.receive(nil)
	var own member
	if err != nil || kind != noteMember || json.Unmarshal(body, &own) != nil || own.ID == "" || len(own.Addrs) == 0 {
		c.Close()
		return
	}
	c.SetReadDeadline(time.Time{})
	own.cameFrom(c)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.base == nil || m.err != nil || len(l.joiners) == maxNewcomers {
		c.Close()
		return
	}
	if m.seen.Rank != 0 {
		var x elsewhere
		for _, other := range m.base.Members {
			x.Addrs = append(x.Addrs, other.Addrs)
		}
		ctl.sendJSON(noteElsewhere, x)
		c.Close()
		return
	}
	l.joiners = append(l.joiners, joiner{ctl, own})
	l.waiting.Store(int64(len(l.joiners)))
}

// invite asks the newcomers that wait whether they are still there.
func (l *joinQueue) invite() []joiner {
	m := l.m
	m.mu.Lock()
	list := l.joiners
	l.joiners = nil
	l.waiting.Store(0)
	m.mu.Unlock()
	here := make([]bool, len(list))
	var wg sync.WaitGroup
	for i, x := range list {
		wg.Go(func() {
			stop := closing(m.ctx.Done(), x.ctl.c)
			defer stop()
			x.ctl.c.SetReadDeadline(time.Now().Add(min(m.cfg.Timeout, patience)))
			defer x.ctl.c.SetReadDeadline(time.Time{})
			if x.ctl.send(noteCome, nil) != nil {
				return
			}
			kind, _, err := x.ctl.receive(nil)
			here[i] = err == nil && kind == noteHere
		})
	}
	wg.Wait()
	var come []joiner
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
func (l *joinQueue) dismiss() {
	l.clear()
	l.published = false // somebody else has
}

// clear closes the connections of all that wait. The caller holds the lock.
func (l *joinQueue) clear() {
	for _, x := range l.joiners {
		x.ctl.c.Close()
	}
	l.joiners = nil
	l.waiting.Store(0)
}

// announce lets newcomers find this member, which is rank 0 now: in the file where the ranks
// met, or at the address, if that is this host's. The caller holds the lock.
func (l *joinQueue) announce(n *network) {
	if n.cfg.meetsInFile() {
		if _, err := n.publish(n.members[0].Addrs); err == nil {
			l.published = true
		}
		return
	}
	if l.atMeeting {
		return
	}
	if ips, port, err := n.meetingPlace(); err == nil && port != 0 {
		_, err = n.endpoint.listen(ips, port)
		l.atMeeting = err == nil
	}
}

// enter is how a newcomer gets in: it finds rank 0 and waits.
func (a *applicant) enter(ctx context.Context) error {
	defer a.reportWaiting()()
	var last error
	pause := 5 * time.Millisecond
	for {
		for _, addr := range append(a.m.cfg.candidates(&last), a.known...) {
			ok, err := a.request(ctx, addr)
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

// request asks a member for a place, and waits for it.
func (a *applicant) request(ctx context.Context, addr string) (in bool, err error) {
	m := a.m
	c, err := m.endpoint.dial(ctx, 0, addr, dialLimit(ctx))
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
	if err := m.endpoint.introduce(c, hello{purpose: forJoin}); err != nil {
		return false, err
	}
	if a.addrs == nil {
		if a.addrs, err = m.endpoint.listen(m.endpoint.reachableFrom(c, &m.cfg), 0); err != nil {
			return false, err
		}
	}
	ctl := &control{c: c, limit: m.cfg.Timeout}
	own := member{Host: m.cfg.Host, Pid: os.Getpid(), Addrs: a.addrs, Boot: hostIdentity(), ID: m.id}
	if err := ctl.sendJSON(noteMember, own); err != nil {
		return false, err
	}
	a.found.Store(true)
	defer a.found.Store(false)
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
			a.known = a.known[:0]
			for _, list := range x.Addrs {
				a.known = append(a.known, list...)
			}
			return false, nil
		case noteCome:
			if err := ctl.send(noteHere, nil); err != nil {
				return false, err
			}
		case noteDecide:
			var p proposal
			if err := json.Unmarshal(body, &p); err != nil || p.Decision.valid() != nil || !p.Formed || p.Decision.at(m.id) < 1 {
				return false, errors.New("the members decided otherwise")
			}
			return m.form(&p.Decision, ctl, nil), nil
		}
	}
}

// reportWaiting tells once that a newcomer waits, and for what.
func (a *applicant) reportWaiting() (stop func()) {
	if a.m.cfg.OnWait == nil {
		return func() {}
	}
	t := time.AfterFunc(waitWord, func() {
		w := Waiting{Rank: -1, Meet: a.m.cfg.Meet}
		if !a.found.Load() {
			w.For = []int{0}
		}
		a.m.cfg.OnWait(w)
	})
	return func() { t.Stop() }
}
