package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"busbar.dev/coll"
)

// TestStarWithoutARank: of four ranks one never comes and one dies; the others work in groups of their own, and a group
// that fails is the end of nothing else.
func TestStarWithoutARank(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cfg := Config{
		Size: 4, Meet: filepath.Join(t.TempDir(), "meet"), Bind: "127.0.0.1", Transport: TCP, JoinTimeout: 2 * time.Second,
	}
	add := func(s *Star, seat Seat) string {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		g, err := s.Sit(ctx, seat)
		if err != nil {
			return "no group"
		}
		defer g.Close()
		send, recv := []int32{int32(g.Rank() + 1)}, make([]int32, 1)
		if _, err := g.Run(ctx, nil, coll.Op{Kind: coll.AllReduce, Type: coll.Int32, Bytes: 4},
			Buffers{Send: Bytes(send), Recv: Bytes(recv)}); err != nil {
			return "no sum"
		}
		if n := g.TCPCounts(1 - g.Rank()); n.Segments == 0 || n.MSS == 0 {
			return fmt.Sprintf("counts %+v", n)
		}
		return fmt.Sprint(recv[0])
	}
	var wg sync.WaitGroup
	for r := 1; r < 3; r++ {
		wg.Go(func() {
			c := cfg
			c.Rank = r
			s, err := JoinStar(ctx, c)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			for {
				body, err := s.Next(ctx)
				if err != nil || string(body) == `"die"` {
					return
				}
				var seat Seat
				if err := json.Unmarshal(body, &seat); err != nil {
					t.Error(err)
				}
				if err := s.Reply(add(s, seat)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	s, err := JoinStar(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer wg.Wait()
	defer s.Close()
	m := s.Members()
	if m[1].Pid == 0 || m[2].Pid == 0 || m[3].Pid != 0 {
		t.Fatalf("members %+v", m)
	}
	if err := s.Order(3, "x"); err == nil {
		t.Error("an order to a rank that did not come")
	}
	for _, pair := range [][]int{{0, 1}, {1, 2}, {0, 2}} {
		seats := s.Seats(pair)
		own := ""
		for i, r := range pair {
			if r != 0 {
				if err := s.Order(r, seats[i]); err != nil {
					t.Fatal(err)
				}
			}
		}
		if pair[0] == 0 {
			own = add(s, seats[0])
		}
		for _, r := range pair {
			got := own
			if r != 0 {
				x := <-s.Replies()
				got = strings.Trim(string(x.Body), `"`)
			}
			if got != "3" {
				t.Errorf("pair %v: %q", pair, got)
			}
		}
	}
	late := cfg
	late.Rank = 3
	late.Meet = s.addrs[0].String()
	if _, err := JoinStar(ctx, late); err == nil || !strings.Contains(err.Error(), "too late") {
		t.Errorf("a rank that comes late: %v", err)
	}
	if err := s.Order(2, "die"); err != nil {
		t.Fatal(err)
	}
	if x := <-s.Replies(); x.Rank != 2 || x.Err == nil {
		t.Errorf("rank 2 dies: %+v", x)
	}
}
