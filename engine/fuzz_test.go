package engine

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
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

// FuzzNote: what the decoder of control messages lets pass is within all bounds.
func FuzzNote(f *testing.F) {
	const size = 3
	f.Add(uint8(noteVerdict), []byte(`{"rank":-1,"cause":"died"}`))
	f.Add(uint8(noteSuspect), []byte(`{"rank":2,"cause":"is cut off","text":"\u001b","seconds":1e9}`))
	f.Add(uint8(noteMember), []byte(`{"rank":1,"host":"h","pid":1,"addrs":["127.0.0.1:1"],"boot":"b"}`))
	f.Add(uint8(noteTable), []byte(`[{"rank":0,"pid":1,"addrs":["[::]:1"]},{"rank":0},null]`))
	f.Add(uint8(noteAlive), []byte("12345678"))
	f.Add(uint8(noteAbort), []byte("\x1b\xff"))
	member := func(t *testing.T, m member) {
		if m.Rank < 0 || m.Rank >= size || m.Pid < 1 || len(m.Host) > maxName || len(m.Boot) > maxName || len(m.Addrs) == 0 ||
			len(m.Addrs) > maxAddrs || slices.ContainsFunc(m.Addrs, func(a netip.AddrPort) bool { return !a.IsValid() }) {
			t.Errorf("member %+v", m)
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, body []byte) {
		head := binary.LittleEndian.AppendUint32(nil, uint32(len(body)))
		c := &control{c: canned{r: bytes.NewReader(append(append(head, kind), body...))}, size: size}
		m, err := c.receive(note(kind))
		if err != nil {
			return
		}
		switch note(kind) {
		case noteMember:
			member(t, m.member)
		case noteTable:
			for r := range size {
				if member(t, m.table[r]); m.table[r].Rank != r {
					t.Errorf("rank %d at %d", m.table[r].Rank, r)
				}
			}
		case noteSuspect, noteVerdict:
			v := m.verdict
			if v.Rank < 0 || v.Rank >= size || len(v.Text) > maxText || len(v.Doing) > maxText || !(v.Seconds <= maxSilence) {
				t.Errorf("verdict %+v", v)
			}
		}
		if strings.ContainsFunc(m.text+m.verdict.Text+m.member.Host, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q %q %q", m.text, m.verdict.Text, m.member.Host)
		}
	})
}

// FuzzMeeting: the file in which ranks meet names a bounded number of addresses.
func FuzzMeeting(f *testing.F) {
	f.Add([]byte(`{"busbar":5,"host":"h","addrs":["127.0.0.1:1",""]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if x, err := decodeMeeting(b); err == nil && len(x.Addrs) > maxMeeting {
			t.Errorf("%d addresses", len(x.Addrs))
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
		if len(data) >= headerLen {
			if h, err := parseHeader(data, true); err == nil && (h.length > maxMessage || h.lane > maxCalls) {
				t.Errorf("%+v", h)
			}
		}
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
