package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
)

// crew is agents, ten to a process, who write down what they have said.
type crew struct {
	agents int
	length time.Duration
	out    io.Writer
	dir    string
	nodes  []*process

	proxies     []*proxy // one a process, to the servers
	kills, cuts atomic.Int64
	disturbed   sync.Map // when the process of a node was last killed, or its line cut, by the process's number
}

// launch starts the agents. Each process reaches the servers through a proxy of its own, which can be cut.
func (c *crew) launch(keys *bus.Keys, servers []string) error {
	const per = 10
	for from := 0; from < c.agents; from += per {
		x, err := newProxy(servers)
		if err != nil {
			return err
		}
		c.proxies = append(c.proxies, x)
		p := part{
			Dir: c.dir, From: from, To: min(from+per, c.agents), URL: x.url(),
			Ledger: filepath.Join(c.dir, fmt.Sprintf("ledger%d", from)),
		}
		for i := p.From; i < p.To; i++ {
			if _, err := c.credentials(keys, nodeName(i), ""); err != nil {
				return err
			}
		}
		agents := &process{part: p}
		c.nodes = append(c.nodes, agents)
		if err := agents.start(); err != nil {
			return err
		}
	}
	return nil
}

func (c *crew) credentials(keys *bus.Keys, n fleet.Name, more string) (string, error) {
	creds, _, err := keys.Issue(n, 0)
	if err != nil {
		return "", err
	}
	file := filepath.Join(c.dir, string(n)+more+".creds")
	return file, os.WriteFile(file, creds, 0o600)
}

func (c *crew) end(sig syscall.Signal) {
	for _, p := range c.nodes {
		p.end(sig)
	}
}

// check holds the store against what agents have written down: every result once, every number after the one before.
// An agent writes down what its spool has, which the store has a moment later.
func (c *crew) check(ctx context.Context, b *bus.Bus) error {
	return until(patience, func() error {
		results := map[string]int{}
		last := map[fleet.Name]uint64{}
		var wrong []error
		within, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		news, bad, read := 0, 0, false
		err := b.Follow(within, bus.Following{CaughtUp: func(uint64) { read = true; cancel() }, Each: func(e bus.Entry) {
			n := e.Event
			if news++; n == nil {
				bad++
			}
			if n == nil || n.Node == evilName {
				return
			}
			if n.Seq != last[n.Node]+1 {
				wrong = append(wrong, fmt.Errorf("%s: number %d follows %d", n.Node, n.Seq, last[n.Node]))
			}
			last[n.Node] = n.Seq
			if n.Kind == fleet.KindMeasured && n.Measured.Failed == "" {
				results[string(n.Node)+" "+n.Measured.Part]++
			}
		}})
		if !read {
			wrong = append(wrong, err)
		}
		written := 0
		for _, p := range c.nodes {
			text, _ := os.ReadFile(p.part.Ledger) // who measured nothing has none
			for line := range strings.Lines(string(text)) {
				written++
				if n := results[strings.TrimSpace(line)]; n != 1 {
					wrong = append(wrong, fmt.Errorf("%s: said, and stored %d times", strings.TrimSpace(line), n))
				}
			}
		}
		if written == 0 {
			wrong = append(wrong, errors.New("nothing was measured"))
		}
		if err := errors.Join(wrong[:min(len(wrong), 20)]...); err != nil {
			return err
		}
		fmt.Fprintf(c.out, "store: %d events, %d unreadable; %d results written down by agents, each stored once; numbers "+
			"without gaps\n", news, bad, written)
		return nil
	})
}

// pause waits about so long, less in a short run; false when the time is over.
func (c *crew) pause(ctx context.Context, d time.Duration) bool {
	d = min(d, c.length/8)
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d/2 + rand.N(d)):
		return ctx.Err() == nil
	}
}

// breakProcesses kills one and starts it again, whatever happens to the context, one after the other: two servers at
// once would be more than a cluster promises. What a server had acknowledged must be there.
func (c *crew) breakProcesses(ctx context.Context, list []*process, often time.Duration) {
	for c.pause(ctx, often) {
		p := list[rand.IntN(len(list))]
		c.disturb(slices.Index(c.nodes, p))
		p.end(syscall.SIGKILL)
		c.kills.Add(1)
		c.pause(ctx, 2*time.Second)
		c.disturb(slices.Index(c.nodes, p))
		if err := p.start(); err != nil {
			fmt.Fprintln(os.Stderr, "soak:", err)
		}
	}
}

// breakLines cuts connections, loudly or so that nobody is told.
func (c *crew) breakLines(ctx context.Context) {
	for c.pause(ctx, 4*time.Second) {
		c.cuts.Add(1)
		i := rand.IntN(len(c.proxies))
		c.disturb(i)
		c.proxies[i].cut(rand.IntN(2) == 0, rand.N(min(5*time.Second, c.length/8))+time.Millisecond)
		c.disturb(i)
	}
}

// disturb notes that the nodes of a process go now, or are back.
func (c *crew) disturb(process int) { c.disturbed.Store(process, time.Now()) }

// recovering is how long a node may take to be there again after its process was killed or its line was cut: a line of
// which nobody is told is noticed by its pings.
const recovering = time.Minute

// away tells whether a node may not have answered since a time because it was killed or cut off.
func (c *crew) away(n fleet.Name, since time.Time) bool {
	for i, p := range c.nodes {
		for k := p.part.From; k < p.part.To; k++ {
			at, known := c.disturbed.Load(i)
			if nodeName(k) == n {
				return known && at.(time.Time).Add(recovering).After(since)
			}
		}
	}
	return false
}

// patience is when a wait has failed: long, for machines that test may be busy.
const patience = 5 * time.Minute

// until tries until there is no error.
func until(most time.Duration, f func() error) (err error) {
	for end := time.Now().Add(most); ; time.Sleep(50 * time.Millisecond) {
		if err = f(); err == nil || time.Now().After(end) {
			return err
		}
	}
}

// process is something that is killed and started again.
type process struct {
	part part

	mu  sync.Mutex
	cmd *exec.Cmd
	cpu time.Duration // of those that ended
	rss int64         // the most that one of them had, in KiB
}

func (p *process) start() error {
	text, err := json.Marshal(p.part)
	if err != nil {
		return err
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.mu.Lock()
	p.cmd = cmd
	p.mu.Unlock()
	if s := bufio.NewScanner(out); !s.Scan() || s.Text() != "ready" {
		return errors.New("a process did not start: " + s.Text())
	}
	return nil
}

// end kills, or asks to end, and waits.
func (p *process) end(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(sig)
	late := time.AfterFunc(10*time.Second, func() { _ = p.cmd.Process.Kill() })
	_ = p.cmd.Wait()
	late.Stop()
	p.cpu += p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	if u, ok := p.cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		p.rss = max(p.rss, u.Maxrss)
	}
	p.cmd = nil
}
