package lab

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
	"strings"
	"sync"
	"time"

	"busbar.dev/internal/failure"
	"busbar.dev/predict"
)

// Program is what to run in a node.
type Program struct {
	Node     string
	Path     string
	Args     []string // the first is the program's name
	Env      []string
	Dir      string
	Files    [3]*os.File // standard input, output and error
	Terminal bool        // the first is a terminal that becomes its own
}

// Run runs a program in a node and waits for its exit code.
func (l *Lab) Run(ctx context.Context, p Program) (code int, err error) {
	r, err := l.Exec(ctx, p)
	if err != nil {
		return 0, err
	}
	return r.Wait()
}

// Ranks places the ranks of a layout (NODESxPROCESSES) on the nodes in their order; without a layout as the lab was
// made.
func (p *Plan) Ranks(layout string) ([]Slot, error) {
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
	slots := p.Slots(nodes, each)
	return slots, p.checkSlots(slots)
}

// Job is one program that runs once for each rank.
type Job struct {
	Lab   *Lab
	Slots []Slot // by rank
	// Stdout and Stderr get the lines of all ranks, each behind the name of its node.
	Stdout, Stderr io.Writer

	port int
	mu   sync.Mutex        // guards open; lines are written whole, very long ones in parts
	open map[io.Writer]int // the rank, from 1, whose line has not ended yet
}

// Run starts the program for all ranks and waits for them; the code is the greatest of theirs. The environment of a
// rank is the program's without BUSBAR_ variables, and what tells the rank who it is and where to meet the others.
func (j *Job) Run(ctx context.Context, one Program) (code int, err error) {
	if j.port, err = j.Lab.Port(); err != nil {
		return 0, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, failure.Cannot(err)
	}
	defer null.Close()
	one.Files[0] = null
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var copies sync.WaitGroup
	running, failed := j.start(ctx, one, &copies)
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

// start starts all ranks, or those before the first that cannot be started.
func (j *Job) start(ctx context.Context, one Program, copies *sync.WaitGroup) (running []*Running, err error) {
	var secret [16]byte
	rand.Read(secret[:])
	for rank := range j.Slots {
		p := one
		p.Node = j.Lab.State.Plan.Nodes[j.Slots[rank].Node].Name
		p.Env = j.environ(one.Env, rank, hex.EncodeToString(secret[:]))
		out, err1 := j.pipe(copies, rank, j.Stdout)
		errs, err2 := j.pipe(copies, rank, j.Stderr)
		if err := errors.Join(err1, err2); err != nil {
			out.Close() // the goroutine that copies from it waits for its end; nil is allowed
			errs.Close()
			return running, failure.Cannot(err)
		}
		p.Files[1], p.Files[2] = out, errs
		r, err := j.Lab.Exec(ctx, p)
		out.Close()
		errs.Close()
		if err != nil {
			return running, err
		}
		running = append(running, r)
	}
	return running, nil
}

// environ is the environment of a rank.
func (j *Job) environ(base []string, rank int, secret string) []string {
	p := j.Lab.State.Plan
	slot, first := j.Slots[rank], j.Slots[0]
	var env []string
	for _, v := range base {
		if !strings.HasPrefix(v, "BUSBAR_") || strings.HasPrefix(v, "BUSBAR_LAB_") {
			env = append(env, v)
		}
	}
	meet := p.Nodes[first.Node].Name
	if len(first.NICs) > 0 {
		meet = p.NICs[first.NICs[0]].Addr.String()
	}
	if addr, _, _ := strings.Cut(p.Bind(first), ","); net.ParseIP(addr) != nil {
		meet = addr // rank 0 listens nowhere else
	}
	if p.Inside == Links { // the links between GPUs carry nothing else
		env = append(env, "BUSBAR_TRANSPORT=tcp")
	}
	return append(env,
		fmt.Sprintf("BUSBAR_RANK=%d", rank), fmt.Sprintf("BUSBAR_SIZE=%d", len(j.Slots)),
		fmt.Sprintf("BUSBAR_LOCAL_RANK=%d", slot.Local),
		fmt.Sprintf("BUSBAR_MEET=%s:%d", meet, j.port), "BUSBAR_SECRET="+secret, "BUSBAR_BIND="+p.Bind(slot),
		fmt.Sprintf("RANK=%d", rank), fmt.Sprintf("WORLD_SIZE=%d", len(j.Slots)), fmt.Sprintf("LOCAL_RANK=%d", slot.Local),
		"BUSBAR_HOSTS="+j.hosts(), "MASTER_ADDR="+meet, fmt.Sprintf("MASTER_PORT=%d", j.port),
	)
}

// hosts names the nodes of all ranks.
func (j *Job) hosts() string {
	names := make([]string, len(j.Slots))
	for r, s := range j.Slots {
		names[r] = j.Lab.State.Plan.Nodes[s.Node].Name
	}
	return strings.Join(names, ",")
}

// grace is how long the other ranks may go on when one has failed: a little longer than busbar's own take to notice.
const grace = 15 * time.Second

// outlast waits for the end of all ranks. When one fails, those that do not end by themselves are ended.
func outlast(running []*Running, cancel func()) (worst int, failed error) {
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
			limit = time.After(grace)
		}
	}
	return worst, failed
}

// pipe is a file whose lines go to w behind the name of a rank's node.
func (j *Job) pipe(copies *sync.WaitGroup, rank int, w io.Writer) (*os.File, error) {
	r, f, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	name := j.name(rank)
	copies.Go(func() {
		defer r.Close()
		b := bufio.NewReaderSize(r, 64<<10)
		for {
			line, err := b.ReadSlice('\n')
			if len(line) > 0 {
				j.write(w, rank, name, line, errors.Is(err, bufio.ErrBufferFull))
			}
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				return
			}
		}
	})
	return f, nil
}

// name is what precedes the lines of a rank: its node, and its number there where the node has several.
func (j *Job) name(rank int) string {
	slot := j.Slots[rank]
	name := j.Lab.State.Plan.Nodes[slot.Node].Name
	for i := range j.Slots {
		if i != rank && j.Slots[i].Node == slot.Node {
			return fmt.Sprintf("%s:%d", name, slot.Local)
		}
	}
	return name
}

// write writes a line of a rank, or a part of it where there is more. Only the beginning has
// the rank's name, unless another rank's line came between.
func (j *Job) write(w io.Writer, rank int, name string, b []byte, more bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.open == nil {
		j.open = map[io.Writer]int{}
	}
	last := j.open[w]
	if last != 0 && last != rank+1 {
		w.Write([]byte{'\n'})
	}
	if last != rank+1 {
		fmt.Fprintf(w, "%s| ", name)
	}
	w.Write(b)
	if b[len(b)-1] != '\n' && !more {
		w.Write([]byte{'\n'})
	}
	delete(j.open, w)
	if more {
		j.open[w] = rank + 1
	}
}
