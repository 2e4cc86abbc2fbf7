package engine

import (
	"fmt"

	"busbar.dev/coll"
	"busbar.dev/result"
	"busbar.dev/schedule"
)

// Prepare makes a call ready: it lays out the program of this rank and connects to the peers
// that it talks to. Without a schedule the engine picks one by the size. All ranks must prepare
// the same calls in the same order.
func (g *Group) Prepare(s *schedule.Schedule, op coll.Op) (*Call, error) {
	err := g.failure()
	if err != nil {
		return nil, err
	}
	if s == nil {
		if s, err = g.Pick(op); err != nil {
			return nil, err
		}
	}
	g.prepare.Lock()
	defer g.prepare.Unlock()
	c, err := g.newCall(s, op)
	if err != nil {
		return nil, err
	}
	if err := g.connect(c); err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	if err := g.driver.register(c); err != nil {
		return nil, err
	}
	return c, g.setExchange(c)
}

// newCall lays out the program of this rank.
func (g *Group) newCall(s *schedule.Schedule, op coll.Op) (*Call, error) {
	if s.Ranks != g.size {
		return nil, fmt.Errorf("a schedule for %d ranks in a group of %d", s.Ranks, g.size)
	}
	k, err := newCompiler(s, op, g.rank)
	if err != nil {
		return nil, err
	}
	c := &Call{g: g, d: &g.driver, s: s, op: op, elem: k.elem, program: fingerprint(s, op), done: make(chan struct{}, 1)}
	c.name = fmt.Sprintf("%s by %s of %v", op.Kind, s.Name, op.Size(g.size))
	if c.arith, err = kernelsFor(op, g.size); err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	c.run = result.Run{Op: op, Ranks: g.size, Algo: s.Name, Channels: s.Channels}
	k.findUntouched()
	c.initial = k.initial
	c.lanes, c.added = make([]lane, s.Lanes), make([]int, s.Lanes)
	for i := range c.lanes {
		steps, err := k.lane(i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		sends := 0
		for _, st := range steps {
			if st.verb == send {
				sends++
			}
			c.waits = c.waits || st.op.After.Count > 0
		}
		c.lanes[i] = lane{call: c, id: i, steps: steps, sends: make([]posted, min(max(sends, 1), window))}
		c.added[i] = k.added
	}
	c.writes, c.need = k.writes, k.size
	for _, m := range []memory{tempMem, padMem, sideMem} {
		c.mem[m] = c.own(m)
	}
	c.ready = op.Kind == coll.Barrier
	return c, nil
}

// connect gives every step of a call its link.
func (g *Group) connect(c *Call) error {
	need := map[int]bool{}
	if g.canExchange(c) { // everybody reads everybody's page
		for r := range g.size {
			if r != g.rank {
				need[r] = true
			}
		}
	}
	for st := range c.messages() {
		need[int(st.peer)] = true
	}
	switch {
	case g.locals != nil:
		for peer := range need {
			meetLocal(g, g.locals[peer])
		}
	case g.net != nil:
		if err := g.net.reach(need); err != nil {
			return err
		}
	}
	d := &g.driver
	d.mu.Lock()
	defer d.mu.Unlock()
	d.adopt()
	for st, lane := range c.messages() {
		list := d.peers[st.peer]
		st.link = list[lane%len(list)]
	}
	return nil
}

// meetLocal connects two ranks of one process, once.
func meetLocal(a, b *Group) {
	if a.rank > b.rank {
		a, b = b, a
	}
	a.driver.pair.Lock() // of the lower rank, whoever comes first
	defer a.driver.pair.Unlock()
	if a.driver.reg.has(b.rank, 0) {
		return
	}
	x, y := a.driver.waiter.(*notifier), b.driver.waiter.(*notifier)
	up, down := newPipe(y, x), newPipe(x, y)
	b.driver.reg.add(b.driver.newLink(a.rank, 0, pipePair{in: up, out: down}, -1))
	a.driver.reg.add(a.driver.newLink(b.rank, 0, pipePair{in: down, out: up}, -1))
}

// setExchange gives a call its exchange, where it may have one.
func (g *Group) setExchange(c *Call) (err error) {
	d := &g.driver
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.exchange, err = g.newShmExchange(c); c.exchange == nil {
		return err
	}
	c.exchange.sendHandle()
	d.wakeBackground() // to send what there was no room for
	return nil
}
