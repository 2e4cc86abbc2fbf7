//go:build !linux

package engine

import (
	"errors"
	"io"
	"net"
	"os"
	"time"

	"busbar.dev/unit"
)

// sock is a connection where there is no faster way than the net package's: reads and writes
// with a deadline in the past take what there is.
type sock struct{ c net.Conn }

// pace is for Linux.
func pace(int, unit.Rate) error {
	return errors.New("a bound on what a connection sends: only Linux has it")
}

func takeSocket(c net.Conn, _ time.Duration) (stream, int, error) {
	if t, ok := c.(*net.TCPConn); ok {
		if err := t.SetNoDelay(true); err != nil {
			return nil, -1, err
		}
	}
	return &sock{c}, -1, nil
}

func (s *sock) read(p []byte) (int, error) {
	if err := s.c.SetReadDeadline(time.Now().Add(time.Microsecond * 50)); err != nil {
		return 0, err
	}
	n, err := s.c.Read(p)
	return n, ignoreTimeout(n, err)
}

func (s *sock) write(bufs [][]byte) (sum int, err error) {
	for _, b := range bufs {
		if err := s.c.SetWriteDeadline(time.Now().Add(time.Microsecond * 50)); err != nil {
			return sum, err
		}
		n, err := s.c.Write(b)
		sum += n
		if err = ignoreTimeout(sum, err); err != nil || n < len(b) {
			return sum, err
		}
	}
	return sum, nil
}

func ignoreTimeout(n int, err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil
	case errors.Is(err, io.EOF) && n > 0:
		return nil
	}
	return err
}

func (s *sock) close() { s.c.Close() }

// sleeper looks again after a short sleep.
type sleeper struct{ *notifier }

func newPoller() (waiter, error) { return sleeper{newNotifier()}, nil }

func (n sleeper) sleep(d time.Duration) { n.notifier.sleep(min(d, 100*time.Microsecond)) }
