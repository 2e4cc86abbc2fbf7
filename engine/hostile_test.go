package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/internal/shm"
	"busbar.dev/internal/test/eventually"
)

// villains is the size of the groups in which all ranks but one are in the wrong hands. They know the secret.
const villains = 3

// villain is the side of the wrong hands.
type villain struct {
	t   *testing.T
	key []byte
	l   net.Listener
}

func newVillain(t *testing.T) *villain {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &villain{t, jobKey("", "s"), l}
}

func (v *villain) config(rank int, meet string) Config {
	return Config{
		Rank: rank, Size: villains, Meet: meet, Secret: "s", Bind: "127.0.0.1", Transport: TCP, Timeout: time.Minute,
		JoinTimeout: eventually.Limit,
	}
}

// accept takes a connection of an honest rank, past the handshake.
func (v *villain) accept() *net.TCPConn {
	c, err := v.l.Accept()
	if err != nil {
		v.t.Fatal(err)
	}
	_, answer, why := receiveHello(c, v.key)
	if why != 0 {
		v.t.Fatal(why)
	}
	if err := answer(0); err != nil {
		v.t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

// dialAs connects to an honest rank 0.
func (v *villain) dialAs(rank int, addr string) (*net.TCPConn, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	if err := introduce(c, v.key, hello{purpose: forControl, rank: villainRank(rank), size: villains}); err != nil {
		c.Close()
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// member is a member note's body that is valid.
func (v *villain) member(rank int) object {
	return object{
		{"rank", fmt.Sprint(rank)},
		{"host", `"h"`},
		{"pid", "7"},
		{"addrs", fmt.Sprintf("[%q]", v.l.Addr())},
		{"boot", `"b"`},
	}
}

func (v *villain) table() string {
	return "[" + v.member(0).text() + "," + v.member(1).text() + "," + v.member(2).text() + "]"
}

// object is a JSON object, field by field, values as they are written.
type object [][2]string

func (o object) text() string {
	var b strings.Builder
	for i, f := range o {
		fmt.Fprintf(&b, "%c%q:%s", "{,"[min(i, 1)], f[0], f[1])
	}
	return b.String() + "}"
}

// variants are objects with one field that is at or beyond its bounds, of another type, or missing.
func (o object) variants() (list []string) {
	for i, f := range o {
		for _, value := range extremes() {
			x := append(object{}, o...)
			x[i] = [2]string{f[0], value}
			list = append(list, x.text())
		}
		list = append(list, append(append(object{}, o[:i]...), o[i+1:]...).text())
	}
	return list
}

// extremes are values at and beyond what any field of a note may be.
func extremes() []string {
	addrs := func(n int) string { return `["127.0.0.1:1"` + strings.Repeat(`,"127.0.0.1:1"`, n-1) + "]" }
	return []string{
		"-1", "0", "1", "2", "3", "1.5", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808",
		"-9223372036854775808", "1e308", "1e999", "-1e9", "NaN", "null", "true", `""`, `"died"`, `"x"`, `"\u001b[31m\u0000"`,
		`"` + strings.Repeat("a", 3000) + `"`, `"` + strings.Repeat("a", 70000) + `"`, "[]", "{}", "[-1]", `[""]`,
		`["127.0.0.1:0"]`, `["127.0.0.1:65536"]`, `["name:1"]`, `["224.0.0.1:1"]`, `["[::]:1"]`, `["[fe80::1%zone]:1"]`,
		addrs(32), addrs(33), strings.Repeat("[", 7000),
	}
}

// rawNote is a control message as it travels.
func rawNote(kind note, body string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(body)))
	return append(append(b, byte(kind)), body...)
}

// hostileNotes are notes of all kinds that a state may be met with: those that it allows in all their variants, the
// others as they should be in another state, and messages that are cut or claim what does not come.
func (v *villain) hostileNotes(allowed ...note) (list [][]byte) {
	blame := object{{"rank", "2"}, {"cause", `"died"`}, {"text", `"t"`}, {"doing", `"d"`}, {"seconds", "1"}}
	valid := map[note]string{
		noteMember: v.member(1).text(), noteTable: v.table(), noteAlive: "12345678", noteSuspect: blame.text(),
		noteVerdict: blame.text(), noteAbort: "a \x1b[31m text", noteOrder: "{}", noteReply: "{}",
	}
	list = append(list, rawNote(noteVerdict, `{"rank":-1,"cause":"died"}`))
	for kind := range noteReply + 3 {
		list = append(list, rawNote(kind, valid[kind]), rawNote(kind, ""), rawNote(kind, valid[kind]+"x"),
			rawNote(kind, strings.Repeat("x", 70000)))
	}
	for _, kind := range allowed {
		for _, claim := range []uint32{1, 1 << 16, 1 << 28, 1<<32 - 1} {
			list = append(list, append(binary.LittleEndian.AppendUint32(nil, claim), byte(kind)))
		}
		body := valid[kind]
		for n := 0; n < len(body); n += 1 + len(body)/8 {
			list = append(list, rawNote(kind, body[:n]), rawNote(kind, body)[:n])
		}
		var bodies []string
		switch kind {
		case noteMember:
			bodies = v.member(1).variants()
		case noteSuspect, noteVerdict:
			bodies = blame.variants()
		case noteTable:
			for _, m := range v.member(1).variants() {
				bodies = append(bodies, "["+v.member(0).text()+","+m+","+v.member(2).text()+"]")
			}
			m := v.member(0).text()
			bodies = append(bodies, "["+m+"]", "["+strings.Repeat(m+",", villains)+m+"]", "[null,null,null]", "[]", "{}",
				"["+v.member(1).text()+","+m+","+v.member(2).text()+"]")
		}
		for _, body := range bodies {
			list = append(list, rawNote(kind, body))
		}
	}
	return list
}

// bounded runs something and reports memory beyond a bound that has little to do with what was claimed.
func bounded(t *testing.T, sent []byte, f func()) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
		t.Errorf("%.200q: %d bytes of memory for %d that came", sent, took, len(sent))
	}
}

// named reports an error of a group that names none of its ranks.
func named(t *testing.T, sent []byte, err error) {
	var peer *PeerError
	if !errors.As(err, &peer) || peer.Rank < 0 || peer.Rank >= villains || len(peer.Text) > 2*maxText {
		t.Errorf("%.200q: %v; expected an error that names a rank", sent, err)
	}
}

// TestHostileCoordinator: whatever a rank 0 says, before the table and after it, an honest rank ends with an error that
// names a rank: it neither panics nor waits, and takes no memory that did not come.
func TestHostileCoordinator(t *testing.T) {
	v := newVillain(t)
	play := func(sent ...[]byte) (err error, joined bool) {
		var g *Group
		done := make(chan struct{})
		go func() {
			defer close(done)
			g, err = Join(context.Background(), v.config(1, v.l.Addr().String()))
		}()
		c := v.accept()
		defer c.Close()
		c.Write(bytes.Join(sent, nil)) // it may be refused before all has gone
		c.CloseWrite()
		go io.Copy(io.Discard, c)
		<-done
		if err != nil {
			return err, false
		}
		defer g.Close()
		<-g.ending.doomed
		return g.failure(), true
	}
	table := rawNote(noteTable, v.table())
	for _, note := range v.hostileNotes(noteTable, noteAbort, noteVerdict) {
		bounded(t, note, func() {
			if err, joined := play(note); joined {
				named(t, note, err)
			}
		})
	}
	for _, note := range v.hostileNotes(noteAlive, noteVerdict, noteAsk, noteParting, noteBye) {
		bounded(t, note, func() {
			err, joined := play(table, note)
			if !joined {
				t.Fatalf("the table was refused: %v", err)
			}
			named(t, note, err)
		})
	}
	err, _ := play(table, rawNote(noteVerdict, `{"rank":-1,"cause":"died"}`))
	if err == nil || !strings.Contains(err.Error(), "rank 0 (h, pid 7) failed: it sent") ||
		!strings.Contains(err.Error(), "it blames rank -1 of 3") {
		t.Errorf("a verdict about rank -1: %v", err)
	}
}

// TestHostileRank: whatever a rank says to rank 0, before all have come and later, rank 0 goes on or ends with an error
// that names a rank.
func TestHostileRank(t *testing.T) {
	v := newVillain(t)
	type joined struct {
		g   *Group
		err error
	}
	begin := func() (addr string, came chan joined) {
		cfg := v.config(0, filepath.Join(t.TempDir(), "meet"))
		came = make(chan joined, 1)
		go func() {
			g, err := Join(context.Background(), cfg)
			came <- joined{g, err}
		}()
		var last error
		eventually.Holds(t, "rank 0 listens", func() bool {
			list := cfg.candidates(&last)
			if len(list) > 0 {
				addr = list[0]
			}
			return addr != ""
		})
		return addr, came
	}
	// enter makes ranks members, as often as it takes: one that was there may just be leaving.
	enter := func(addr string, rank int, notes ...[]byte) (c *net.TCPConn) {
		eventually.Holds(t, "a rank is let in", func() bool {
			var err error
			c, err = v.dialAs(rank, addr)
			return err == nil
		})
		c.Write(bytes.Join(notes, nil)) // it may be refused before all has gone
		return c
	}
	intro := func(rank int) []byte { return rawNote(noteMember, v.member(rank).text()) }
	addr, came := begin()
	for _, note := range v.hostileNotes(noteMember) {
		bounded(t, note, func() {
			c := enter(addr, 1, note)
			c.CloseWrite()
			io.Copy(io.Discard, c)
			c.Close()
		})
		c := enter(addr, 1, intro(1), note) // it speaks before all have come
		c.CloseWrite()
		io.Copy(io.Discard, c)
		c.Close()
	}
	for _, note := range v.hostileNotes(noteAlive, noteSuspect, noteVerdict, noteBye, noteHere) {
		bounded(t, note, func() {
			a, b := enter(addr, 1, intro(1)), enter(addr, 2, intro(2))
			defer a.Close()
			defer b.Close()
			x := <-came
			if x.err != nil {
				t.Fatal(x.err)
			}
			go io.Copy(io.Discard, b)
			a.Write(note)
			a.CloseWrite()
			go io.Copy(io.Discard, a)
			if bytes.Equal(note, rawNote(noteBye, "")) { // it leaves as it should: the other one does not
				b.CloseWrite()
			}
			<-x.g.ending.doomed
			named(t, note, x.g.failure())
			x.g.Close()
		})
		addr, came = begin()
	}
	for r := 1; r < villains; r++ {
		defer enter(addr, r, intro(r)).Close()
	}
	x := <-came
	if x.err != nil {
		t.Fatal(x.err)
	}
	x.g.fail(ErrClosed)
	x.g.Close()
}

// TestRankGoneAtOnce: a rank that is gone as soon as all have come is named.
func TestRankGoneAtOnce(t *testing.T) {
	v := newVillain(t)
	for range 20 {
		cfg := v.config(0, filepath.Join(t.TempDir(), "meet"))
		done := make(chan struct{})
		for r := 1; r < villains; r++ {
			go func() {
				var last error
				for {
					select {
					case <-done:
						return
					default:
					}
					if list := cfg.candidates(&last); len(list) > 0 {
						if c, err := v.dialAs(r, list[0]); err == nil {
							c.Write(rawNote(noteMember, v.member(r).text()))
							if r == 1 {
								<-done
							}
							c.Close()
						}
					}
				}
			}()
		}
		g, err := Join(context.Background(), cfg)
		close(done)
		if err == nil {
			<-g.ending.doomed
			g.net.coordinator.suspected(0, verdict{Rank: 2, Cause: Died})
			g.Close()
		}
	}
}

// frames are frames of a program with one field at or beyond its bounds; a message of its call has so many bytes.
func frames(program uint32, length uint64) (list [][]byte) {
	add := func(h header) {
		var b [headerLen]byte
		h.put(&b)
		list = append(list, b[:], append(bytes.Clone(b[:]), make([]byte, refLen)...))
		if h.program == noProgram {
			list = append(list, append(bytes.Clone(b[:]), "/proc/1/fd/3 4096 77"...))
		}
	}
	for _, call := range []uint64{0, 1, 2, 3, 4, maxCalls, maxCalls + 1, 1 << 32, 1 << 63, 1<<64 - 1} {
		add(header{program: program, call: call, length: length})
		add(header{program: program, call: call, length: 20})
	}
	for call := range uint64(4) {
		for _, lane := range []uint32{0, 1, maxArenas - 1, maxArenas, maxLanes - 1, maxLanes, 1 << 31, 1<<32 - 1} {
			add(header{program: program, call: call, lane: lane, length: 20})
			add(header{program: program, call: call, op: lane, length: length})
		}
		for _, n := range []uint64{
			0, 1, refLen, maxHandle, maxHandle + 1, length - 1, length + 1, maxKept, maxKept + 1, maxMessage, maxMessage + 1,
			1<<64 - 1,
		} {
			add(header{program: program, call: call, length: n})
			add(header{program: program, call: call, op: byRef, length: n})
		}
	}
	return list
}

// TestHostileFrames: whatever a peer sends on a data connection, the call ends, and memory has a bound.
func TestHostileFrames(t *testing.T) {
	op := coll.Op{Kind: coll.Broadcast, Type: coll.Uint8, Bytes: 64 << 10}
	s, err := Pick(op, 2, Mem)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, op.Bytes)
	play := func(groups []*Group, frames ...[]byte) error {
		g := groups[1]
		g.cfg.Stall = 30 * time.Millisecond // of a message that nobody has room for yet
		c, err := g.Prepare(s, op)
		if err != nil {
			return err
		}
		if err := c.Bind(Buffers{Recv: buf}); err != nil {
			return err
		}
		d := &groups[0].driver
		eventually.Holds(t, "the other side has the link", func() bool { return d.reg.has(1, 0) })
		d.mu.Lock()
		d.adopt()
		hostile := d.peers[1][0].s
		for _, f := range frames {
			if n, err := hostile.write([][]byte{f}); n != len(f) || err != nil {
				t.Errorf("%d of %d bytes were sent: %v", n, len(f), err)
			}
		}
		d.mu.Unlock()
		if ring, ok := hostile.(*ringPair); ok { // its process is gone
			hostile = ring.sock
		}
		hostile.close()
		_, err = c.Run(context.Background())
		return err
	}
	try := func(groups []*Group, f []byte) {
		bounded(t, f, func() {
			if err := play(groups, f, f); err == nil {
				t.Errorf("%x: a broadcast without its bytes", f)
			}
		})
		for _, g := range groups {
			g.fail(ErrClosed)
			g.Close()
		}
	}
	for _, f := range append(frames(fingerprint(s, op), uint64(op.Bytes)), frames(noProgram, uint64(op.Bytes))...) {
		groups, err := Local(2)
		if err != nil {
			t.Fatal(err)
		}
		try(groups, f)
	}
	if runtime.GOOS != "linux" {
		return
	}
	for i, f := range append(frames(fingerprint(s, op), uint64(op.Bytes)), frames(noProgram, uint64(op.Bytes))...) {
		if i%7 == 0 { // a sample of them through shared memory, where more is allowed
			try(near(t, 2), f)
		}
	}
}

// TestMemoryOverTCP: a peer whose link is a socket names memory of a process of this host, which nobody opens.
func TestMemoryOverTCP(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("shared memory needs Linux")
	}
	meet := filepath.Join(t.TempDir(), "meet")
	groups := make([]*Group, 2)
	if err := together(2, func(r int) (err error) {
		groups[r], err = Join(context.Background(), Config{
			Rank: r, Size: 2, Meet: meet, Bind: "127.0.0.1", Transport: TCP, Timeout: time.Minute,
		})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	op := coll.Op{Kind: coll.Broadcast, Type: coll.Uint8, Bytes: 64 << 10}
	s, err := Pick(op, 2, TCP)
	if err != nil {
		t.Fatal(err)
	}
	calls := make([]*Call, 2)
	buf := make([]byte, op.Bytes)
	if err := together(2, func(r int) (err error) {
		calls[r], err = groups[r].Prepare(s, op)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := calls[1].Bind(Buffers{Recv: buf}); err != nil {
		t.Fatal(err)
	}
	seg, err := shm.Create(int64(op.Bytes))
	if err != nil {
		t.Fatal(err)
	}
	defer seg.Close()
	copy(seg.Bytes(), "memory of another")
	handle := seg.Handle().String()
	var arena, ref [headerLen]byte
	header{program: noProgram, call: tellArena, length: uint64(len(handle))}.put(&arena)
	header{program: fingerprint(s, op), op: byRef, length: uint64(op.Bytes)}.put(&ref)
	l := groups[0].driver.peers[1][0]
	for _, b := range [][]byte{arena[:], []byte(handle), ref[:], make([]byte, refLen)} {
		if n, err := l.s.write([][]byte{b}); n != len(b) || err != nil {
			t.Fatalf("%d of %d bytes were sent: %v", n, len(b), err)
		}
	}
	_, err = calls[1].Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "over a connection that shares none") ||
		len(bytes.Trim(buf, "\x00")) > 0 {
		t.Errorf("%v, and received %q; expected an error about memory that is not shared", err, bytes.Trim(buf, "\x00"))
	}
	for _, g := range groups {
		g.fail(ErrClosed)
		g.Close()
	}
}

// villainRank is a rank as a hello holds it.
func villainRank(r int) int { return r }

// TestOnlyAllowedAddresses: a rank 0 that names other addresses, in its table or in a seat, has nobody connect there.
func TestOnlyAllowedAddresses(t *testing.T) {
	v := newVillain(t)
	victim, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skip("there is one loopback address here: ", err)
	}
	defer victim.Close()
	hit := make(chan net.Addr, 16)
	go func() {
		for {
			c, err := victim.Accept()
			if err != nil {
				return
			}
			hit <- c.RemoteAddr()
			c.Close()
		}
	}()
	cfg := v.config(2, v.l.Addr().String())
	cfg.MayDial = func(to netip.AddrPort) error {
		if to.Addr() != netip.MustParseAddr("127.0.0.1") {
			return errors.New("it is none of the nodes")
		}
		return nil
	}
	table := v.member(1)
	table[3][1] = fmt.Sprintf("[%q]", victim.Addr())
	go func() {
		c := v.accept()
		c.Write(rawNote(noteTable, "["+v.member(0).text()+","+table.text()+","+v.member(2).text()+"]"))
		io.Copy(io.Discard, c)
	}()
	g, err := Join(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	err = g.net.dial(t.Context(), 1, 0)
	if err == nil || !strings.Contains(err.Error(), "it is none of the nodes") {
		t.Errorf("an address of the table: %v", err)
	}
	g.fail(ErrClosed)
	g.Close()
	go func() {
		c := v.accept()
		io.Copy(io.Discard, c)
	}()
	s, err := JoinStar(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	meet := victim.Addr().(*net.TCPAddr).AddrPort()
	for _, seat := range []Seat{
		{Epoch: 1, Rank: 1, Size: 2, Meet: meet},
		{Epoch: 0, Rank: 0, Size: 2},
		{Epoch: 1, Rank: -1, Size: 2},
		{Epoch: 1, Rank: 2, Size: 2},
		{Epoch: 1, Rank: 0, Size: 1},
		{Epoch: 1, Rank: 0, Size: villains + 1},
		{Epoch: 1, Rank: 0, Size: -1},
		{Epoch: 1, Rank: 0, Size: 1 << 40},
		{Epoch: 1, Rank: 1, Size: 2},
	} {
		if g, err := s.Sit(t.Context(), seat); err == nil {
			t.Errorf("a seat %+v", seat)
			g.Close()
		}
	}
	if _, err := s.Reached(meet); err == nil {
		t.Error("the address of a program's server")
	}
	if len(hit) > 0 {
		t.Errorf("%v connected", <-hit)
	}
}

// TestHostileStar: a star's rank takes orders and nothing else, and its rank 0 replies, one an order and one before;
// what else comes is the end of that connection.
func TestHostileStar(t *testing.T) {
	v := newVillain(t)
	allowed := func(raw []byte, kind note) bool {
		return len(raw) > 4 && note(raw[4]) == kind && int(binary.LittleEndian.Uint32(raw)) == len(raw)-5
	}
	for _, raw := range v.hostileNotes(noteOrder) {
		c := make(chan *net.TCPConn, 1)
		go func() {
			x := v.accept()
			x.Write(raw)
			x.CloseWrite()
			c <- x
		}()
		s, err := JoinStar(t.Context(), v.config(1, v.l.Addr().String()))
		if err != nil {
			t.Fatal(err)
		}
		bounded(t, raw, func() {
			if _, err = s.Next(t.Context()); (err == nil) != allowed(raw, noteOrder) {
				t.Errorf("%.100q: %v", raw, err)
			}
		})
		s.Close()
		(<-c).Close()
	}
	for _, raw := range v.hostileNotes(noteReply) {
		cfg := v.config(0, filepath.Join(t.TempDir(), "meet"))
		var last error
		c := make(chan *net.TCPConn, villains)
		go func() {
			var list []string
			eventually.Within(eventually.Limit, func() bool { list = cfg.candidates(&last); return len(list) > 0 })
			for r := 1; r < villains; r++ {
				x, err := v.dialAs(r, list[0])
				if err != nil {
					t.Error(err)
				}
				x.Write(rawNote(noteMember, v.member(r).text()))
				if r == 1 {
					x.Write(raw)
					if allowed(raw, noteReply) {
						x.Write(raw) // to no order
					}
					x.CloseWrite()
				}
				c <- x
			}
		}()
		s, err := JoinStar(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		x := <-s.Replies()
		if (x.Err == nil) != allowed(raw, noteReply) || x.Rank != 1 {
			t.Errorf("%.100q: %+v", raw, x)
		}
		if x.Err == nil {
			if x = <-s.Replies(); x.Err == nil {
				t.Errorf("%.100q: a reply to no order", raw)
			}
		}
		s.Close()
		for r := 1; r < villains; r++ {
			(<-c).Close()
		}
	}
}
