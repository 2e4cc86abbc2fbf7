package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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
}

// launch starts the agents; each process gets an address of the server.
func (c *crew) launch(keys *bus.Keys, url func() (string, error)) error {
	const per = 10
	for from := 0; from < c.agents; from += per {
		to, err := url()
		if err != nil {
			return err
		}
		p := part{
			Dir: c.dir, From: from, To: min(from+per, c.agents), URL: to,
			Ledger: filepath.Join(c.dir, fmt.Sprintf("ledger%d", from)),
		}
		for i := p.From; i < p.To; i++ {
			if _, err := c.credentials(keys, nodeName(i), ""); err != nil {
				return err
			}
		}
		x := &process{part: p}
		c.nodes = append(c.nodes, x)
		if err := x.start(); err != nil {
			return err
		}
	}
	return nil
}

func (c *crew) credentials(keys *bus.Keys, n fleet.Name, more string) (string, error) {
	creds, _, err := keys.Issuer().Node(n, 0)
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
		news := 0
		bad, err := b.Query(within, bus.Range{}, func(_ uint64, n *fleet.Event) error {
			if news++; n.Node == evilName {
				return nil
			}
			if n.Seq != last[n.Node]+1 {
				wrong = append(wrong, fmt.Errorf("%s: number %d follows %d", n.Node, n.Seq, last[n.Node]))
			}
			last[n.Node] = n.Seq
			if n.Kind == fleet.KindMeasured && n.Measured.Failed == "" {
				results[string(n.Node)+" "+n.Measured.Part]++
			}
			return nil
		})
		wrong = append(wrong, err)
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
