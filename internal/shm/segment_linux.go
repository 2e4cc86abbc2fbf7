package shm

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// Create makes and maps an anonymous segment of zeros; its memory is reserved
// now, not when it is first touched.
func Create(size int64) (*Segment, error) {
	if err := sizeOK(size); err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("busbar", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("busbar", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	s := &Segment{fd: fd}
	s.handle = Handle{Path: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd), Size: size}
	err = unix.Fchmod(fd, 0o600)
	if err == nil {
		err = s.mapFile()
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("shared memory of %d bytes: %w", size, err), s.Close())
	}
	return s, nil
}

func sizeOK(size int64) error {
	if size < 1 || size > maxSize || int64(int(size)) != size {
		return fmt.Errorf("shared memory of %d bytes: want 1 to 2^40", size)
	}
	return nil
}

// memoryFor refuses what the machine does not have: asking the kernel would bring
// its out-of-memory killer, on any process.
func memoryFor(size int64) error {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return nil // not known; the kernel will say
	}
	_, rest, _ := strings.Cut(string(data), "MemAvailable:")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		return nil
	}
	if size>>10 > kib-kib/8 {
		return fmt.Errorf("only %d KiB of memory are available, of which an eighth must stay free", kib)
	}
	return nil
}

// mapFile gives a new file its size and maps it.
func (s *Segment) mapFile() error {
	if err := memoryFor(s.handle.Size); err != nil {
		return err
	}
	if err := unix.Ftruncate(s.fd, s.handle.Size); err != nil {
		return err
	}
	// Without this, a machine without memory would be a bus error at the first touch.
	if err := unix.Fallocate(s.fd, 0, 0, s.handle.Size); err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(s.fd, &st); err != nil {
		return err
	}
	s.handle.Inode = st.Ino
	return s.mmap()
}

// Release gives the memory of a segment back to the system while all who have mapped it keep
// their addresses. It reads as zeros, and takes memory again where it is touched; Reserve takes
// all of it at once.
func (s *Segment) Release() error {
	if s.fd < 0 || len(s.mem) == 0 {
		return errors.New("the segment is settled or closed")
	}
	return unix.Fallocate(s.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, s.handle.Size)
}

// Reserve takes memory for a segment that was released, which else might not be there when it is
// touched.
func (s *Segment) Reserve() error {
	if s.fd < 0 || len(s.mem) == 0 {
		return errors.New("the segment is settled or closed")
	}
	if err := memoryFor(s.handle.Size); err != nil {
		return err
	}
	return unix.Fallocate(s.fd, 0, 0, s.handle.Size)
}

func (s *Segment) mmap() error {
	mem, err := unix.Mmap(s.fd, 0, int(s.handle.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return fmt.Errorf("mmap: %w", err)
	}
	s.mem = mem
	return nil
}

// Open maps another process's segment, which must have the given size.
func Open(h Handle, size int64) (*Segment, error) {
	if !pathOK(h.Path) {
		return nil, fmt.Errorf("shared memory %.100q: not the path of a segment", h.Path)
	}
	fd, err := unix.Open(h.Path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("shared memory %s: %w (gone, or of a process in another PID namespace)", h.Path, err)
	}
	s := &Segment{fd: fd, handle: h}
	if err = s.inspect(size); err == nil {
		err = s.mmap()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("shared memory %s: %w", h.Path, err), s.Close())
	}
	// The mapping keeps the memory; the file has served.
	if err := s.Settle(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// inspect checks that the open file is what the handle says, and safe to map.
func (s *Segment) inspect(size int64) error {
	var st unix.Stat_t
	if err := unix.Fstat(s.fd, &st); err != nil {
		return err
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return fmt.Errorf("is no regular file (mode %o)", st.Mode)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("belongs to user %d, not to %d", st.Uid, os.Geteuid())
	case st.Mode&0o7777 != 0o600:
		return fmt.Errorf("has mode %o, want 600", st.Mode&0o7777)
	case st.Size != size || s.handle.Size != size:
		return fmt.Errorf("has %d bytes and its handle says %d, want %d", st.Size, s.handle.Size, size)
	case st.Ino != s.handle.Inode:
		return fmt.Errorf("is inode %d, want %d: another file of the same number", st.Ino, s.handle.Inode)
	}
	got, err := unix.FcntlInt(uintptr(s.fd), unix.F_GET_SEALS, 0)
	if err != nil {
		return fmt.Errorf("is no sealed memory: %w", err)
	}
	if got&seals != seals {
		return fmt.Errorf("has seals %#x, want %#x: its size could change", got, seals)
	}
	return nil
}

// Settle says that everybody who should has mapped the segment: nobody can open it
// any more.
func (s *Segment) Settle() error {
	if s.fd < 0 {
		return nil
	}
	fd := s.fd
	s.fd = -1
	return unix.Close(fd)
}

// Close unmaps the segment, and settles it.
func (s *Segment) Close() error {
	err := s.Settle()
	if s.mem != nil {
		err = errors.Join(err, unix.Munmap(s.mem))
		s.mem = nil
	}
	return err
}
