package engine

import (
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"busbar.dev/unit"

	"golang.org/x/sys/unix"
)

// sock is a connected socket outside Go's poller. Its calls never block and are made without
// telling the scheduler, which is what makes them fast.
type sock struct {
	fd  int
	iov [8]syscall.Iovec
}

// pace bounds what a socket sends. TCP then spaces its packets by itself, whatever queues the
// interface has.
func pace(fd int, rate unit.Rate) error {
	v := uint64(max(rate, 1))
	_, _, errno := syscall.RawSyscall6(syscall.SYS_SETSOCKOPT, uintptr(fd), syscall.SOL_SOCKET, unix.SO_MAX_PACING_RATE,
		uintptr(unsafe.Pointer(&v)), unsafe.Sizeof(v), 0)
	if errno != 0 {
		return fmt.Errorf("a bound of %v on what a connection sends: %w", rate, errno)
	}
	return nil
}

// takeSocket takes a connection over from the net package. The descriptor is a copy of its
// own, so that the runtime's poller, which would wake a thread for every arrival, forgets it.
func takeSocket(c net.Conn, timeout time.Duration) (stream, int, error) {
	t, ok := c.(syscall.Conn)
	if !ok {
		return nil, -1, fmt.Errorf("a connection of type %T has no descriptor", c)
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return nil, -1, err
	}
	fd := -1
	var dup error
	if err := raw.Control(func(old uintptr) {
		r, _, errno := syscall.RawSyscall(syscall.SYS_FCNTL, old, syscall.F_DUPFD_CLOEXEC, 3)
		if errno != 0 {
			dup = errno
			return
		}
		fd = int(r)
	}); err != nil {
		return nil, -1, err
	}
	if dup != nil {
		return nil, -1, fmt.Errorf("copy a socket's descriptor: %w", dup)
	}
	c.Close()
	ms := int(timeout.Milliseconds())
	for _, o := range [][3]int{
		{syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1},
		{syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
		{syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, max(ms/3000, 1)},
		{syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, max(ms/3000, 1)},
		{syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, 2},
	} {
		if err := syscall.SetsockoptInt(fd, o[0], o[1], o[2]); err != nil && o[1] == syscall.TCP_NODELAY {
			syscall.Close(fd)
			return nil, -1, fmt.Errorf("TCP_NODELAY: %w", err)
		}
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		syscall.Close(fd)
		return nil, -1, err
	}
	return &sock{fd: fd}, fd, nil
}

// silentFor is for how long the other side's kernel has been silent, of a connection that asks
// it for an answer. A peer that only does not read still answers: every retransmission when
// its buffer overflowed, every probe when its window is closed. The pauses between these grow,
// so silence counts only when it is longer than the last of them and half of it again.
func (s *sock) silentFor() time.Duration {
	const (
		probes  = 3 // where struct tcp_info has these
		rto     = 8
		unacked = 24
		lastAck = 56
	)
	var info [104]byte
	n := uint32(len(info))
	_, _, errno := syscall.RawSyscall6(syscall.SYS_GETSOCKOPT, uintptr(s.fd), syscall.IPPROTO_TCP, syscall.TCP_INFO,
		uintptr(unsafe.Pointer(&info[0])), uintptr(unsafe.Pointer(&n)), 0)
	if errno != 0 || n < lastAck+4 {
		return 0
	}
	quiet := time.Duration(le.Uint32(info[lastAck:])) * time.Millisecond
	pause := time.Duration(le.Uint32(info[rto:])) * time.Microsecond
	if info[probes] >= 2 || le.Uint32(info[unacked:]) > 0 && quiet > pause*3/2 {
		return quiet
	}
	return 0
}

// tcpCounts is what TCP counted on the socket. A segment that the other side had twice was sent again without need: it
// came late.
func (s *sock) tcpCounts() TCPCounts {
	info, err := unix.GetsockoptTCPInfo(s.fd, syscall.IPPROTO_TCP, syscall.TCP_INFO)
	if err != nil {
		return TCPCounts{}
	}
	return TCPCounts{
		Segments: int64(info.Data_segs_out), Lost: int64(info.Total_retrans) -
			min(int64(info.Dsack_dups), int64(info.Total_retrans)), MSS: int(info.Snd_mss),
	}
}

func (s *sock) read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(&p[0])),
			uintptr(len(p)), syscall.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			if n == 0 {
				return 0, io.EOF
			}
			return int(n), nil
		case syscall.EAGAIN:
			return 0, nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}

func (s *sock) write(bufs [][]byte) (int, error) {
	k := 0
	for _, b := range bufs {
		if len(b) > 0 {
			s.iov[k].Base = &b[0]
			s.iov[k].SetLen(len(b))
			if k++; k == len(s.iov) {
				break
			}
		}
	}
	for {
		n, _, errno := syscall.RawSyscall(syscall.SYS_WRITEV, uintptr(s.fd), uintptr(unsafe.Pointer(&s.iov[0])), uintptr(k))
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EAGAIN:
			return 0, nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}

func (s *sock) close() {
	if s.fd >= 0 {
		syscall.Close(s.fd)
		s.fd = -1
	}
}

// pollFd is struct pollfd.
type pollFd struct {
	fd              int32
	events, revents int16
}

const (
	pollIn  = 1
	pollOut = 4
)

// poller is where a group with sockets sleeps.
type poller struct {
	fds    []pollFd
	rings  []*ringPair // of the descriptors that only ring, by place in fds
	r, w   int         // a pipe that ends a sleep
	posted atomic.Bool
}

func newPoller() (waiter, error) {
	var p [2]int
	if err := syscall.Pipe2(p[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		return nil, fmt.Errorf("a pipe to wake a group with: %w", err)
	}
	return &poller{r: p[0], w: p[1]}, nil
}

func (p *poller) arm(links []*link, all bool) {
	p.fds = append(p.fds[:0], pollFd{fd: int32(p.r), events: pollIn})
	p.rings = append(p.rings[:0], nil)
	for _, l := range links {
		in, out := l.reading(all), l.writing()
		if !in && !out {
			continue
		}
		var ev int16
		if l.ring != nil {
			l.ring.arm(in, out)
			ev = pollIn
		} else {
			if in {
				ev |= pollIn
			}
			if out {
				ev |= pollOut
			}
		}
		p.fds = append(p.fds, pollFd{fd: int32(l.fd), events: ev})
		p.rings = append(p.rings, l.ring)
	}
}

func (p *poller) disarm() {
	for _, b := range p.rings {
		if b != nil {
			b.disarm()
		}
	}
}

func (p *poller) sleep(d time.Duration) {
	ts := syscall.NsecToTimespec(int64(d))
	n, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&p.fds[0])), uintptr(len(p.fds)),
		uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	for i, b := range p.rings {
		if b != nil {
			b.disarm()
			if errno == 0 && p.fds[i].revents != 0 {
				b.answer()
			}
		}
	}
	if errno == 0 && n > 0 && p.fds[0].revents != 0 {
		p.posted.Store(false)
		var b [64]byte
		syscall.RawSyscall(syscall.SYS_READ, uintptr(p.r), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	}
}

func (p *poller) wake() {
	if p.posted.Swap(true) {
		return
	}
	b := [1]byte{1}
	syscall.RawSyscall(syscall.SYS_WRITE, uintptr(p.w), uintptr(unsafe.Pointer(&b[0])), 1)
}

func (p *poller) yield() { syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }

func (p *poller) close() {
	syscall.Close(p.r)
	syscall.Close(p.w)
}
