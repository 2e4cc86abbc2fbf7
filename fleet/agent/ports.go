package agent

import (
	"io/fs"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/input/sysfs"
	"busbar.dev/unit"
)

// portWatch looks at the node's ports again and again.
type portWatch struct {
	sys      fs.FS
	measured string // the interface that measurements use, "" unknown

	mu    sync.Mutex
	links map[string]fleet.Link // as told
	seen  map[string]map[string]uint64
	last  sample

	looks int // of look alone
}

// resend has the next look tell everything, as the first did.
func (w *portWatch) resend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.links, w.seen = nil, nil
}

// sample is how much the node had carried at a time.
type sample struct {
	at             time.Time
	received, sent uint64
}

// interfaceOf is the interface that has the address at which this node is met.
func interfaceOf(meet string) string {
	at, _ := place(meet) // it was checked
	all, _ := net.Interfaces()
	for _, i := range all {
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(at.Addr().AsSlice()) {
				return i.Name
			}
		}
	}
	return ""
}

// look reads the ports and says what has changed: links that went up or down, counters that
// moved, and everything at the first time.
func (a *agent) look() {
	ports, err := sysfs.Ports(a.Sys)
	if err != nil {
		a.event("ports", false, "%v", err)
		return
	}
	w := a.ports
	ports = slices.DeleteFunc(ports, func(p sysfs.PortState) bool { return !p.Hardware && p.Name != w.measured })
	a.addDrivers(ports) // which may take its time, and beats must not wait for it
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == nil {
		w.seen, w.links = map[string]map[string]uint64{}, map[string]fleet.Link{}
	}
	moved := map[string]map[string]uint64{}
	for _, p := range ports {
		l := fleet.Link{Port: p.Name, Up: p.Up, Rate: p.Rate, State: p.State}
		if l != w.links[p.Name] && a.emit(&fleet.Event{Kind: fleet.KindLink, Link: &l}) {
			w.links[p.Name] = l
		}
		maps.DeleteFunc(p.Counters, func(name string, v uint64) bool {
			was, told := w.seen[p.Name][name]
			return told && was == v
		})
		if len(p.Counters) > 0 {
			moved[p.Name] = p.Counters
		}
	}
	if len(moved) == 0 ||
		!a.emit(&fleet.Event{Kind: fleet.KindCounters, Counters: &fleet.Counters{Boot: a.boot, Values: moved}}) {
		return // what was not kept has moved at the next time too
	}
	for port, m := range moved {
		if w.seen[port] == nil {
			w.seen[port] = map[string]uint64{}
		}
		maps.Copy(w.seen[port], m)
	}
}

// carried is what the node has received and sent: the measured interface, and every RDMA port,
// whose traffic passes the interface by.
func (w *portWatch) carried() sample {
	s := sample{at: time.Now()}
	ports, err := sysfs.Ports(w.sys)
	if err != nil {
		return s
	}
	for _, p := range ports {
		if p.RDMA || p.Name == w.measured {
			s.received += p.Received
			s.sent += p.Sent
		}
	}
	return s
}

// between is the traffic between two samples. Counters that began anew count as none.
func between(a, b sample) (receive, send unit.Rate) {
	d := b.at.Sub(a.at).Seconds()
	if d <= 0 || a.at.IsZero() {
		return 0, 0
	}
	if b.received >= a.received {
		receive = unit.Rate(float64(b.received-a.received) / d)
	}
	if b.sent >= a.sent {
		send = unit.Rate(float64(b.sent-a.sent) / d)
	}
	return receive, send
}

// since is the traffic since the last call.
func (w *portWatch) since() (receive, send unit.Rate) {
	now := w.carried()
	w.mu.Lock()
	defer w.mu.Unlock()
	receive, send = between(w.last, now)
	w.last = now
	return receive, send
}

// now is the traffic of this moment.
func (w *portWatch) now(d time.Duration) unit.Rate {
	a := w.carried()
	time.Sleep(d)
	receive, send := between(a, w.carried())
	return max(receive, send)
}
