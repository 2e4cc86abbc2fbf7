// Package shm is memory shared between processes of one host: segments, flags
// to wait on, a barrier, and rings of messages.
//
// A Segment is anonymous memory (a memfd) that others open through /proc, so
// that nothing is left behind however its processes die: the kernel frees it with
// the last mapping. Its size is sealed, so that no peer can cut it off under a
// reader. Where processes do not see each other in /proc (containers with PID
// namespaces of their own), a segment can have a name under /dev/shm instead; the
// name goes with Settle, called as soon as everybody has mapped it, and Sweep
// removes the names of processes that died before that.
//
// A peer is not trusted: what is opened must be a regular file of the same user,
// closed to others, of the expected size; positions and lengths in shared memory
// are read once and checked before use, and ErrCorrupt says that a check failed.
// Data itself may still change under the reader's eyes: copy before you parse.
//
// For collectives that read straight from the other ranks' buffers, every rank
// creates one Segment, tells the others its Handle, maps theirs with OpenAll, and
// calls Settle after a barrier.
//
// Waiting is bounded everywhere. It spins a little first (yielding the processor
// where there are more ranks than processors) and then sleeps on a futex; a dead
// peer shows as ErrTimeout, or as whatever Patience.Check says.
//
// Linux only: elsewhere Create and Open say that it is not supported.
package shm

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var (
	// ErrTimeout says that a peer did not act within the limit.
	ErrTimeout = errors.New("the peer did not answer within the limit")
	// ErrCorrupt says that shared memory holds what no honest peer writes.
	ErrCorrupt = errors.New("the shared memory holds positions that cannot be")
)

const (
	// MaxSize is the greatest size of a segment.
	MaxSize = 1 << 40
	dir     = "/dev/shm"
	prefix  = "busbar-"
)

// Segment is mapped shared memory.
type Segment struct {
	mem     []byte
	fd      int // -1 when closed
	handle  Handle
	creator bool
}

// Bytes is the memory. It must not be touched after Close.
func (s *Segment) Bytes() []byte { return s.mem }

// Handle is what another process needs to open the segment. It works until
// Settle.
func (s *Segment) Handle() Handle { return s.handle }

// Handle names a segment to other processes of the host.
type Handle struct {
	Path  string
	Size  int64
	Inode uint64 // so that a reused process id or name is noticed
}

// String writes what ParseHandle reads.
func (h Handle) String() string {
	return fmt.Sprintf("%s:%d:%d", h.Path, h.Size, h.Inode)
}

// ParseHandle reads a Handle. It accepts only paths that a segment can have, so
// that a peer cannot make this process open anything else.
func ParseHandle(text string) (Handle, error) {
	fail := func(why string) (Handle, error) {
		return Handle{}, fmt.Errorf("shared-memory handle %.100q: %s; want path:size:inode", text, why)
	}
	part := strings.Split(text, ":")
	if len(part) != 3 {
		return fail(fmt.Sprintf("%d parts", len(part)))
	}
	size, err := strconv.ParseInt(part[1], 10, 64)
	if err != nil || size < 1 || size > MaxSize {
		return fail("its size is not a number from 1 to 2^40")
	}
	inode, err := strconv.ParseUint(part[2], 10, 64)
	if err != nil {
		return fail("its inode is not a number")
	}
	if !pathOK(part[0]) {
		return fail("its path is neither /proc/PID/fd/N nor " + dir + "/" + prefix + "…")
	}
	return Handle{Path: part[0], Size: size, Inode: inode}, nil
}

func pathOK(path string) bool {
	if name, ok := strings.CutPrefix(path, dir+"/"+prefix); ok {
		return nameOK(name)
	}
	rest, ok := strings.CutPrefix(path, "/proc/")
	if !ok {
		return false
	}
	pid, fd, ok := strings.Cut(rest, "/fd/")
	return ok && digits(pid) && digits(fd)
}

func digits(s string) bool {
	return len(s) > 0 && len(s) < 11 && strings.Trim(s, "0123456789") == ""
}

// nameOK allows what is harmless in a file name.
func nameOK(s string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	return len(s) > 0 && len(s) <= 100 && strings.Trim(s, allowed) == ""
}

// OpenAll maps the segments of all ranks: own for this rank, and the others by
// their handles, of which handles[self] is not looked at. All must have own's
// size. After an error nothing stays mapped but own.
func OpenAll(own *Segment, handles []Handle, self int) ([]*Segment, error) {
	if self < 0 || self >= len(handles) {
		return nil, fmt.Errorf("rank %d of %d shared-memory handles", self, len(handles))
	}
	all := make([]*Segment, len(handles))
	for r, h := range handles {
		if r == self {
			all[r] = own
			continue
		}
		s, err := Open(h, own.handle.Size)
		if err != nil {
			for q, s := range all[:r] {
				if q != self {
					err = errors.Join(err, s.Close())
				}
			}
			return nil, fmt.Errorf("the memory of rank %d: %w", r, err)
		}
		all[r] = s
	}
	return all, nil
}

// Part cuts n bytes at an offset out of the segment, for a Flag, a Barrier or a
// ring. The offset is a multiple of 64.
func (s *Segment) Part(at, n int) ([]byte, error) {
	if at < 0 || n < 0 || at%cacheLine != 0 || at > len(s.mem) || n > len(s.mem)-at {
		return nil, fmt.Errorf("%d bytes at %d of a segment of %d: outside, or not at a multiple of %d", n, at, len(s.mem), cacheLine)
	}
	return s.mem[at : at+n : at+n], nil
}
