//go:build linux

package shm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSegmentIsSharedAndLeavesNothing(t *testing.T) {
	s, err := Create(10000)
	if err != nil {
		t.Fatal(err)
	}
	copy(s.Bytes(), "from the parent")
	c := start(t, "reader")
	c.say(t, s.Handle())
	if got := c.hear(t); got != "from the parent" {
		t.Errorf("the child reads %q", got)
	}
	h := s.Handle()
	if err := s.Settle(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(h, h.Size); err == nil {
		t.Error("a settled segment can still be opened")
	}
	s.Bytes()[9999] = 1 // still mapped
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}

func TestSizeIsSealed(t *testing.T) {
	s, err := Create(8192)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, size := range []int64{0, 4096, 1 << 20} {
		if err := unix.Ftruncate(s.fd, size); err == nil {
			t.Errorf("the segment could be made %d bytes long", size)
		}
	}
}

// TestKilledCreator: the memory of a creator that was killed stays with who has mapped it,
// and with nobody else.
func TestKilledCreator(t *testing.T) {
	c := start(t, "holder")
	h, err := ParseHandle(c.hear(t))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(h, h.Size)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c.kill(t)
	if got := string(s.Bytes()[:5]); got != "hello" {
		t.Errorf("after the kill the memory holds %q", got)
	}
	if again, err := Open(h, h.Size); err == nil {
		again.Close()
		t.Error("the memory of a dead process can be opened")
	}
}

func TestOpenRefuses(t *testing.T) {
	s, err := Create(4096)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	h := s.Handle()
	other := h
	other.Inode++
	unsealed, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(unsealed)
	open := memfdHandle(t, unsealed)
	pipe := make([]int, 2)
	if err := unix.Pipe2(pipe, unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	public, err := os.Create(filepath.Join(t.TempDir(), "public"))
	if err != nil {
		t.Fatal(err)
	}
	defer public.Close()
	for _, c := range []struct {
		h    Handle
		size int64
		want string
	}{
		{h, 8192, "has 4096 bytes"},
		{Handle{h.Path, 8192, h.Inode}, 8192, "has 4096 bytes"},
		{other, 4096, "another file"},
		{open, 4096, "its size could change"},
		{Handle{fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), pipe[0]), 4096, 1}, 4096, "no regular file"},
		{Handle{fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), public.Fd()), 4096, 1}, 4096, "has mode 6"},
		{Handle{"/etc/passwd", 4096, 1}, 4096, "not the path of a segment"},
		{Handle{"/dev/shm/busbar-x", 4096, 1}, 4096, "not the path of a segment"},
		{Handle{"/proc/1/fd/../../etc/passwd", 4096, 1}, 4096, "not the path of a segment"},
		{Handle{"/proc/1234567890/fd/3", 4096, 1}, 4096, "gone"},
	} {
		if got, err := Open(c.h, c.size); err == nil {
			got.Close()
			t.Errorf("%v is opened with %d bytes", c.h, c.size)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %q, want it to say %q", c.h, err, c.want)
		}
	}
}

// memfdHandle gives a memfd 4096 bytes and names it.
func memfdHandle(t *testing.T, fd int) Handle {
	t.Helper()
	if err := unix.Ftruncate(fd, 4096); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fchmod(fd, 0o600); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	return Handle{fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd), 4096, st.Ino}
}

func TestCreateRefuses(t *testing.T) {
	for _, size := range []int64{0, -1, maxSize + 1} {
		if _, err := Create(size); err == nil {
			t.Errorf("a segment of %d bytes", size)
		}
	}
	if err := memoryFor(maxSize); err == nil {
		t.Skip("this machine has a TiB to give")
	}
	if _, err := Create(maxSize); err == nil || !strings.Contains(err.Error(), "available") {
		t.Errorf("a segment of a TiB: %v", err)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

func TestNoDescriptorStays(t *testing.T) {
	before := descriptors(t)
	for range 20 {
		s, err := Create(4096)
		if err != nil {
			t.Fatal(err)
		}
		o, err := Open(s.Handle(), 4096)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Open(s.Handle(), 1); err == nil {
			t.Fatal("opened with the wrong size")
		}
		if err := s.Settle(); err != nil {
			t.Fatal(err)
		}
		o.Bytes()[0] = 7
		if s.Bytes()[0] != 7 {
			t.Fatal("the two mappings differ")
		}
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func FuzzParseHandle(f *testing.F) {
	f.Add("/proc/12/fd/3:4096:77")
	f.Add("/dev/shm/busbar-x:1:0")
	f.Add("/proc/self/mem:1:0")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := ParseHandle(text)
		if err != nil {
			return
		}
		if strings.Contains(h.Path, "..") || h.Size < 1 || h.Size > maxSize {
			t.Fatalf("%q is accepted as %+v", text, h)
		}
		again, err := ParseHandle(h.String())
		if err != nil || again != h {
			t.Fatalf("%+v is written as %q and read as %+v, %v", h, h.String(), again, err)
		}
	})
}

// TestRelease: released memory goes from all who have mapped it, and comes back empty.
func TestRelease(t *testing.T) {
	const size = 1 << 20
	s, err := Create(size)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	other, err := Open(s.Handle(), size)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	held := func() int64 {
		var st unix.Stat_t
		if err := unix.Stat(s.Handle().Path, &st); err != nil {
			t.Fatal(err)
		}
		return st.Blocks * 512
	}
	s.Bytes()[size-1] = 7
	if other.Bytes()[size-1] != 7 || held() < size {
		t.Fatalf("%d bytes are held", held())
	}
	if err := s.Release(); err != nil {
		t.Fatal(err)
	}
	if n := held(); n != 0 {
		t.Errorf("%d bytes are still held", n)
	}
	if err := s.Reserve(); err != nil {
		t.Fatal(err)
	}
	if n := held(); n < size || other.Bytes()[size-1] != 0 {
		t.Errorf("%d bytes are held again, the last is %d", n, other.Bytes()[size-1])
	}
	s.Bytes()[0] = 9
	if other.Bytes()[0] != 9 {
		t.Error("the other mapping is of something else")
	}
}
