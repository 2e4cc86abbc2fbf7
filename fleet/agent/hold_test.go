package agent

import (
	"encoding/hex"
	"errors"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/test/freeport"
)

// TestHold: two agents never hold one place, nor one that another program listens at.
func TestHold(t *testing.T) {
	meet := freeport.Address(t)
	at, first, err := hold(meet, true)
	if err != nil || at != meet {
		t.Fatalf("%s, %v", at, err)
	}
	if _, _, err := hold(meet, false); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a port that was asked for: %v", err)
	}
	other, second, err := hold(meet, true)
	if err != nil || other == meet {
		t.Fatalf("%s, %v", other, err)
	}
	// A measurement listens at what is held.
	for _, a := range []string{at, other} {
		l, err := net.Listen("tcp", a)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
	first.Close()
	second.Close()
	l, err := net.Listen("tcp", meet)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if at, c, err := hold(meet, true); err != nil || at == meet {
		t.Errorf("a program listens, and the agent is found at %s, %v", at, err)
	} else {
		c.Close()
	}
	// An address that is not this machine's cannot be held, and is no reason to go elsewhere.
	if at, c, err := hold("192.0.2.1:7643", true); err == nil || c != nil || at != "192.0.2.1:7643" {
		t.Errorf("%s, %v", at, err)
	}
}

// TestAgentsOfOneMachine: four agents with the same port measure all pairs, two at a time.
func TestAgentsOfOneMachine(t *testing.T) {
	f := newFixture(t)
	meet := freeport.Address(t)
	names := []fleet.Name{"n1", "n2", "n3", "n4"}
	for _, n := range names {
		f.agent(n, func(c *Config) { c.Meet, c.AnyPort = meet, true })
	}
	at := map[string]fleet.Name{}
	for _, n := range names {
		f.until("it joins", func() bool { return len(f.sent(n, fleet.KindJoined)) > 0 })
		m := f.sent(n, fleet.KindJoined)[0].Joined.Meet
		if at[m] != "" {
			t.Errorf("%s and %s are both found at %s", at[m], n, m)
		}
		at[m] = n
	}
	place := func(n fleet.Name) string { return f.sent(n, fleet.KindJoined)[0].Joined.Meet }
	secret := hex.EncodeToString([]byte(strings.Repeat("x", 24)))
	for round, pairs := range [][][2]int{{{0, 1}, {2, 3}}, {{0, 2}, {1, 3}}, {{0, 3}, {1, 2}}} {
		var wg sync.WaitGroup
		for k, p := range pairs {
			ranks := []fleet.Name{names[p[0]], names[p[1]]}
			for rank := range 2 {
				wg.Go(func() {
					part := &fleet.Part{
						ID: string(rune('a'+round)) + string(rune('a'+k)), Order: "o", Sweep: 1, Round: round, Ranks: ranks, Rank: rank,
						Meet: place(ranks[0]), Secret: secret, Hosts: []string{"127.0.0.1", "127.0.0.1"},
						What: fleet.What{Measure: fleet.MeasurePairs, Small: 8, Large: 64 << 10, Iters: 2},
						Caps: fleet.Caps{Time: 20 * time.Second, Always: true},
					}
					f.until("it begins", func() bool {
						a, err := f.hub.Ask(f.ctx, ranks[rank], part)
						if err != nil || !a.Begins && !a.Busy {
							t.Errorf("%s: %+v, %v", ranks[rank], a, err)
						}
						return err != nil || !a.Busy
					})
				})
			}
		}
		wg.Wait()
		for _, p := range pairs {
			first := names[p[0]]
			count := 0
			for _, q := range [][2]int{{0, 1}, {2, 3}, {0, 2}, {1, 3}, {0, 3}, {1, 2}}[:2*round+2] {
				if q[0] == p[0] {
					count++
				}
			}
			f.until("it is measured", func() bool { return len(f.sent(first, fleet.KindMeasured)) >= count })
		}
	}
	for _, n := range names {
		for _, m := range f.sent(n, fleet.KindMeasured) {
			if m.Measured.Failed != "" {
				t.Errorf("%s: %s", n, m.Measured.Failed)
			}
		}
	}
}
