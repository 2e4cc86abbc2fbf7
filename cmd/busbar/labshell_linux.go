package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"busbar.dev/internal/failure"
	"busbar.dev/lab"
)

// Run opens a shell on a node.
func (c *labShellCmd) Run(e *env) error {
	l, err := labFolder().Open(c.Name)
	if err != nil {
		return labError(err)
	}
	if l.State.Plan.NodeByName(c.Node) < 0 {
		return fmt.Errorf("no node %q in the lab; `busbar lab status` lists them", c.Node)
	}
	path, err := findProgram(cmp.Or(os.Getenv("SHELL"), "/bin/sh"))
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return failure.Cannot(err)
	}
	p := lab.Program{Node: c.Node, Path: path, Args: []string{path}, Env: append(os.Environ(), "PS1="+c.Node+"$ "), Dir: dir}
	if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stdout.Fd())) {
		p.Files = [3]*os.File{os.Stdin, os.Stdout, os.Stderr}
		return e.runInLab(l, p)
	}
	return e.terminalShell(l, p)
}

// runInLab runs a program on a node and takes over its exit code.
func (e *env) runInLab(l *lab.Lab, p lab.Program) error {
	r, err := l.Exec(e.ctx, p)
	if err != nil {
		return labError(err)
	}
	code, err := r.Wait()
	if err != nil {
		return labError(err)
	}
	if code != 0 {
		return exitedWith(code)
	}
	return nil
}

// terminalShell gives the shell a terminal of its own, joined to ours: a terminal belongs
// to one session, and programs of a lab are not of this one.
func (e *env) terminalShell(l *lab.Lab, p lab.Program) error {
	master, slave, err := openTerminal()
	if err != nil {
		return failure.Cannot(err)
	}
	defer master.Close()
	resize := func() {
		if w, err := unix.IoctlGetWinsize(int(os.Stdin.Fd()), unix.TIOCGWINSZ); err == nil {
			unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, w)
		}
	}
	resize()
	sizes := make(chan os.Signal, 1)
	signal.Notify(sizes, unix.SIGWINCH)
	defer signal.Stop(sizes)
	go func() {
		for range sizes {
			resize()
		}
	}()
	p.Files, p.Terminal = [3]*os.File{slave, slave, slave}, true
	r, err := l.Exec(e.ctx, p)
	slave.Close()
	if err != nil {
		return labError(err)
	}
	old, err := term.MakeRaw(int(os.Stdin.Fd()))
	if err == nil {
		defer term.Restore(int(os.Stdin.Fd()), old)
	}
	go io.Copy(master, os.Stdin)
	shown := make(chan struct{})
	go func() {
		io.Copy(os.Stdout, master)
		close(shown)
	}()
	code, err := r.Wait()
	<-shown
	if err != nil {
		return labError(err)
	}
	if code != 0 {
		return exitedWith(code)
	}
	return nil
}

// openTerminal makes a new terminal.
func openTerminal() (master, slave *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("a terminal: %w", err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		unix.Close(fd)
		return nil, nil, fmt.Errorf("a terminal: %w", err)
	}
	return os.NewFile(uintptr(fd), "terminal"), slave, nil
}
