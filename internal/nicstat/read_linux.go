package nicstat

import (
	"encoding/binary"
	"errors"
	"fmt"
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
	order := binary.NativeEndian
	info, err := ask(fd, name, order.AppendUint64(words(unix.ETHTOOL_GSSET_INFO, 0), 1<<statsSet), 8)
	if err != nil {
		return nil, err
	}
	n, err := setSize(info)
	if err != nil || n == 0 {
		return map[string]uint64{}, err
	}
	names, err := ask(fd, name, words(unix.ETHTOOL_GSTRINGS, statsSet, uint32(n)), mostStats*nameBytes)
	if err != nil {
		return nil, err
	}
	values, err := ask(fd, name, words(unix.ETHTOOL_GSTATS, uint32(n)), mostStats*8)
	if err != nil {
		return nil, err
	}
	return pick(names, values, n, keep, most)
}

func words(list ...uint32) (head []byte) {
	for _, w := range list {
		head = binary.NativeEndian.AppendUint32(head, w)
	}
	return head
}

// ask hands the kernel a structure, whose head says what is asked, and returns it filled. The room behind the head is
// that of the most counters there can be: kernels without commit 7b07be1ff1cb (ethtool: Avoid overflowing userspace
// buffer on stats query) write as many as the driver has at that moment, and an administrator who changes the number of
// queues between two questions must not cost the process its memory.
func ask(fd int, name string, head []byte, room int) ([]byte, error) {
	reply := make([]byte, len(head)+room)
	copy(reply, head)
	var r struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // what is left of the union
	}
	copy(r.name[:unix.IFNAMSIZ-1], name)
	r.data = unsafe.Pointer(&reply[0])
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r)))
	if e != 0 {
		return nil, e
	}
	return reply, nil
}
