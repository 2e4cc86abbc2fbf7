package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"busbar.dev/coll"
)

// TestQuorum: of any two sets that may decide, one of them has a living member of the other, or
// has members who know that all of the other are dead.
func TestQuorum(t *testing.T) {
	set := func(bits, n int) map[int]bool {
		m := map[int]bool{}
		for r := range n {
			if bits>>r&1 == 1 {
				m[r] = true
			}
		}
		return m
	}
	for n := 1; n <= 6; n++ {
		for a := range 1 << n {
			for b := range 1 << n {
				if a&b != 0 { // they share somebody, who tells the second of the first
					continue
				}
				// The second may know of deaths among the first and those in neither.
				for dead := range 1 << n {
					if dead&b != 0 || dead&a == a {
						continue
					}
					if quorum(n, set(a, n), nil) && quorum(n, set(b, n), set(dead, n)) {
						t.Fatalf("of %d members, %b and %b may both decide when %b are dead", n, a, b, dead)
					}
				}
			}
		}
	}
	for _, x := range []struct {
		n           int
		votes, dead int
		want        bool
	}{{8, 0xfe, 0, true}, {8, 0x0f, 0, true}, {8, 0xf0, 0, false}, {2, 0b10, 0, false}, {2, 0b10, 0b01, true}, {2, 0b01, 0, true}, {5, 0b11000, 0b00111, true}, {5, 0b11000, 0b00011, false}, {1, 0, 1, false}} {
		if got := quorum(x.n, set(x.votes, x.n), set(x.dead, x.n)); got != x.want {
			t.Errorf("%d members, %b and %b dead: %v", x.n, x.votes, x.dead, got)
		}
	}
}

// two joins two members of an elastic job in this process; refused hears of connections that rank 0
// turns away.
func two(t testing.TB, refused func(Refused)) [2]*Elastic {
	t.Helper()
	var all [2]*Elastic
	var wg sync.WaitGroup
	meet := filepath.Join(t.TempDir(), "meet")
	for r := range all {
		wg.Go(func() {
			cfg := Config{Rank: r, Size: 2, Meet: meet, Bind: "127.0.0.1", Transport: TCP, Timeout: 20 * time.Second}
			if r == 0 {
				cfg.OnRefusal = refused
			}
			e, err := JoinElastic(context.Background(), cfg)
			if err != nil {
				t.Error(err)
				return
			}
			all[r] = e
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return all
}

// TestStaleEpoch: connections of an epoch that is over are refused, and counted.
func TestStaleEpoch(t *testing.T) {
	refused := make(chan Refused, 16)
	all := two(t, func(r Refused) { refused <- r })
	e := all[0]
	defer e.Close()
	addr := e.members.base.Members[0].Addrs[0]
	all[1].Close()
	if _, v, err := e.Run(context.Background(), Work{Op: coll.Op{Kind: coll.Barrier}}); err != nil || v.Epoch != 2 || v.Size != 1 {
		t.Fatalf("the one that is left: %+v, %v", v, err)
	}
	for _, h := range []hello{
		{purpose: forData, epoch: 1, rank: 1, size: 2},
		{purpose: forControl, epoch: 1, rank: 1, size: 2},
		{purpose: forData, epoch: 2, rank: 1, size: 1},
		{purpose: 9, epoch: 2},
	} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		err = introduce(c, e.members.endpoint.key, h)
		c.Close()
		var no *refusedError
		if !errors.As(err, &no) || no.why != WrongGroup {
			t.Errorf("%+v: %v", h, err)
		}
	}
	for range 4 {
		<-refused // after they were told
	}
	if n := e.Refused()[WrongGroup]; n != 4 {
		t.Errorf("%d connections of another epoch were counted", n)
	}
}

// TestKeptProposal: a leader that died after members had agreed is bound to be obeyed by the
// next.
func TestKeptProposal(t *testing.T) {
	p := &proposer{votes: map[int]bool{0: true, 1: true, 2: true}, states: make([]status, 3)}
	if p.accepted() != nil {
		t.Error("a proposal that nobody made")
	}
	old, young := &decision{Epoch: 2}, &decision{Epoch: 2}
	p.states[0] = status{Accepted: 1<<16 | 3, Proposal: old}
	p.states[2] = status{Accepted: 2<<16 | 1, Proposal: young}
	if p.accepted() != young {
		t.Error("not the last proposal")
	}
}

// FuzzMember: whatever a member says that calls the others together, nothing panics, and
// nobody is made a member by nonsense.
func FuzzMember(f *testing.F) {
	frame := func(kind note, v any) []byte {
		b, _ := json.Marshal(v)
		return append(append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), byte(kind)), b...)
	}
	base := decision{Epoch: 1, Members: []member{{ID: "a"}, {ID: "b"}}}
	next := decision{Epoch: 2, Members: []member{{ID: "b"}, {ID: "a"}}}
	f.Add(append(frame(noteCollect, collect{1 << 16, base}), frame(noteAccept, proposal{Ballot: 1 << 16, Decision: next})...))
	f.Add(frame(noteDecide, proposal{Decision: decision{Epoch: 2, Members: []member{{ID: "b"}}}}))
	f.Add(frame(noteDecide, proposal{Decision: next, Formed: true}))
	f.Add(frame(noteAsk, nil))
	f.Add(frame(noteAbort, QuorumError{}))
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg := Config{Size: 2, Meet: "x", Timeout: 50 * time.Millisecond}
		m := &membership{cfg: cfg, id: "a", moved: make(chan struct{}), base: &base, quiet: true}
		m.joinQueue.m = m
		m.ctx, m.cancel = context.WithCancel(context.Background())
		defer m.cancel()
		m.group = newGroup(cfg, newNotifier())
		m.group.net = &network{g: m.group, cfg: cfg, borrowed: true, up: &control{c: fuzzConn{}}, quit: make(chan struct{})}
		defer func() { m.tasks.Wait(); m.group.Close() }()
		m.answerProposer(fuzzConn{canned{r: bytes.NewReader(data)}})
		if m.base.at("a") < 0 {
			t.Error("a member takes over a decision that it is not in")
		}
	})
}

type fuzzConn struct{ canned }

func (fuzzConn) Close() error         { return nil }
func (fuzzConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
