package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"busbar.dev/internal/failure"
	"busbar.dev/lab"
	"busbar.dev/predict"
)

// Run runs a program on one node or on all.
func (c *labExecCmd) Run(e *env) error {
	args := c.Args
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return errors.New("no program; expected busbar lab exec NODE -- PROGRAM ARGUMENTS…")
	}
	l, err := labFolder().Open(c.Name)
	if err != nil {
		return labError(err)
	}
	path, err := findProgram(args[0])
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return failure.Cannot(err)
	}
	one := lab.Program{Node: c.Node, Path: path, Args: args, Env: os.Environ(), Dir: dir, Files: [3]*os.File{os.Stdin, os.Stdout, os.Stderr}}
	if c.Node != "all" {
		if c.Layout != "" {
			return errors.New("-l is for all nodes: busbar lab exec -l 2x2 all -- …")
		}
		if l.State.Plan.NodeByName(c.Node) < 0 {
			return fmt.Errorf("no node %q in the lab; expected all or one of those that `busbar lab status` lists", c.Node)
		}
		return e.runInLab(l, one)
	}
	ranks, err := ranksOf(l.State.Plan, c.Layout)
	if err != nil {
		return err
	}
	port, err := l.Port()
	if err != nil {
		return labError(err)
	}
	code, err := (&crowd{e: e, l: l, ranks: ranks, port: port}).run(one)
	if err != nil {
		return labError(err)
	}
	if code != 0 {
		return exitedWith(code)
	}
	return nil
}

// findProgram finds a program as a shell does; busbar is this one where no other is found.
func findProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil && name == "busbar" {
		return os.Executable()
	}
	if err != nil {
		return "", failure.Cannot(err)
	}
	return filepath.Abs(path)
}

// ranksOf places ranks on nodes in their order.
func ranksOf(p *lab.Plan, layout string) ([]lab.Seat, error) {
	nodes, each := len(p.Nodes), 0
	if layout != "" {
		var err error
		if nodes, each, err = predict.ParseLayout(layout); err != nil {
			return nil, err
		}
		if nodes > len(p.Nodes) || nodes*each > 1024 {
			return nil, fmt.Errorf("-l %s: the lab has %d nodes, and a job at most 1024 ranks", layout, len(p.Nodes))
		}
	}
	seats := p.Seats(nodes, each)
	return seats, p.Holds(seats)
}

// crowd is a job: one program on many places.
type crowd struct {
	e     *env
	l     *lab.Lab
	ranks []lab.Seat
	port  int
	mu    sync.Mutex        // guards open; lines go out whole, very long ones in pieces
	open  map[io.Writer]int // the rank, from 1, whose line has not ended yet
	// stdout takes the place of the standard output of rank 0 where it is set.
	stdout *os.File
	plain  bool // no names before lines
}

// environ is what a rank is told.
func (c *crowd) environ(rank int, secret string) []string {
	p := c.l.State.Plan
	r := c.ranks[rank]
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "BUSBAR_") || strings.HasPrefix(v, "BUSBAR_LAB_") {
			env = append(env, v)
		}
	}
	meet := p.Nodes[c.ranks[0].Node].Name
	if near := c.ranks[0].NICs; len(near) > 0 {
		meet = p.NICs[near[0]].Addr.String()
	}
	if first, _, _ := strings.Cut(p.Bind(c.ranks[0]), ","); net.ParseIP(first) != nil {
		meet = first // rank 0 listens nowhere else
	}
	if p.Inside == lab.Links { // the links between GPUs carry nothing else
		env = append(env, "BUSBAR_TRANSPORT=tcp")
	}
	return append(env,
		fmt.Sprintf("BUSBAR_RANK=%d", rank), fmt.Sprintf("BUSBAR_SIZE=%d", len(c.ranks)), fmt.Sprintf("BUSBAR_LOCAL_RANK=%d", r.Local),
		fmt.Sprintf("BUSBAR_MEET=%s:%d", meet, c.port), "BUSBAR_SECRET="+secret, "BUSBAR_BIND="+p.Bind(r),
		fmt.Sprintf("RANK=%d", rank), fmt.Sprintf("WORLD_SIZE=%d", len(c.ranks)), fmt.Sprintf("LOCAL_RANK=%d", r.Local),
		"MASTER_ADDR="+meet, fmt.Sprintf("MASTER_PORT=%d", c.port),
	)
}

// run starts all ranks and waits for them; the code is the worst.
func (c *crowd) run(one lab.Program) (int, error) {
	ctx, cancel := context.WithCancel(c.e.ctx)
	defer cancel()
	var key [16]byte
	rand.Read(key[:])
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	var copies sync.WaitGroup
	var running []*lab.Running
	var failed error
	for rank := range c.ranks {
		p := one
		p.Node = c.l.State.Plan.Nodes[c.ranks[rank].Node].Name
		p.Env = c.environ(rank, hex.EncodeToString(key[:]))
		out, err1 := c.pipe(&copies, rank, c.e.stdout)
		errs, err2 := c.pipe(&copies, rank, c.e.stderr)
		if failed = errors.Join(err1, err2); failed != nil {
			out.Close() // who copies from them waits for their end; none is no harm
			errs.Close()
			break
		}
		p.Files = [3]*os.File{null, out, errs}
		if rank == 0 && c.stdout != nil {
			p.Files[1] = c.stdout
		}
		r, err := c.l.Exec(ctx, p)
		out.Close()
		errs.Close()
		if err != nil {
			failed = err
			break
		}
		running = append(running, r)
	}
	if failed != nil {
		cancel()
	}
	worst, err := outlast(running, cancel)
	copies.Wait()
	if failed == nil {
		failed = err
	}
	return worst, failed
}

// outlastFor is how long the others may go on when one rank has failed: a little longer
// than it takes our own to notice.
const outlastFor = 15 * time.Second

// outlast waits for the end of all ranks. When one fails, those that do not end by
// themselves are ended.
func outlast(running []*lab.Running, cancel func()) (worst int, failed error) {
	type end struct {
		code int
		err  error
	}
	ends := make(chan end, len(running))
	for _, r := range running {
		go func() {
			code, err := r.Wait()
			ends <- end{code, err}
		}()
	}
	var limit <-chan time.Time
	ended := false
	for range running {
		var x end
		select {
		case x = <-ends:
		case <-limit:
			cancel()
			ended, limit = true, nil
			x = <-ends
		}
		worst = max(worst, x.code)
		if x.err != nil && failed == nil && !ended {
			failed = x.err
		}
		if limit == nil && !ended && (x.code != 0 || x.err != nil) {
			limit = time.After(outlastFor)
		}
	}
	return worst, failed
}

// pipe is a file whose lines go to w behind the name of a rank's node.
func (c *crowd) pipe(copies *sync.WaitGroup, rank int, w io.Writer) (*os.File, error) {
	r, f, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	who := c.l.State.Plan.Nodes[c.ranks[rank].Node].Name
	for i := range c.ranks {
		if i != rank && c.ranks[i].Node == c.ranks[rank].Node {
			who = fmt.Sprintf("%s:%d", who, c.ranks[rank].Local)
			break
		}
	}
	copies.Go(func() {
		defer r.Close()
		b := bufio.NewReaderSize(r, 64<<10)
		for {
			line, err := b.ReadSlice('\n')
			if len(line) > 0 {
				c.piece(w, rank, who, line, errors.Is(err, bufio.ErrBufferFull))
			}
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				return
			}
		}
	})
	return f, nil
}

// piece writes a line of a rank, or a part of it where there is more. Only the beginning has
// the rank's name, unless another rank's line came between.
func (c *crowd) piece(w io.Writer, rank int, who string, b []byte, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[io.Writer]int{}
	}
	whose := c.open[w]
	if whose != 0 && whose != rank+1 {
		w.Write([]byte{'\n'})
	}
	if whose != rank+1 && !c.plain {
		fmt.Fprintf(w, "%s| ", who)
	}
	w.Write(b)
	if b[len(b)-1] != '\n' && !more {
		w.Write([]byte{'\n'})
	}
	delete(c.open, w)
	if more {
		c.open[w] = rank + 1
	}
}
