package nicstat

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Read asks for the counters of an interface that keep wants, at most so many. A driver that has
// no counters gives none.
func Read(name string, keep func(name string) bool, most int) (map[string]uint64, error) {
	if name == "" || len(name) >= unix.IFNAMSIZ {
		return nil, fmt.Errorf("interface %.40q: a name has 1 to %d bytes", name, unix.IFNAMSIZ-1)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: a socket to ask for counters: %w", name, err)
	}
	defer unix.Close(fd)
	values, err := read(fd, name, keep, most)
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return map[string]uint64{}, nil
	case err != nil:
		return nil, fmt.Errorf("%s: counters of the driver: %w", name, err)
	}
	return values, nil
}

func read(fd int, name string, keep func(string) bool, most int) (map[string]uint64, error) {
	info, err := newFenced(headInfo + 8)
	if err != nil {
		return nil, err
	}
	defer info.close()
	binary.NativeEndian.PutUint32(info.data, unix.ETHTOOL_GSSET_INFO)
	binary.NativeEndian.PutUint64(info.data[8:], 1<<statsSet)
	if err := ask(fd, name, info); err != nil {
		return nil, err
	}
	n, err := setSize(info.data)
	if err != nil || n == 0 {
		return map[string]uint64{}, err
	}
	names, err := newFenced(headNames + nameBytes*n)
	if err != nil {
		return nil, err
	}
	defer names.close()
	binary.NativeEndian.PutUint32(names.data, unix.ETHTOOL_GSTRINGS)
	binary.NativeEndian.PutUint32(names.data[4:], statsSet)
	binary.NativeEndian.PutUint32(names.data[8:], uint32(n))
	if err := ask(fd, name, names); err != nil {
		return nil, err
	}
	values, err := newFenced(headStats + 8*n)
	if err != nil {
		return nil, err
	}
	defer values.close()
	binary.NativeEndian.PutUint32(values.data, unix.ETHTOOL_GSTATS)
	binary.NativeEndian.PutUint32(values.data[4:], uint32(n))
	if err := ask(fd, name, values); err != nil {
		return nil, err
	}
	return pick(names.data, values.data, n, keep, most)
}

// ask hands the kernel a structure, which it fills.
func ask(fd int, name string, f *fenced) error {
	var r struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // what is left of the union
	}
	copy(r.name[:unix.IFNAMSIZ-1], name)
	r.data = unsafe.Pointer(&f.data[0])
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r)))
	switch e {
	case 0:
		return nil
	case unix.EFAULT:
		return ErrChanged // it had more to say than there is room, and met the fence
	}
	return e
}

// fenced is memory behind which a page lies that nobody may write to. Kernels without commit
// 7b07be1ff1cb (ethtool: Avoid overflowing userspace buffer on stats query) write as many counters as
// the driver has at that moment, whatever room there is: an administrator who changes the number
// of queues between two questions must not cost the process its memory.
type fenced struct {
	all  []byte
	data []byte
}

func newFenced(size int) (*fenced, error) {
	page := os.Getpagesize()
	room := (size + page - 1) / page * page
	all, err := unix.Mmap(-1, 0, room+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("%d bytes of memory: %w", room+page, err)
	}
	if err := unix.Mprotect(all[room:], unix.PROT_NONE); err != nil {
		return nil, errors.Join(err, unix.Munmap(all))
	}
	return &fenced{all, all[:size:size]}, nil
}

func (f *fenced) close() { _ = unix.Munmap(f.all) } // it was mapped
