package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	// Bus says where the servers are and with which credentials they are reached. Node and
	// Patient are set by Run.
	Bus bus.Config
	// Dir holds what the node has to say until the store has it. One agent uses it at a time.
	Dir string
	// Meet is the host and port at which other nodes find this one when it is measured; see
	// MeetAt. Bind is the interface or address that is measured, empty for the one that
	// leads to the others.
	Meet, Bind string
	// AnyPort tells that another port will do where that of Meet is taken, as by a second agent of the machine.
	AnyPort bool
	// Sys is the machine's / of which sys and proc are read; nil is the real one.
	Sys fs.FS
	// Driver gives what the driver of an interface counts beyond /sys; nil asks the kernel, where Sys
	// is the real one, and gives nothing else.
	Driver func(port string) (map[string]uint64, error)
	// Map is the node as `busbar map --json` prints it; nil is none. It is asked at the
	// beginning and every MapEvery, which is an hour when 0.
	Map      func() (json.RawMessage, error)
	MapEvery time.Duration
	// Resend is how often the node tells all about itself anew, changed or not: a store that is
	// full has dropped it. 0 is 6 h.
	Resend time.Duration
	// Health is what the node's own drivers and kernel say is wrong with it, asked every HealthEvery, which is a minute
	// when 0; nil: nobody asks.
	Health      func(ctx context.Context) []finding.Finding
	HealthEvery time.Duration
	// Version is the agent's.
	Version string
	// Beat and Look are how often the node says that it lives and reads its ports; 0 is 10 s
	// and 30 s. Both vary by a tenth, so that nodes do not speak all at once.
	Beat, Look time.Duration
	// MaxMemory is what a measurement may take; 0 is 2 GiB. MaxSpool is what may wait for
	// the store; 0 is 64 MiB.
	MaxMemory unit.Bytes
	MaxSpool  int64
	// On, where it is set, hears what happens, from several goroutines.
	On func(Event)
	// Means say why the node cannot be measured by other transports than TCP; nil: it can. One may take as long as a
	// program that loads a driver.
	Means map[fleet.Transport]func(context.Context) error
	// Child is what does a part. A simulated node has its own Measure.
	Child   Child
	Measure Measurer
}

// Event is something that happened to an agent.
type Event struct {
	At   time.Time `json:"at"`
	What string    `json:"what"` // connection, part, measured, meet, spool, conflict, ports, map
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
	again chan struct{} // register must tell anew
	held  io.Closer     // the place to meet; nil where it could not be held

	jobsRead time.Time // the last operation of a job that a beat was about

	ill  atomic.Pointer[[]finding.Finding] // as last read
	able atomic.Pointer[[]fleet.Means]     // the transports, as last told

	mu          sync.Mutex
	lastState   string // the last word about the connection, which is not repeated for a while
	lastStateAt time.Time
}

// Run is a node until the context ends, or until it turns out that it must not go on: another
// agent has the same name.
func Run(ctx context.Context, c Config) error {
	a, err := c.open()
	if err != nil {
		return err
	}
	defer a.spool.close()
	defer a.bus.Close()
	defer a.letGo()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ear, err := a.bus.Serve(a.work.asked)
	if err != nil {
		return err
	}
	defer ear.Close()
	defer context.AfterFunc(a.bus.Held(), func() { stop(context.Cause(a.bus.Held())) })()
	var tasks sync.WaitGroup
	tasks.Go(func() { a.send(ctx) })
	tasks.Go(func() { a.every(ctx, a.Beat, a.heartbeat) })
	tasks.Go(func() { a.every(ctx, a.Look, a.look) })
	tasks.Go(func() { a.register(ctx) })
	if a.Health != nil {
		tasks.Go(func() { a.every(ctx, a.HealthEvery, func() { a.readHealth(ctx) }) })
	}
	<-ctx.Done()
	a.work.end()
	tasks.Wait()
	err = context.Cause(ctx)
	if errors.As(err, new(*bus.ConflictError)) {
		return err // the node itself goes on, with the other agent: nobody leaves
	}
	a.announceEnd()
	return nil
}

// open makes a node ready: its folder, its connection, nothing said yet.
func (c *Config) open() (*agent, error) {
	a := &agent{
		Config: *c, began: time.Now(), again: make(chan struct{}, 1),
	}
	if _, err := fleet.ParseName(string(c.Name)); err != nil {
		return nil, err
	}
	if err := checkMeet(c.Meet); err != nil {
		return nil, err
	}
	for _, d := range []struct {
		d     *time.Duration
		usual time.Duration
	}{
		{&a.Beat, 10 * time.Second},
		{&a.Look, 30 * time.Second},
		{&a.MapEvery, time.Hour},
		{&a.Resend, 6 * time.Hour},
		{&a.HealthEvery, time.Minute},
	} {
		*d.d = cmp.Or(*d.d, d.usual)
	}
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
	a.ports = &portWatch{sys: a.Sys, measured: interfaceOf(a.Bind, a.Meet)}
	var err error
	if a.spool, err = openSpool(c.Dir, c.Name, c.MaxSpool); err != nil {
		return nil, err
	}
	if n := a.spool.damaged; n > 0 {
		a.event("spool", false, "%s: %d damaged records are lost", a.spool.path, n)
	}
	a.holdMeet()
	host, _ := os.Hostname() // an address will do
	a.Bus.Node, a.Bus.Patient, a.Bus.Where = c.Name, true, strings.TrimSpace(host+" at "+a.Meet)
	if a.Bus.On == nil {
		a.Bus.On = a.connection
	}
	if a.bus, err = bus.Connect(a.Bus); err != nil {
		a.spool.close()
		a.letGo()
		return nil, err
	}
	a.work = &worker{a: a}
	return a, nil
}

func (a *agent) event(what string, ok bool, format string, args ...any) {
	if a.On != nil {
		a.On(Event{At: time.Now(), What: what, Text: fmt.Sprintf(format, args...), OK: ok})
	}
}

// stateAgain is after how long the same word about the connection is passed on once more, so that a log shows that
// it still holds.
const stateAgain = 10 * time.Minute

// connection passes on what happens to the connection, but not the same every second.
func (a *agent) connection(e bus.Event) {
	a.mu.Lock()
	now := time.Now()
	again := a.lastState == e.Text && now.Sub(a.lastStateAt) < stateAgain
	if a.lastState = e.Text; !again {
		a.lastStateAt = now
	}
	a.mu.Unlock()
	if !again {
		a.event("connection", e.Connected, "%s", e.Text)
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

// say keeps an event in the spool. What cannot be kept is told, and not tried again.
func (a *agent) emit(n *fleet.Event) bool {
	n.Node, n.At = a.Name, time.Now().UTC()
	if err := a.spool.add(n); err != nil {
		a.event("spool", false, "%v", err)
		return false
	}
	return true
}

// send brings the spool to the store.
func (a *agent) send(ctx context.Context) {
	s := a.publisher()
	for ctx.Err() == nil {
		if err := s.PublishAll(ctx, a.spool); err == nil {
			select {
			case <-ctx.Done():
			case <-a.spool.more:
			}
		} else if ctx.Err() == nil {
			a.event("spool", false, "%v", err)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second + rand.N(time.Second)):
			}
		}
	}
}

// publisher goes on behind what was stored.
func (a *agent) publisher() *bus.Publisher {
	s := a.bus.Publisher()
	s.After(a.spool.last())
	return s
}

// announceEnd tells that the node ends in order, for as long as that takes no time.
func (a *agent) announceEnd() {
	if !a.emit(&fleet.Event{Kind: fleet.KindLeft}) || !a.bus.Connected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	s := a.publisher()
	_ = s.PublishAll(ctx, a.spool) // the spool keeps what was not said in time
}

// register tells what the node has, at the beginning, when it has changed, and now and then.
func (a *agent) register(ctx context.Context) {
	var sent string
	anew := time.NewTimer(a.Resend - a.Resend/10 + rand.N(a.Resend/5+1))
	defer anew.Stop()
	send := func() {
		j := &fleet.Joined{
			Version: a.Version, Boot: a.boot, Meet: a.Meet, Bind: a.Bind, CPUs: runtime.NumCPU(), Means: a.means(ctx),
		}
		if a.Map != nil {
			m, err := a.Map()
			switch {
			case err != nil:
				a.event("map", false, "the node's map: %v", err)
			case len(m) > fleet.MaxBytes-4<<10:
				a.event("map", false, "the node's map has %d bytes; it is left out", len(m))
			default:
				j.Map = m
			}
		}
		text, err := json.Marshal(j)
		if err != nil {
			a.event("map", false, "the node's map: %v", err)
			j.Map = nil
			text, _ = json.Marshal(j)
		}
		if string(text) != sent && a.emit(&fleet.Event{Kind: fleet.KindJoined, Joined: j}) {
			sent = string(text)
		}
	}
	for {
		send()
		select {
		case <-ctx.Done():
			return
		case <-a.again:
			sent = ""
		case <-anew.C:
			sent = ""
			a.ports.resend()
			anew.Reset(a.Resend - a.Resend/10 + rand.N(a.Resend/5+1))
		case <-time.After(varied(a.MapEvery)):
		}
	}
}

// introduce has the node tell anew what it has, where the fleet takes it for another: a second
// agent may have spoken under its name.
func (a *agent) introduce() {
	select {
	case a.again <- struct{}{}:
	default:
	}
}

// heartbeat says that the node lives.
func (a *agent) heartbeat() {
	if !a.bus.Connected() {
		return
	}
	b := &fleet.Beat{
		Node: a.Name, At: time.Now().UTC(), Up: time.Since(a.began).Seconds(), Waiting: a.spool.Len(),
		Last: a.spool.last(), Dropped: a.spool.lost(), Part: a.work.running(),
	}
	b.Receive, b.Send = a.ports.since()
	if data, err := fs.ReadFile(a.Sys, "proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(data), &b.Load) // no figure is 0
	}
	b.RSS, b.CPU = usage()
	b.Jobs = a.jobs()
	if ill := a.ill.Load(); ill != nil {
		b.Health = *ill
	}
	if err := a.bus.Beat(b); err != nil {
		a.event("connection", false, "a beat: %v", err)
	}
}
