package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/unit"
)

// Config is a node.
type Config struct {
	Name fleet.Name
	// Bus says where the servers are and with which credentials they are reached. Run sets
	// Node.
	Bus bus.Config
	// Dir holds what the node has to say until the store has it. One agent uses it at a time.
	Dir string
	// Meet is the host and port at which other nodes find this one when it is measured; see
	// MeetAt. Bind is the interface or address that is measured, empty for the one that
	// leads to the others.
	Meet, Bind string
	// Sys is the machine's / of which sys and proc are read; nil is the real one.
	Sys fs.FS
	// Driver gives what the driver of an interface counts beyond /sys; nil asks the kernel, where Sys
	// is the real one, and gives nothing else.
	Driver func(port string) (map[string]uint64, error)
	// Map is the node as `busbar map --json` prints it; nil is none.
	Map func() (json.RawMessage, error)
	// Resend is how often the node tells all about itself anew, changed or not: a store that is
	// full has dropped it. 0 is 6 h. What has changed is looked at six times as often.
	Resend time.Duration
	// Health is what the node's own drivers and kernel say is wrong with it, asked every minute; nil: nobody asks.
	Health func(ctx context.Context) []finding.Finding
	// Version is the agent's.
	Version string
	// Beat and Look are how often the node says that it lives and reads its ports; 0 is 10 s
	// and 30 s. Both vary by a tenth, so that nodes do not speak all at once.
	Beat, Look time.Duration
	// MaxMemory is what a measurement may take; 0 is 2 GiB.
	MaxMemory unit.Bytes
	// On, where it is set, hears what happens, from several goroutines.
	On func(Event)
	// Means say why the node cannot be measured by other transports than TCP; nil: it can. One may take as long as a
	// program that loads a driver.
	Means map[fleet.Transport]func(context.Context) error
	// Measure does a part: that of a Child, or a simulated node's own.
	Measure Measurer
}

// Event is something that happened to an agent.
type Event struct {
	At   time.Time `json:"at"`
	What string    `json:"what"` // connection, part, measured, spool, ports, map
	Text string    `json:"text"`
	OK   bool      `json:"ok"`
}

// agent is a node that runs.
type agent struct {
	Config
	began time.Time
	boot  string
	bus   *bus.Bus
	spool *spool
	work  *worker
	ports *portWatch
	send  *bus.Publisher

	jobsRead time.Time // the last operation of a job that a beat was about

	ill    atomic.Pointer[[]finding.Finding] // as last read
	joined atomic.Pointer[fleet.Joined]      // as last told

	lastState atomic.Value // the last word about the connection, which is not repeated
}

// Run is a node until the context ends, or until it turns out that it must not go on: another
// agent has the same name.
func Run(ctx context.Context, c Config) error {
	a, err := c.open()
	if err != nil {
		return err
	}
	defer a.spool.unlock()
	defer a.bus.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := a.bus.Serve(a.work.asked); err != nil {
		return err
	}
	defer context.AfterFunc(a.bus.Held(), stop)()
	var tasks sync.WaitGroup
	tasks.Go(func() { a.empty(ctx) })
	tasks.Go(func() { a.every(ctx, a.Beat, a.heartbeat) })
	tasks.Go(func() { a.every(ctx, a.Look, a.look) })
	tasks.Go(func() { a.register(ctx) })
	if a.Health != nil {
		tasks.Go(func() { a.every(ctx, time.Minute, func() { a.readHealth(ctx) }) })
	}
	<-ctx.Done()
	a.work.end()
	tasks.Wait()
	if err := context.Cause(a.bus.Held()); err != nil {
		return err // the node itself goes on, with the other agent: nobody leaves
	}
	a.announceEnd()
	return nil
}

// open makes a node ready: its folder, its connection, nothing said yet.
func (c *Config) open() (*agent, error) {
	now := time.Now()
	a := &agent{Config: *c, began: now, jobsRead: now} // what was before, an agent before this one may have sent
	if _, err := place(c.Meet); err != nil {
		return nil, err
	}
	a.Beat = cmp.Or(a.Beat, 10*time.Second)
	a.Look = cmp.Or(a.Look, 30*time.Second)
	a.Resend = cmp.Or(a.Resend, 6*time.Hour)
	if a.Sys == nil {
		a.Sys = os.DirFS("/")
		if a.Driver == nil {
			a.Driver = driverCounters
		}
	}
	a.MaxMemory = cmp.Or(a.MaxMemory, 2*unit.GiB)
	if data, err := fs.ReadFile(a.Sys, "proc/sys/kernel/random/boot_id"); err == nil {
		a.boot = strings.TrimSpace(string(data))
	}
	a.ports = &portWatch{sys: a.Sys, measured: interfaceOf(a.Meet)}
	var err error
	if a.spool, err = openSpool(c.Dir, c.Name); err != nil {
		return nil, err
	}
	if n := a.spool.damaged; n > 0 {
		a.event("spool", false, "%s: %d damaged records are lost", a.spool.path, n)
	}
	host, _ := os.Hostname() // an address will do
	a.Bus.Node, a.Bus.Where = c.Name, strings.TrimSpace(host+" at "+a.Meet)
	a.Bus.On = a.connection
	if a.bus, err = bus.Connect(a.Bus); err != nil {
		a.spool.unlock()
		return nil, err
	}
	a.send = a.bus.Publisher()
	a.send.After(a.spool.number)
	a.joined.Store(&fleet.Joined{})
	a.work = &worker{a: a}
	return a, nil
}

func (a *agent) event(what string, ok bool, format string, args ...any) {
	if a.On != nil {
		a.On(Event{At: time.Now(), What: what, Text: fmt.Sprintf(format, args...), OK: ok})
	}
}

// connection passes on what happens to the connection, but not the same every second.
func (a *agent) connection(connected bool, text string) {
	if a.lastState.Swap(text) != text {
		a.event("connection", connected, "%s", text)
	}
}

// every does something again and again, not in step with other nodes.
func (a *agent) every(ctx context.Context, d time.Duration, do func()) {
	for {
		do()
		select {
		case <-ctx.Done():
			return
		case <-time.After(varied(d)):
		}
	}
}

// varied is a time, a tenth more or less.
func varied(d time.Duration) time.Duration { return d - d/10 + rand.N(d/5+1) }

// emit keeps an event in the spool. What cannot be kept is told, and not tried again.
func (a *agent) emit(n *fleet.Event) bool {
	n.Node, n.At = a.Name, time.Now().UTC()
	if err := a.spool.add(n); err != nil {
		a.event("spool", false, "%v", err)
		return false
	}
	return true
}

// empty brings the spool to the store.
func (a *agent) empty(ctx context.Context) {
	for ctx.Err() == nil {
		var again <-chan time.Time
		// Run returns why another agent has the name.
		if err := a.send.PublishAll(ctx, a.spool); err != nil && ctx.Err() == nil && a.bus.Held().Err() == nil {
			a.event("spool", false, "%v", err)
			again = time.After(time.Second + rand.N(time.Second))
		}
		select {
		case <-ctx.Done():
		case <-a.spool.more:
		case <-again:
		}
	}
}

// announceEnd tells that the node ends in order, for as long as that takes no time.
func (a *agent) announceEnd() {
	a.emit(&fleet.Event{Kind: fleet.KindLeft})
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_ = a.send.PublishAll(ctx, a.spool) // the spool keeps what was not said in time
}

// register tells what the node has, at the beginning, when it has changed, and now and then.
func (a *agent) register(ctx context.Context) {
	var sent string
	for all := time.Now(); ; {
		if time.Since(all) > a.Resend {
			all, sent = time.Now(), ""
			a.ports.resend()
		}
		j := a.introduction(ctx)
		a.joined.Store(j)
		text, _ := json.Marshal(j) // Map is JSON, and the rest cannot fail
		if string(text) != sent && a.emit(&fleet.Event{Kind: fleet.KindJoined, Joined: j}) {
			sent = string(text)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(varied(a.Resend / 6)):
		}
	}
}

// introduction is what the node has.
func (a *agent) introduction(ctx context.Context) *fleet.Joined {
	j := &fleet.Joined{
		Version: a.Version, Boot: a.boot, Meet: a.Meet, Bind: a.Bind, CPUs: runtime.NumCPU(), Means: a.means(ctx),
	}
	if a.Map == nil {
		return j
	}
	m, err := a.Map()
	if err == nil && len(m) > fleet.MaxBytes-4<<10 {
		err = fmt.Errorf("it has %d bytes; at most %d are sent", len(m), fleet.MaxBytes-4<<10)
	}
	if err != nil {
		a.event("map", false, "the node's map is left out: %v", err)
		return j
	}
	j.Map = m
	return j
}

// heartbeat says that the node lives.
func (a *agent) heartbeat() {
	if !a.bus.Connected() {
		return
	}
	b := &fleet.Beat{Node: a.Name, At: time.Now().UTC(), Up: time.Since(a.began).Seconds(), Part: a.work.running()}
	b.Waiting, b.Last, b.Dropped = a.spool.state()
	b.Receive, b.Send = a.ports.since()
	if data, err := fs.ReadFile(a.Sys, "proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(data), &b.Load) // no figure is 0
	}
	b.Jobs = a.jobs()
	if ill := a.ill.Load(); ill != nil {
		b.Health = *ill
	}
	if err := a.bus.Beat(b); err != nil {
		a.event("connection", false, "a beat: %v", err)
	}
}
