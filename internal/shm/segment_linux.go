package shm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	s := &Segment{fd: fd, creator: true}
	s.handle = Handle{Path: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd), Size: size}
	err = unix.Fchmod(fd, 0o600)
	if err == nil {
		err = s.fill()
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("shared memory of %d bytes: %w", size, err), s.Close())
	}
	return s, nil
}

// CreateNamed makes and maps a segment called busbar-name under /dev/shm. It
// fails if there is one of that name already. A name cannot be sealed.
func CreateNamed(name string, size int64) (*Segment, error) {
	if err := sizeOK(size); err != nil {
		return nil, err
	}
	if !nameOK(name) {
		return nil, fmt.Errorf("shared-memory name %.120q: want 1 to 100 letters, digits, - and _", name)
	}
	s := &Segment{fd: -1, creator: true, handle: Handle{Path: dir + "/" + prefix + name, Size: size}}
	fd, err := unix.Open(s.handle.Path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("shared memory %s: %w", s.handle.Path, err)
	}
	s.fd = fd
	// The lock tells Sweep that the creator lives.
	err = unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB)
	if err == nil {
		err = unix.Fchmod(fd, 0o600)
	}
	if err == nil {
		err = s.fill()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("shared memory %s of %d bytes: %w", s.handle.Path, size, err), s.Close())
	}
	return s, nil
}

func sizeOK(size int64) error {
	if size < 1 || size > MaxSize || int64(int(size)) != size {
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

// fill gives a new file its size and maps it.
func (s *Segment) fill() error {
	if err := memoryFor(s.handle.Size); err != nil {
		return err
	}
	if err := unix.Ftruncate(s.fd, s.handle.Size); err != nil {
		return err
	}
	// Without this, a full /dev/shm would be a bus error at the first touch.
	if err := unix.Fallocate(s.fd, 0, 0, s.handle.Size); err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(s.fd, &st); err != nil {
		return err
	}
	if st.Nlink == 0 && strings.HasPrefix(s.handle.Path, dir) {
		return errors.New("the name was removed meanwhile")
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
	flags := unix.O_RDWR | unix.O_CLOEXEC | unix.O_NONBLOCK
	named := strings.HasPrefix(h.Path, dir)
	if named {
		flags |= unix.O_NOFOLLOW // those of /proc are links by nature
	}
	fd, err := unix.Open(h.Path, flags, 0)
	if err != nil {
		return nil, fmt.Errorf("shared memory %s: %w (gone, or in another PID namespace, where a named segment is needed)", h.Path, err)
	}
	s := &Segment{fd: fd, handle: h}
	if err = s.inspect(size, !named); err == nil {
		err = s.mmap()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("shared memory %s: %w", h.Path, err), s.Close())
	}
	// The mapping keeps the memory; the file has served.
	if err := s.closeFile(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// inspect checks that the open file is what the handle says, and safe to map.
func (s *Segment) inspect(size int64, sealed bool) error {
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
		return fmt.Errorf("is inode %d, want %d: another file of the same name", st.Ino, s.handle.Inode)
	}
	if !sealed {
		return nil
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

// Settle says that everybody who should has mapped the segment: its name goes,
// and nobody can open it any more.
func (s *Segment) Settle() error {
	var err error
	if s.creator && strings.HasPrefix(s.handle.Path, dir) && s.fd >= 0 {
		err = unix.Unlink(s.handle.Path)
		if errors.Is(err, unix.ENOENT) {
			err = nil
		}
	}
	return errors.Join(err, s.closeFile())
}

func (s *Segment) closeFile() error {
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

// Sweep removes named segments of this user whose creators died before they
// settled them, and returns how many.
func Sweep() (int, error) {
	names, err := filepath.Glob(dir + "/" + prefix + "*")
	if err != nil {
		return 0, err
	}
	count := 0
	var failed []error
	for _, name := range names {
		switch gone, err := sweep(name); {
		case err != nil:
			failed = append(failed, fmt.Errorf("shared memory %s: %w", name, err))
		case gone:
			count++
		}
	}
	return count, errors.Join(failed...)
}

func sweep(name string) (bool, error) {
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EACCES), errors.Is(err, unix.ELOOP):
		return false, nil // settled meanwhile, or not ours
	case err != nil:
		return false, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return false, err
	}
	if int(st.Uid) != os.Geteuid() || st.Mode&unix.S_IFMT != unix.S_IFREG || !pathOK(name) {
		return false, nil
	}
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false, nil // its creator lives
	}
	if err := unix.Unlink(name); err != nil && !errors.Is(err, unix.ENOENT) {
		return false, err
	}
	return true, nil
}
