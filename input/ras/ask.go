package ras

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"
)

// DefaultPort is where the service listens unless NCCL_RAS_ADDR says otherwise.
const DefaultPort = "28028"

// Answer is what asking an address gave.
type Answer struct {
	Addr string
	Data []byte // of the last report
	// connections that were taken and never answered: all processes of a host share the port, a stopped one too
	Silent int
	Err    error
}

// Ask asks the service at an address for a report, as JSON where it has that. The processes of a host share the port
// and the kernel chooses who answers, also a process that is stopped: who does not answer in time is left, and the next
// connection comes from another port and meets another process.
func Ask(ctx context.Context, addr string, each time.Duration, room *Room) Answer {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		addr = net.JoinHostPort(strings.Trim(addr, "[]"), DefaultPort)
	}
	a := Answer{Addr: addr}
	asJSON := true
	for try := 0; try < 8 && ctx.Err() == nil; try++ {
		greet := min(each, each/4<<(try/2)) // a service answers its first line at once: who does not is stopped, or swamped
		data, silent, err := askOnce(ctx, addr, greet, each, asJSON, room)
		switch {
		case err == nil:
			a.Data, a.Err = data, nil
			return a
		case errors.Is(err, errNoJSON):
			asJSON = false
			continue
		case silent:
			a.Silent++
		default:
			a.Err = err
			return a // nobody listens there; asking again changes nothing
		}
		a.Err = err
	}
	if a.Err == nil {
		a.Err = ctx.Err()
	}
	return a
}

// Room bounds the bytes of the answers of services that are asked at once: whoever listens there may send without an
// end.
type Room struct{ left atomic.Int64 }

// NewRoom has room for so many bytes.
func NewRoom(size int64) *Room {
	r := new(Room)
	r.left.Store(size)
	return r
}

// Free gives the room of an answer back, which is not kept.
func (r *Room) Free(size int) { r.left.Add(int64(size)) }

// read reads to the end, as far as there is room, and says how much came. Parts are joined at the end: a buffer that
// grows is there twice meanwhile.
func (r *Room) read(in io.Reader) (data []byte, came int, err error) {
	var parts [][]byte
	for size := 64 << 10; ; size = min(2*size, 4<<20) {
		part := make([]byte, size)
		n, err := io.ReadFull(in, part)
		came += n
		switch parts = append(parts, part[:n]); {
		case r.left.Add(-int64(n)) < 0:
			r.Free(came)
			return nil, came, errNoRoom
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return bytes.Join(parts, nil), came, nil
		case err != nil:
			r.Free(came)
			return nil, came, err
		}
	}
}

var errNoRoom = errors.New("the answer is too long; expected a report of NCCL's RAS service")

var errNoJSON = errors.New("this release has no JSON")

// askOnce holds one conversation. silent says that somebody took the connection and did not answer.
func askOnce(ctx context.Context, addr string, greet, each time.Duration, asJSON bool,
	room *Room,
) (data []byte, silent bool, err error) {
	ctx, stop := context.WithTimeout(ctx, each)
	defer stop()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, false, fmt.Errorf("RAS at %s: %w", addr, err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(greet)); err != nil {
		return nil, false, err
	}
	in := bufio.NewReader(c)
	say := func(line string) (string, error) {
		if _, err := io.WriteString(c, line+"\n"); err != nil {
			return "", err
		}
		reply, err := in.ReadSlice('\n') // no longer than the reader's buffer
		return strings.TrimSpace(string(reply)), err
	}
	seconds := max(1, int(each/time.Second))
	lines := []string{"CLIENT PROTOCOL 2", fmt.Sprintf("TIMEOUT %d", seconds)}
	if asJSON {
		lines = append(lines, "SET FORMAT json")
	}
	for _, line := range lines {
		reply, err := say(line)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, false, fmt.Errorf("%s sends %.20q… without an end of line: another service listens there; expected "+
				"NCCL's RAS service (see NCCL_RAS_ADDR of the job)", addr, reply)
		case err != nil:
			return nil, true, fmt.Errorf("RAS at %s took the connection and did not answer: %w", addr, err)
		case strings.HasPrefix(reply, "ERROR") && strings.HasPrefix(line, "SET"):
			return nil, false, errNoJSON
		case strings.HasPrefix(reply, "ERROR"):
			return nil, false, fmt.Errorf("RAS at %s: %s", addr, reply)
		}
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(deadline); err != nil {
			return nil, false, err
		}
	}
	if _, err := io.WriteString(c, "VERBOSE STATUS\n"); err != nil {
		return nil, true, err
	}
	data, came, err := room.read(in)
	switch {
	case errors.Is(err, errNoRoom):
		return nil, false, fmt.Errorf("RAS at %s: %w", addr, err)
	case err != nil && came == 0:
		return nil, true, fmt.Errorf("RAS at %s took the question and did not answer: %w", addr, err)
	case err != nil:
		return nil, false,
			fmt.Errorf("RAS at %s: %d bytes of its answer came within %v, and not the end: %w", addr, came, each, err)
	case !Match(data):
		room.Free(len(data))
		return nil, false, fmt.Errorf("RAS at %s answered %.80q; expected a report", addr, data)
	}
	return data, false, nil
}
