package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"busbar.dev/internal/osdep"
)

// Lab is one that is up, as its users reach it.
type Lab struct {
	folder Folder
	State  *State
}

// Open finds a lab that is up. An empty name is the only one there is.
func (f Folder) Open(name string) (l *Lab, err error) {
	defer mark(&err)
	if name == "" {
		if name, err = f.only(); err != nil {
			return nil, err
		}
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	if err := f.own(name); err != nil {
		return nil, err
	}
	s, err := f.read(name)
	if errors.Is(err, ErrNone) {
		return nil, fmt.Errorf("%w: %s; `busbar lab up CLUSTER` makes one", ErrNone, name)
	}
	if err != nil {
		return nil, err
	}
	l = &Lab{folder: f, State: s}
	s.Faults, err = l.askFaults(request{Do: "status"})
	return l, err
}

// only is the name of the only lab.
func (f Folder) only() (string, error) {
	names, err := f.Names()
	if err != nil {
		return "", err
	}
	var up []string
	for _, n := range names {
		if _, err := os.Stat(f.Path(n, stateFile)); err == nil {
			up = append(up, n)
		}
	}
	switch len(up) {
	case 1:
		return up[0], nil
	case 0:
		return "", fmt.Errorf("%w; `busbar lab up CLUSTER` makes one", ErrNone)
	}
	return "", &RequestError{fmt.Sprintf("%d labs are up (%s); say which with --name", len(up), strings.Join(up, ", "))}
}

// dial reaches the holder.
func (l *Lab) dial() (*net.UnixConn, error) {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: l.folder.Path(l.State.Name, socketFile), Net: "unix"})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("%w: %s was, and its holder has died; `busbar lab down` removes what is left of it", ErrNone,
			l.State.Name)
	}
	if err != nil {
		return nil, err
	}
	if err := osdep.OwnPeer(c); err != nil {
		c.Close()
		return nil, fmt.Errorf("the socket of the lab %s: %w", l.State.Name, err)
	}
	return c, nil
}

// ask sends a request and waits for its answer.
func (l *Lab) ask(r request) (*answer, error) {
	c, err := l.dial()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	if err := send(c, r); err != nil {
		return nil, err
	}
	return readAnswer(c)
}

func readAnswer(c *net.UnixConn) (*answer, error) {
	var a answer
	if err := receive(c, &a); err != nil {
		return nil, fmt.Errorf("the lab's holder does not answer: %w", err)
	}
	if a.Bad {
		return nil, &RequestError{a.Error}
	}
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	return &a, nil
}

// Fault puts a fault in place and returns all that are.
func (l *Lab) Fault(f Fault) ([]Fault, error) {
	return l.askFaults(request{Do: "fault", Fault: f})
}

// Repair ends the faults of a place, or all for "", and returns what is left.
func (l *Lab) Repair(what string) ([]Fault, error) {
	return l.askFaults(request{Do: "heal", What: what})
}

// askFaults sends a request whose answer is the faults that are in place.
func (l *Lab) askFaults(r request) ([]Fault, error) {
	a, err := l.ask(r)
	if err != nil {
		return nil, marked(err)
	}
	return append([]Fault{}, a.Faults...), nil
}

// Port is one at which the ranks of a new job can meet.
func (l *Lab) Port() (int, error) {
	a, err := l.ask(request{Do: "port"})
	if err != nil {
		return 0, marked(err)
	}
	return a.Port, nil
}

// Running is a program in a node.
type Running struct {
	c    *net.UnixConn
	mu   sync.Mutex
	code int
	err  error
	done chan struct{}
}

// killDelay is what a program has to end by itself before it is ended.
const killDelay = 150 * time.Millisecond

// Exec starts a program in a node. When the context ends, it is ended too, with
// everything in its process group.
func (l *Lab) Exec(ctx context.Context, p Program) (r *Running, err error) {
	defer mark(&err)
	c, err := l.dial()
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(request{
		Do: "exec", Node: p.Node, Path: p.Path, Args: p.Args, Env: p.Env, Dir: p.Dir, Terminal: p.Terminal,
	})
	if err == nil {
		var fds []int
		for _, f := range p.Files {
			fds = append(fds, int(f.Fd()))
		}
		_, _, err = c.WriteMsgUnix(b[:1], unix.UnixRights(fds...), nil)
	}
	if err == nil {
		_, err = c.Write(b[1:])
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	r = &Running{c: c, done: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() {
		r.end()
		time.Sleep(killDelay)
		c.Close()
	})
	go func() {
		defer close(r.done)
		a, err := readAnswer(c)
		stop()
		if err != nil {
			r.err = err
			if ctx.Err() != nil {
				r.err = context.Cause(ctx)
			}
		} else {
			r.code = a.Code
		}
		c.Close()
	}()
	return r, nil
}

// end asks the program's process group to end.
func (r *Running) end() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return send(r.c, request{Do: "end"})
}

// Wait is the program's exit code; 128 and more are signals that ended it.
func (r *Running) Wait() (int, error) {
	<-r.done
	return r.code, marked(r.err)
}

// Down ends a lab and everything in it, whatever state it is in. It is no error that
// there is none.
func (f Folder) Down(name string) (ended bool, err error) {
	defer mark(&err)
	if err := checkName(name); err != nil {
		return false, err
	}
	if _, err := os.Stat(f.Path(name)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err := f.own(name); err != nil {
		return false, err
	}
	s, err := f.read(name)
	if err != nil && !errors.Is(err, ErrNone) {
		s, err = &State{Name: name}, nil // the holder answers, whatever became of its files
	}
	if err == nil {
		l := &Lab{folder: f, State: s}
		if _, e := l.ask(request{Do: "down"}); e != nil {
			f.kill(name, s.Pid)
		}
	}
	ended, err = f.waitGone(name)
	if !ended && err == nil && s != nil {
		f.kill(name, s.Pid)
		ended, err = f.waitGone(name)
	}
	if !ended && err == nil {
		err = fmt.Errorf("the holder of lab %s does not end; its process is named in %s", name, f.Path(name, stateFile))
	}
	return ended, err
}

// kill ends a holder that does not answer, if the lock shows that it lives.
func (f Folder) kill(name string, pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if l, err := f.tryLock(name); l != nil || !errors.Is(err, errHeld) {
		if l != nil {
			l.Close()
		}
		return
	}
	unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
}
