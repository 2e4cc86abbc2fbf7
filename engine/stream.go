package engine

import (
	"io"
	"runtime"
	"sync/atomic"
	"time"
)

// stream is one connection between two ranks. Neither method waits.
type stream interface {
	// read takes what is there, 0 bytes when that is nothing; io.EOF when the other side has
	// closed.
	read(p []byte) (int, error)
	// write takes over what there is room for, 0 bytes when there is none.
	write(bufs [][]byte) (int, error)
	close()
}

// waiter is where a group sleeps.
type waiter interface {
	// arm announces that the group is about to sleep. What arrives from now on ends the
	// sleep; what arrived before must be looked for once more.
	arm(links []*link, all bool)
	// sleep waits until something may have arrived, or for at most d.
	sleep(d time.Duration)
	// disarm takes an announced sleep back.
	disarm()
	// wake ends a sleep from another goroutine.
	wake()
	// yield lets others run for a moment.
	yield()
	close()
}

// notifier wakes a group of one process.
type notifier struct {
	ch     chan struct{}
	asleep atomic.Bool
	timer  *time.Timer
}

func newNotifier() *notifier {
	b := &notifier{ch: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	return b
}

func (b *notifier) notify() {
	if b.asleep.Load() && b.asleep.Swap(false) {
		select {
		case b.ch <- struct{}{}:
		default:
		}
	}
}

func (b *notifier) arm([]*link, bool) { b.asleep.Store(true) }

func (b *notifier) sleep(d time.Duration) {
	b.timer.Reset(d)
	select {
	case <-b.ch:
	case <-b.timer.C:
	}
	b.asleep.Store(false)
}

func (b *notifier) disarm() { b.asleep.Store(false) }

func (b *notifier) wake() {
	select {
	case b.ch <- struct{}{}:
	default:
	}
}

func (b *notifier) yield() { runtime.Gosched() }

func (b *notifier) close() { b.timer.Stop() }

// pipe is a ring of bytes from one rank to another of the same process.
type pipe struct {
	buf    []byte
	head   atomic.Uint64 // read so far
	_      [56]byte
	tail   atomic.Uint64 // written so far
	_      [56]byte
	closed atomic.Bool
	reader *notifier
	writer *notifier
}

// pipeSize is a power of two that fits into the second-level cache with what is summed.
const pipeSize = 1 << 18

func newPipe(reader, writer *notifier) *pipe {
	return &pipe{buf: make([]byte, pipeSize), reader: reader, writer: writer}
}

// pipePair is the two pipes of a pair, seen from one side.
type pipePair struct{ in, out *pipe }

func (d pipePair) read(p []byte) (int, error) {
	x := d.in
	head := x.head.Load()
	closed := x.closed.Load() // before the tail, so that nothing written before it is lost
	n := min(int(x.tail.Load()-head), len(p))
	if n == 0 {
		if closed && len(p) > 0 {
			return 0, io.EOF
		}
		return 0, nil
	}
	at := int(head % pipeSize)
	k := copy(p[:n], x.buf[at:])
	copy(p[k:n], x.buf)
	x.head.Store(head + uint64(n))
	x.writer.notify()
	return n, nil
}

func (d pipePair) write(bufs [][]byte) (int, error) {
	x := d.out
	if x.closed.Load() {
		return 0, io.ErrClosedPipe
	}
	tail := x.tail.Load()
	room := pipeSize - int(tail-x.head.Load())
	sum := 0
	for _, b := range bufs {
		n := min(len(b), room)
		at := int(tail % pipeSize)
		k := copy(x.buf[at:], b[:n])
		copy(x.buf, b[k:n])
		tail += uint64(n)
		room -= n
		sum += n
	}
	if sum > 0 {
		x.tail.Store(tail)
		x.reader.notify()
	}
	return sum, nil
}

func (d pipePair) close() {
	d.in.closed.Store(true)
	d.out.closed.Store(true)
	d.in.writer.notify()
	d.out.reader.notify()
}
