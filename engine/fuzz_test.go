package engine

import (
	"bytes"
	"net"
	"testing"
	"time"
)

// canned is a connection on which some bytes come and everything that is sent is lost.
type canned struct {
	net.Conn
	r *bytes.Reader
}

func (c canned) Read(p []byte) (int, error)       { return c.r.Read(p) }
func (c canned) Write(p []byte) (int, error)      { return len(p), nil }
func (c canned) SetDeadline(time.Time) error      { return nil }
func (c canned) SetReadDeadline(time.Time) error  { return nil }
func (c canned) SetWriteDeadline(time.Time) error { return nil }

// FuzzStranger: whatever comes to the port, nobody gets in without the secret, and nothing
// panics.
func FuzzStranger(f *testing.F) {
	key := jobKey("job", "secret")
	h := hello{purpose: forData, rank: 1, size: 4}
	body := h.encode(make([]byte, nonceLen))
	f.Add(append(body, code(key, "dial", body)...))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, _, why := receiveHello(canned{r: bytes.NewReader(data)}, key); why == 0 {
			t.Error("a stranger got in")
		}
		if err := introduce(canned{r: bytes.NewReader(data)}, key, h); err == nil {
			t.Error("a stranger was believed")
		}
	})
}

// FuzzFrames: whatever an authenticated peer sends on a data connection, the driver neither
// panics nor believes lengths that were not agreed on.
func FuzzFrames(f *testing.F) {
	var b [headerLen]byte
	header{program: 1, call: 2, lane: 3, length: 1 << 60}.put(&b)
	f.Add(b[:])
	header{program: 7, call: 9, length: 4}.put(&b)
	f.Add(append(bytes.Clone(b[:]), 1, 2, 3, 4))
	header{program: noProgram, call: tellArena, length: 20}.put(&b)
	f.Add(append(bytes.Clone(b[:]), "/proc/1/fd/3 4096 77"...))
	header{program: noProgram, call: tellDone, lane: 1, length: 1}.put(&b)
	f.Add(b[:])
	header{program: 5, op: byRef, length: 100}.put(&b)
	f.Add(append(bytes.Clone(b[:]), make([]byte, refLen)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		bells := [2]*notifier{newNotifier(), newNotifier()}
		d := &driver{g: &Group{cfg: Config{Size: 2}, size: 2}, calls: map[uint64]*Call{}, waiter: bells[0]}
		in, out := newPipe(bells[0], bells[1]), newPipe(bells[1], bells[0])
		l := d.newLink(1, 0, pipePair{in: in, out: out}, -1)
		d.stuck = true // puts everything aside
		there := pipePair{in: out, out: in}
		if len(data) > pipeSize {
			data = data[:pipeSize]
		}
		if _, err := there.write([][]byte{data}); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if _, err := l.rx(); err != nil {
				break
			}
		}
		kept := 0
		for _, k := range l.kept {
			kept += cap(k.data)
		}
		if kept > 4*len(data) || l.held > 2*maxKept {
			t.Errorf("%d bytes put aside of %d, and %d announced", kept, len(data), l.held)
		}
	})
}
