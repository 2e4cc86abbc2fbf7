package hub

import (
	"sync"
	"time"

	"busbar.dev/fleet/health"
)

// clock is the machine's clock, which somebody may set, beside one that goes on evenly.
type clock struct {
	now    func() time.Time
	steady func() time.Duration
	turn   time.Duration // how often it is looked at while something waits for a time

	mu    sync.Mutex // guards following
	wall  time.Time  // what both showed when they were last read
	mono  time.Duration
	began time.Duration // when the hub had read the past
}

// leap is the least that counts as setting the clock; corrections in small steps are less.
const leap = 2 * time.Second

func newClock(now func() time.Time, steady func() time.Duration) *clock {
	if now == nil {
		now = time.Now
	}
	if steady == nil {
		start := time.Now()
		steady = func() time.Duration { return time.Since(start) }
	}
	return &clock{now: now, steady: steady, turn: clockTurn, wall: now().Round(0), mono: steady(), began: steady()}
}

// read is the time. Where the clock was set since the last call, set is told by how much before
// anybody gets the new time. The time has no second clock within it: what is kept is moved.
func (c *clock) read(set func(time.Duration)) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, mono := c.now().Round(0), c.steady()
	moved := now.Sub(c.wall) - (mono - c.mono)
	c.wall, c.mono = now, mono
	if moved.Abs() >= leap {
		set(moved)
	}
	return now
}

// begin counts from now on.
func (c *clock) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began = c.steady()
}

// since is how long ago begin was called, whatever the clock shows.
func (c *clock) since() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.steady() - c.began
}

// now is the time. When the clock was set, what is known of beats moves with it: a node that was heard
// of five seconds ago still was, and a fleet does not become unreachable because a clock was put right.
func (h *Hub) now() time.Time {
	return h.clock.read(func(moved time.Duration) {
		h.live.move(moved)
		h.view.history(func(x *health.History) { x.MoveBeats(moved) })
	})
}
