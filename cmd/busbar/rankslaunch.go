package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"busbar.dev/engine"
	"busbar.dev/internal/failure"
)

// parcelVariable tells rank 0 that it has a file open at parcelFile for what it leaves behind.
const (
	parcelVariable = "BUSBAR_PARCEL"
	parcelFile     = 3
	maxParcel      = 256 << 20
)

// launch starts n processes of this program as ranks and waits for their end. Rank 0 prints;
// what it leaves behind, keep gets when all is done. Of an elastic job, any rank may become rank
// 0, and some may be lost.
func (f *rankFlags) launch(e *env, n int, j job) error {
	elastic, keep := j.elastic != nil, j.keep
	// The processes die with the thread that started them, so it must be this one.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dir, done, err := meetFolder()
	if err != nil {
		return failure.Cannot(err)
	}
	defer done()
	secret := make([]byte, 16)
	rand.Read(secret)
	ranks := &flock{said: make([]prefixed, n), elastic: elastic}
	stdout := &shared{w: e.stdout}
	in, out, err := os.Pipe()
	if err != nil {
		return failure.Cannot(err)
	}
	defer in.Close()
	defer out.Close()
	for r := range n {
		cmd, err := f.child(e, r, n, filepath.Join(dir, "meet"), hex.EncodeToString(secret))
		if err != nil {
			ranks.kill()
			ranks.wait()
			return failure.Cannot(err)
		}
		cmd.Stderr = &ranks.said[r]
		if elastic {
			cmd.Stdout = stdout
			cmd.ExtraFiles, cmd.Env = []*os.File{out}, append(cmd.Env, parcelVariable+"=1")
		} else if r == 0 {
			cmd.Stdout = e.stdout
			cmd.ExtraFiles, cmd.Env = []*os.File{out}, append(cmd.Env, parcelVariable+"=1")
			if isTerminal(e.stderr) {
				cmd.Stderr = unwrapped(e.stderr)
				// Rows that went round by this process would come into the middle of its progress.
				if e.terminal != nil && isTerminal(e.terminal) {
					cmd.Stdout = e.terminal
				}
			}
		}
		undo := engine.PinThread(seat(r, n, runtime.NumCPU())) // the rank inherits it
		err = cmd.Start()
		undo()
		if err != nil {
			ranks.kill()
			ranks.wait()
			return failure.Cannot(fmt.Errorf("start rank %d: %w", r, err))
		}
		ranks.ranks = append(ranks.ranks, cmd)
	}
	out.Close()
	parcel := make(chan []byte, 1)
	go func() {
		data, _ := io.ReadAll(io.LimitReader(in, maxParcel))
		parcel <- data
	}()
	err = ranks.outlast(e, f.Timeout)
	if j.verbose {
		ranks.showCrashes(e.stderr)
	}
	if err != nil && !errors.Is(err, errWrong) {
		return err
	}
	if data := <-parcel; len(data) > 0 && keep != nil {
		if err := keep(data); err != nil {
			return err
		}
	}
	return err
}

// seat is the processor for a rank. Where ranks are more than processors, neighbours share one:
// left to itself the kernel chooses a processor anew for whoever wakes, which takes a tenth to a
// third longer; docs/peers.md has the figures.
func seat(rank, ranks, processors int) int {
	return rank * min(processors, ranks) / ranks
}

// child is the command of one rank: this one, in the same words, told by its environment
// which rank it is.
func (f *rankFlags) child(e *env, rank, n int, meet, secret string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: self, Args: append([]string{os.Args[0]}, e.args...), SysProcAttr: childAttr()}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "BUSBAR_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	bind := f.Bind
	if bind == "" {
		bind = "127.0.0.1"
	}
	cmd.Env = append(cmd.Env, fmt.Sprintf("BUSBAR_RANK=%d", rank), fmt.Sprintf("BUSBAR_SIZE=%d", n), "BUSBAR_MEET="+meet, "BUSBAR_SECRET="+secret, "BUSBAR_BIND="+bind)
	return cmd, nil
}

// flock is the ranks that this process has started.
type flock struct {
	ranks   []*exec.Cmd
	said    []prefixed
	elastic bool
	hung    map[int]bool // did not end by themselves, and were ended
}

func (f *flock) kill() {
	for _, cmd := range f.ranks {
		cmd.Process.Kill()
	}
}

func (f *flock) wait() {
	for _, cmd := range f.ranks {
		cmd.Wait()
	}
}

// outlast waits until all ranks have ended. When one fails, the others notice within the
// timeout; those that do not are ended.
func (f *flock) outlast(e *env, timeout time.Duration) error {
	type end struct {
		rank int
		err  error
	}
	ends := make(chan end, len(f.ranks))
	for r, cmd := range f.ranks {
		go func() { ends <- end{r, cmd.Wait()} }()
	}
	failed := make([]error, len(f.ranks))
	ended := make([]bool, len(f.ranks))
	f.hung = map[int]bool{}
	var limit <-chan time.Time
	done := e.ctx.Done()
	for left := len(f.ranks); left > 0; {
		select {
		case x := <-ends:
			left--
			failed[x.rank], ended[x.rank] = x.err, true
			if (x.err != nil) != f.elastic && limit == nil { // of an elastic job, the first to end well ends it
				limit = time.After(timeout + 2*time.Second)
			}
		case <-limit:
			for r := range ended {
				f.hung[r] = !ended[r]
			}
			f.kill()
			limit = nil
		case <-done:
			f.kill()
			done = nil
		}
	}
	if e.ctx.Err() != nil {
		return e.ctx.Err()
	}
	if f.elastic {
		return f.survivors(failed)
	}
	return f.verdict(failed)
}

// verdict is the error of ranks that failed: what the survivors say of it, once.
func (f *flock) verdict(failed []error) error {
	var killed, hung []string
	said := ""
	code := 0
	for r, err := range failed {
		var exit *exec.ExitError
		if err == nil {
			continue
		}
		if !errors.As(err, &exit) {
			return failure.Cannot(fmt.Errorf("rank %d: %w", r, err))
		}
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			if f.hung[r] {
				hung = append(hung, fmt.Sprintf("rank %d hung: it neither went on nor ended by itself, and was ended", r))
				continue
			}
			killed = append(killed, fmt.Sprintf("rank %d was ended by signal %d (%v)", r, ws.Signal(), ws.Signal()))
			continue
		}
		if crash := f.said[r].crash(); crash != nil { // which has an exit code that means something else
			killed = append(killed, fmt.Sprintf("rank %d %s", r, crashWords(crash[0])))
			continue
		}
		code = max(code, exit.ExitCode())
		if said == "" {
			said = f.said[r].last()
		}
	}
	switch {
	case len(killed)+len(hung) > 0:
		// What those say who were left comes before what became of the others afterwards.
		if said != "" {
			killed = append(killed, said)
		}
		return failure.Cannot(errors.New(strings.Join(append(killed, hung...), "; ")))
	case code == 0:
		return nil
	case code == exitWrong:
		return errWrong
	case said == "":
		said = "a rank failed"
	}
	if code == exitBad {
		return errors.New(said)
	}
	return failure.Cannot(errors.New(said))
}

// prefixed keeps what a rank says on standard error, within bounds.
type prefixed struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (p *prefixed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.buf.Len() < 1<<16 {
		p.buf.Write(b)
	}
	return len(b), nil
}

// last is the last line, without our name.
func (p *prefixed) last() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(p.buf.String()), "\n")
	return strings.TrimPrefix(lines[len(lines)-1], "busbar: ")
}

// unwrapped is the file under the filter for messages, so that a rank can show its progress.
func unwrapped(w io.Writer) io.Writer {
	if m, ok := w.(messages); ok {
		return m.w
	}
	return w
}
