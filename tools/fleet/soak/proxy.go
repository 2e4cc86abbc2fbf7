package main

import (
	"net"
	"sync"
	"time"
)

// proxy stands between agents and servers, and can be cut.
type proxy struct {
	l       net.Listener
	targets []string

	mu    sync.Mutex
	open  map[net.Conn]bool
	deaf  bool // nothing passes, and nobody is told
	gone  bool // connections are refused
	next  int
	alive *sync.Cond
}

func newProxy(targets []string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{l: l, targets: targets, open: map[net.Conn]bool{}}
	p.alive = sync.NewCond(&p.mu)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p, nil
}

func (p *proxy) url() string { return "nats://" + p.l.Addr().String() }

func (p *proxy) serve(c net.Conn) {
	p.mu.Lock()
	p.next++
	to, gone := p.targets[p.next%len(p.targets)], p.gone
	p.mu.Unlock()
	s, err := net.DialTimeout("tcp", to, 2*time.Second)
	if err == nil && gone {
		s.Close()
	}
	if err != nil || gone {
		c.Close()
		return
	}
	p.mu.Lock()
	p.open[c], p.open[s] = true, true
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.pass(s, c) })
	both.Go(func() { p.pass(c, s) })
	both.Wait()
	p.mu.Lock()
	delete(p.open, c)
	delete(p.open, s)
	p.mu.Unlock()
}

// pass hands bytes on, unless the line is deaf.
func (p *proxy) pass(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		p.mu.Lock()
		for p.deaf {
			p.alive.Wait()
		}
		p.mu.Unlock()
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// cut breaks all connections and lets none through for a while, or passes nothing on for a while.
func (p *proxy) cut(silent bool, d time.Duration) {
	p.mu.Lock()
	if silent {
		p.deaf = true
	} else {
		p.gone = true
		for c := range p.open {
			c.Close()
		}
	}
	p.mu.Unlock()
	time.Sleep(d)
	p.mu.Lock()
	p.deaf, p.gone = false, false
	p.alive.Broadcast()
	p.mu.Unlock()
}
