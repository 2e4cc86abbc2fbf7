package lab

import (
	"errors"
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"busbar.dev/internal/osdep"
)

// serve answers clients until the lab ends.
func (h *holder) serve(l *net.UnixListener) {
	for {
		c, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		go func() {
			defer c.Close()
			if osdep.OwnPeer(c) != nil {
				return // another user: it gets no answer
			}
			r, files, err := accept(c)
			if err != nil {
				send(c, answer{Error: err.Error(), Bad: true})
				return
			}
			h.answer(c, r, files)
		}()
	}
}

// accept reads a request with the files that come with it.
func accept(c *net.UnixConn) (*request, []*os.File, error) {
	var head [4]byte
	oob := make([]byte, unix.CmsgSpace(8*4))
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, oobn, _, _, err := c.ReadMsgUnix(head[:], oob)
	if err != nil {
		return nil, nil, err
	}
	files := filesOf(oob[:oobn])
	for n < len(head) && err == nil {
		var k int
		k, err = c.Read(head[n:])
		n += k
	}
	var r request
	if err == nil {
		err = unpack(c, head, &r)
	}
	c.SetReadDeadline(time.Time{})
	if err != nil {
		for _, f := range files {
			f.Close()
		}
	}
	return &r, files, err
}

func filesOf(oob []byte) []*os.File {
	list, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	var files []*os.File
	for i := range list {
		fds, err := unix.ParseUnixRights(&list[i])
		if err != nil {
			continue
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	return files
}

// answer does what a client asks for.
func (h *holder) answer(c *net.UnixConn, r *request, files []*os.File) {
	if r.Do != "exec" {
		for _, f := range files {
			f.Close()
		}
	}
	var a answer
	var err error
	switch r.Do {
	case "exec":
		h.run(c, r, files)
		return
	case "status":
		a.Faults = h.list()
	case "port": // where the ranks of a new job meet
		h.mu.Lock()
		a.Port = h.port
		if h.port++; h.port > 30500 {
			h.port = 29500
		}
		h.mu.Unlock()
	case "fault":
		err = h.fault(r.Fault)
		a.Faults = h.list()
	case "heal":
		a.Faults, err = h.repair(r.What)
	case "down":
		send(c, a)
		h.once.Do(func() { close(h.quit) })
		return
	default:
		err = badRequest("no request is called " + r.Do)
	}
	if err != nil {
		var bad badRequest
		a = answer{Error: err.Error(), Bad: errors.As(err, &bad)}
	}
	slices.SortFunc(a.Faults, compareFaults)
	send(c, a)
}

// badRequest is the error of a request that makes no sense, whatever the machine.
type badRequest string

func (b badRequest) Error() string { return string(b) }
