package lab

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
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
			r, files, more, err := accept(c)
			defer closeAll(files)
			switch {
			case err != nil:
				send(c, answer{Error: err.Error(), Bad: true})
			case r.Do == "exec":
				h.run(c, &r, files, more)
			default:
				h.answer(c, &r)
			}
		}()
	}
}

// accept reads a request with the files that come with its first byte, and what reads those that follow.
func accept(c *net.UnixConn) (r request, files []*os.File, more *json.Decoder, err error) {
	var head [1]byte
	oob := make([]byte, unix.CmsgSpace(8*4))
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, oobn, _, _, err := c.ReadMsgUnix(head[:], oob)
	if err != nil {
		return r, nil, nil, err
	}
	files = filesOf(oob[:oobn])
	more = json.NewDecoder(io.LimitReader(io.MultiReader(bytes.NewReader(head[:n]), c), maxMessage))
	err = more.Decode(&r)
	c.SetReadDeadline(time.Time{})
	return r, files, more, err
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
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
func (h *holder) answer(c *net.UnixConn, r *request) {
	var a answer
	var err error
	switch r.Do {
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
		err = &RequestError{"no request is called " + r.Do}
	}
	if err != nil {
		a = answer{Error: err.Error(), Bad: errors.As(err, new(*RequestError))}
	}
	slices.SortFunc(a.Faults, func(a, b Fault) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Where, b.Where), strings.Compare(a.What, b.What))
	})
	send(c, a)
}
