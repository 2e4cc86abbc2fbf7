package ranks

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"busbar.dev/internal/failure"
	"busbar.dev/internal/osdep"
)

// parentVariable tells a rank that it has a pipe open at parentFile to the process that started
// it, for what it leaves.
const (
	parentVariable = "BUSBAR_PARCEL"
	parentFile     = 3
	maxLeft        = 256 << 20
)

// Exit codes of ranks, which are those of the program that they are.
const (
	exitWrong = 1
	exitBad   = 2
)

// openParent is the pipe to the process that started this one; nil where that was not this
// program.
func openParent() (*os.File, error) {
	word := os.Getenv(parentVariable)
	if word == "" {
		return nil, nil
	}
	if word != "1" || !osdep.IsPipe(parentFile) {
		return nil, fmt.Errorf("%s is %q: it is for ranks that busbar itself starts; unset it", parentVariable, word)
	}
	return os.NewFile(parentFile, "parent"), nil
}

// launch starts n processes of this program as ranks and waits for their end. Rank 0 prints;
// what it leaves, Task.Keep gets when all is done.
func (j *Job) launch(ctx context.Context, p Process, n int, t Task) error {
	// The processes die with the thread that started them, so it must be this one.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dir, done, err := meetFolder()
	if err != nil {
		return failure.Cannot(err)
	}
	defer done()
	in, out, err := os.Pipe()
	if err != nil {
		return failure.Cannot(err)
	}
	defer in.Close()
	defer out.Close()
	children := &children{stderr: make([]transcript, n)}
	if err := j.startAll(p, children, filepath.Join(dir, "meet"), out); err != nil {
		children.kill()
		children.wait()
		return failure.Cannot(err)
	}
	out.Close()
	left := make(chan []byte, 1)
	go func() {
		data, _ := io.ReadAll(io.LimitReader(in, maxLeft))
		left <- data
	}()
	err = children.outlast(ctx, j.Timeout)
	if p.Crash != nil {
		children.reportCrashes(p.Crash)
	}
	if err != nil && !errors.Is(err, ErrWrong) {
		return err
	}
	if data := <-left; len(data) > 0 && t.Keep != nil {
		if err := t.Keep(data); err != nil {
			return err
		}
	}
	return err
}

// startAll starts all ranks.
func (j *Job) startAll(p Process, c *children, meet string, out *os.File) error {
	n := len(c.stderr)
	secret := make([]byte, 16)
	rand.Read(secret)
	for r := range n {
		cmd, err := j.child(p, r, n, meet, hex.EncodeToString(secret))
		if err != nil {
			return err
		}
		cmd.Stderr = &c.stderr[r]
		if r == 0 {
			cmd.ExtraFiles, cmd.Env = []*os.File{out}, append(cmd.Env, parentVariable+"=1")
			switch {
			case p.Messages != nil && p.Screen != nil:
				cmd.Stdout, cmd.Stderr = p.Screen, p.Messages
			case p.Messages != nil:
				cmd.Stdout, cmd.Stderr = p.Stdout, p.Messages
			default:
				cmd.Stdout = p.Stdout
			}
		}
		undo := pinThread(processorOf(r, n, runtime.NumCPU())) // the rank inherits it
		err = cmd.Start()
		undo()
		if err != nil {
			return fmt.Errorf("start rank %d: %w", r, err)
		}
		c.ranks = append(c.ranks, cmd)
	}
	return nil
}

// processorOf is the processor for a rank. Where ranks are more than processors, neighbours share
// one: left to itself the kernel chooses a processor anew for whoever wakes, which takes a tenth to
// a third longer; docs/peers.md has the figures.
func processorOf(rank, ranks, processors int) int {
	return rank * min(processors, ranks) / ranks
}

// child is the command of one rank: this one, with the same arguments, told by its environment
// which rank it is.
func (j *Job) child(p Process, rank, n int, meet, secret string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: self, Args: append([]string{os.Args[0]}, p.Args...), SysProcAttr: childAttr()}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "BUSBAR_") || LibrarySetting(v) {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, fmt.Sprintf("BUSBAR_RANK=%d", rank), fmt.Sprintf("BUSBAR_SIZE=%d", n), "BUSBAR_MEET="+meet,
		"BUSBAR_SECRET="+secret, "BUSBAR_BIND="+cmp.Or(j.Bind, "127.0.0.1"))
	return cmd, nil
}

// children are the ranks that this process has started.
type children struct {
	ranks  []*exec.Cmd
	stderr []transcript
	hung   map[int]bool // did not end by themselves, and were ended
}

func (c *children) kill() {
	for _, cmd := range c.ranks {
		cmd.Process.Kill()
	}
}

func (c *children) wait() {
	for _, cmd := range c.ranks {
		cmd.Wait()
	}
}

// deathGrace is how long the others have to say what they know when a rank is killed or crashes. Its connections closed
// with it, so all that talked to it notice at once; who has yet to meet it never would.
const deathGrace = 5 * time.Second

// outlast waits until all ranks have ended. When one fails, the others notice within the
// timeout; those that do not are ended.
func (c *children) outlast(ctx context.Context, timeout time.Duration) error {
	type end struct {
		rank int
		err  error
	}
	ends := make(chan end, len(c.ranks))
	for r, cmd := range c.ranks {
		go func() { ends <- end{r, cmd.Wait()} }()
	}
	failed := make([]error, len(c.ranks))
	ended := make([]bool, len(c.ranks))
	c.hung = map[int]bool{}
	var limit <-chan time.Time
	done := ctx.Done()
	for left := len(c.ranks); left > 0; {
		select {
		case x := <-ends:
			left--
			failed[x.rank], ended[x.rank] = x.err, true
			if x.err != nil && limit == nil {
				wait := timeout + 2*time.Second
				if c.death(x.rank, x.err) != "" {
					wait = min(wait, deathGrace)
				}
				limit = time.After(wait)
			}
		case <-limit:
			for r := range ended {
				c.hung[r] = !ended[r]
			}
			c.kill()
			limit = nil
		case <-done:
			c.kill()
			done = nil
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return c.verdict(failed)
}

// verdict is the error of ranks that failed: what the survivors say of it, once.
func (c *children) verdict(failed []error) error {
	var killed, hung []string
	reason := ""
	code := 0
	for r, err := range failed {
		var exit *exec.ExitError
		if err == nil {
			continue
		}
		if !errors.As(err, &exit) {
			return failure.Cannot(fmt.Errorf("rank %d: %w", r, err))
		}
		switch death := c.death(r, err); {
		case death != "" && c.hung[r]:
			hung = append(hung, fmt.Sprintf("rank %d hung: it neither went on nor ended by itself, and was ended", r))
		case death != "":
			killed = append(killed, fmt.Sprintf("rank %d %s", r, death))
		default:
			code = max(code, exit.ExitCode())
			reason = cmp.Or(reason, c.stderr[r].last())
		}
	}
	switch {
	case len(killed)+len(hung) > 0:
		// What those say who were left comes before what became of the others afterwards. Who waits for a rank that is
		// gone is not to blame.
		if len(killed) > 0 {
			hung = nil
		}
		if reason != "" {
			killed = append(killed, reason)
		}
		return failure.Cannot(errors.New(strings.Join(append(killed, hung...), "; ")))
	case code == 0:
		return nil
	case code == exitWrong:
		return ErrWrong
	case reason == "":
		reason = "a rank failed"
	}
	if code == exitBad {
		return errors.New(reason)
	}
	return failure.Cannot(errors.New(reason))
}

// death is how a rank was ended by a signal or crashed; "" where it ended by itself.
func (c *children) death(rank int, err error) string {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return ""
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return fmt.Sprintf("was ended by signal %d (%[1]v)", ws.Signal())
	}
	if crash := c.stderr[rank].crash(); crash != nil { // which has an exit code that means something else
		return crashCause(crash[0])
	}
	return ""
}

// LibrarySetting tells a variable that says where a GPU's libraries are: those of the job are the ranks' own.
func LibrarySetting(v string) bool {
	name, _, _ := strings.Cut(v, "=")
	return slices.Contains([]string{
		"BUSBAR_CUDA", "BUSBAR_NCCL", "BUSBAR_NVML", "BUSBAR_CUBLASLT", "BUSBAR_HIP", "BUSBAR_GPU_VENDOR",
	}, name)
}
