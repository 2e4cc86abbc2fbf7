package measure

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"busbar.dev/engine/bench"
	"busbar.dev/engine/device"
)

// fakeHost is busbar-gpu on a host of a test, over pipes.
type fakeHost struct {
	io.Reader
	io.WriteCloser
	once sync.Once
	done chan struct{}
}

func (f *fakeHost) End(time.Duration) {
	f.once.Do(func() {
		f.Close()
		close(f.done)
	})
}
func (f *fakeHost) Why() error { return errors.New("ended") }

// fakeHosts starts workers by host; slow and hung hosts are so in pairs, and dead ones cannot be reached.
type fakeHosts struct {
	mu      sync.Mutex
	started map[string]int
	hung    map[string]bool
	slow    map[string]bool
	dead    map[string]bool
}

func (f *fakeHosts) start(args, _ []string) (device.Process, error) {
	host := args[len(args)-4] // ssh HOST env busbar-gpu work
	f.mu.Lock()
	f.started[host]++
	f.mu.Unlock()
	if f.dead[host] {
		return nil, errors.New("ssh: connect to host " + host + " port 22: No route to host")
	}
	in, write := io.Pipe()
	read, out := io.Pipe()
	p := &fakeHost{Reader: read, WriteCloser: write, done: make(chan struct{})}
	go f.serve(host, in, out, p.done)
	return p, nil
}

func (f *fakeHosts) serve(host string, in io.Reader, out *io.PipeWriter, done chan struct{}) {
	defer out.Close()
	answer := func(a device.Answer) { _, _ = out.Write(device.Line(a)) }
	answer(device.Answer{Hello: &device.Hello{Program: "fake", Host: host, PID: 1}})
	scan := bufio.NewScanner(in)
	for scan.Scan() {
		var q device.Request
		if json.Unmarshal(scan.Bytes(), &q) != nil {
			return
		}
		a := device.Answer{ID: q.ID}
		switch q.Do {
		case device.GPUs:
			a.Count = 1
		case device.Open:
			a.Device = &device.Device{Name: "NVIDIA H100 80GB HBM3", NCCL: "2.28.9"}
		case device.Key:
			a.Key = "00"
		case device.Health:
			a.Health = []device.State{{Name: "NVIDIA H100 80GB HBM3"}}
		case device.Pair:
			if f.hung[host] {
				<-done
				return
			}
			us := 1000.0
			if f.slow[host] {
				us = 2500
			}
			a.Timing = &device.Timing{Micros: us, Wrong: new(int64)}
		}
		answer(a)
	}
}

// TestCheckHosts: through ssh as over TCP, a host that hangs in pairs, is slow or cannot be reached is named, and the
// others are checked to the end.
func TestCheckHosts(t *testing.T) {
	f := &fakeHosts{
		started: map[string]int{}, hung: map[string]bool{"h2": true}, slow: map[string]bool{"h5": true},
		dead: map[string]bool{"h7": true},
	}
	c := &Checker{
		With: Programs{Worker: f.start}, Hosts: strings.Split("h0 h1 h2 h3 h4 h5 h6 h7", " "), SSH: "ssh", NoLoad: true,
		Plan: bench.PairPlan{Small: 8, Large: 1 << 20, Iters: 1}, Show: func(string) {}, first: 2 * time.Second,
	}
	doc, err := c.OverSSH(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"h2": "unhealthy", "h5": "unhealthy", "h7": "unreachable"}
	for _, n := range doc.Nodes {
		v := want[n.Host]
		if v == "" {
			v = "incomplete" // their GPUs were not loaded
		}
		if n.Verdict != v {
			t.Errorf("%+v; expected %s", n, v)
		}
	}
	if doc.By != "nccl" || doc.Hostlist != "h[2,5,7]" {
		t.Errorf("%+v", doc)
	}
	// one asks how many GPUs there are; both of a pair that hung are started anew
	if f.started["h2"] < 3 || f.started["h4"] < 3 {
		t.Errorf("started %v", f.started)
	}
	// Nobody can be reached: that is no verdict.
	f = &fakeHosts{started: map[string]int{}, dead: map[string]bool{"h0": true, "h1": true}}
	c.With.Worker, c.Hosts = f.start, []string{"h0", "h1"}
	if _, err := c.OverSSH(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "h0: ssh: connect to host h0 port 22: No route to host") {
		t.Errorf("%v", err)
	}
}
