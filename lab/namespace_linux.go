package lab

import (
	"fmt"
	"os"
	"runtime"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// namespaces are those of a node: its network, its name, its mounts. They live as long
// as these descriptors or a program inside.
type namespaces struct {
	net netns.NsHandle
	uts int
	mnt int
	id  string // of the network, as /proc writes it
}

// onThread runs something on a thread of its own that ends afterwards, for work that
// leaves a thread in other namespaces than the rest.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		done <- f()
	}()
	return <-done
}

// newNamespaces makes those of a node.
func newNamespaces(name string) (namespaces, error) {
	n := namespaces{net: netns.None(), uts: -1, mnt: -1}
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("namespaces of a node: %w", err)
		}
		if err := unix.Sethostname([]byte(name)); err != nil {
			return fmt.Errorf("name of a node: %w", err)
		}
		// The node's own interfaces show under /sys/class/net where that can be mounted;
		// the network works without.
		if unix.Mount("", "/sys", "", unix.MS_PRIVATE|unix.MS_REC, "") == nil {
			unix.Mount("sysfs", "/sys", "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
		}
		quietTCP()
		var err error
		if n.net, err = netns.Get(); err != nil {
			return err
		}
		if n.uts, err = openThread("uts"); err != nil {
			return err
		}
		if n.mnt, err = openThread("mnt"); err != nil {
			return err
		}
		n.id, err = os.Readlink(threadFile("net"))
		return err
	})
	return n, err
}

func threadFile(ns string) string { return fmt.Sprintf("/proc/thread-self/ns/%s", ns) }

func openThread(ns string) (int, error) {
	return unix.Open(threadFile(ns), unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

// enter takes the calling thread, which must end afterwards, into the node.
func (n *namespaces) enter() error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	if err := netns.Set(n.net); err != nil {
		return err
	}
	if err := unix.Setns(n.uts, unix.CLONE_NEWUTS); err != nil {
		return err
	}
	return unix.Setns(n.mnt, unix.CLONE_NEWNS)
}

// quietTCP makes the node's sockets keep to what links and shapers do: no window
// collapses after a pause, no figures kept from earlier connections, and a
// congestion control that fills a link instead of estimating it. Reno is the one that
// every kernel allows in a namespace; in queues that lose nothing it is as good as any.
func quietTCP() {
	for _, x := range [][2]string{
		{"tcp_congestion_control", "reno"},
		{"tcp_slow_start_after_idle", "0"},
		{"tcp_no_metrics_save", "1"},
		{"conf/all/rp_filter", "0"},
		{"conf/default/rp_filter", "0"},
		{"conf/all/arp_ignore", "1"},
	} {
		os.WriteFile("/proc/sys/net/ipv4/"+x[0], []byte(x[1]), 0)
	}
	noIPv6()
}

// noIPv6 keeps interfaces that a namespace gets from announcing themselves by multicast, which nobody
// answers: addresses are IPv4, and switches flood nothing. The loopback, which is there, has ::1.
func noIPv6() {
	os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
}
