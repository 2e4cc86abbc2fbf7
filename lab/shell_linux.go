package lab

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"busbar.dev/internal/failure"
)

// Shell runs a program on a node and waits for its exit code. Where its input and output are a terminal, the program
// has a terminal of its own that is joined to it: a terminal belongs to one session, and programs of a lab are of
// another.
func (l *Lab) Shell(ctx context.Context, p Program) (int, error) {
	stdin, stdout := p.Files[0], p.Files[1]
	if !term.IsTerminal(int(stdin.Fd())) || !term.IsTerminal(int(stdout.Fd())) {
		return l.Run(ctx, p)
	}
	master, slave, err := OpenTerminal()
	if err != nil {
		return 0, failure.Cannot(err)
	}
	defer master.Close()
	stop := followSize(stdin, master)
	defer stop()
	p.Files, p.Terminal = [3]*os.File{slave, slave, slave}, true
	r, err := l.Exec(ctx, p)
	slave.Close()
	if err != nil {
		return 0, err
	}
	if old, err := term.MakeRaw(int(stdin.Fd())); err == nil {
		defer term.Restore(int(stdin.Fd()), old)
	}
	go io.Copy(master, stdin)
	shown := make(chan struct{})
	go func() {
		io.Copy(stdout, master)
		close(shown)
	}()
	code, err := r.Wait()
	<-shown
	return code, err
}

// followSize gives a terminal the size of another one, now and whenever that changes, until stop is called.
func followSize(from, to *os.File) (stop func()) {
	resize := func() {
		if w, err := unix.IoctlGetWinsize(int(from.Fd()), unix.TIOCGWINSZ); err == nil {
			unix.IoctlSetWinsize(int(to.Fd()), unix.TIOCSWINSZ, w)
		}
	}
	resize()
	sizes := make(chan os.Signal, 1)
	signal.Notify(sizes, unix.SIGWINCH)
	go func() {
		for range sizes {
			resize()
		}
	}()
	return func() { signal.Stop(sizes) }
}

// OpenTerminal makes a new terminal: what one end writes the other reads.
func OpenTerminal() (master, slave *os.File, err error) {
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
