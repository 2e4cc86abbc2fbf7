// Package shm is memory shared between processes of one host.
//
// A Segment is anonymous memory (a memfd) that others open through /proc, so
// that nothing is left behind however its processes die: the kernel frees it with
// the last mapping. Its size is sealed, so that no peer can cut it off under a
// reader. Processes that do not see each other in /proc (containers with PID
// namespaces of their own) cannot share it.
//
// A peer is not trusted: what is opened must be a regular file of the same user,
// closed to others, of the expected size. Data may change under the reader's eyes:
// copy before you parse.
//
// Linux only: elsewhere Create and Open say that it is not supported.
package shm

import (
	"fmt"
	"strconv"
	"strings"
)

// maxSize is the greatest size of a segment.
const maxSize = 1 << 40

// Segment is mapped shared memory.
type Segment struct {
	mem    []byte
	fd     int // -1 when closed
	handle Handle
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
	Inode uint64 // so that a reused process id is noticed
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
	if err != nil || size < 1 || size > maxSize {
		return fail("its size is not a number from 1 to 2^40")
	}
	inode, err := strconv.ParseUint(part[2], 10, 64)
	if err != nil {
		return fail("its inode is not a number")
	}
	if !pathOK(part[0]) {
		return fail("its path is not /proc/PID/fd/N")
	}
	return Handle{Path: part[0], Size: size, Inode: inode}, nil
}

func pathOK(path string) bool {
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
