//go:build linux

package shm

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestRingBetweenProcesses(t *testing.T) {
	c, out, in := talk(t, "echo", 4096, 4)
	patience := &Patience{Limit: 20 * time.Second}
	buf := make([]byte, 4096)
	for i := range 2000 {
		m := buf[:i*7%4096]
		for j := range m {
			m[j] = byte(i + j)
		}
		if err := out.Send(m, patience); err != nil {
			t.Fatal(err)
		}
		back, err := in.Next(patience)
		if err != nil {
			t.Fatal(err)
		}
		if string(back) != string(m) {
			t.Fatalf("message %d came back otherwise", i)
		}
		in.Release()
	}
	if err := out.Close(patience); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("the child: %v", err)
	}
}

// TestKilledProducer: after kill -9 the consumer gets what was sent, in order, and
// then a timeout.
func TestKilledProducer(t *testing.T) {
	before := descriptors(t)
	c, _, in := talk(t, "flood", 64, 16)
	patience := &Patience{Limit: 200 * time.Millisecond}
	for i := uint64(0); ; i++ {
		if i == 1000 {
			c.kill(t)
		}
		m, err := in.Next(patience)
		if i > 1000 && errors.Is(err, ErrTimeout) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := binary.LittleEndian.Uint64(m); got != i {
			t.Fatalf("message %d says %d", i, got)
		}
		in.Release()
	}
	if left := leftovers(t); len(left) != 0 {
		t.Errorf("left in %s: %v", dir, left)
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

// TestKilledConsumer: the producer gets a timeout once the ring is full; Check is
// asked meanwhile and can end the wait early with a better reason.
func TestKilledConsumer(t *testing.T) {
	c, out, _ := talk(t, "sink", 64, 16)
	c.kill(t)
	patience := &Patience{Limit: 100 * time.Millisecond}
	var err error
	for err == nil {
		err = out.Send(make([]byte, 64), patience)
	}
	if !errors.Is(err, ErrTimeout) {
		t.Errorf("error %v, want a timeout", err)
	}
	gone := errors.New("the peer is gone")
	patience = &Patience{Limit: time.Hour, Check: func() error { return gone }}
	if err := out.Send(make([]byte, 64), patience); !errors.Is(err, gone) {
		t.Errorf("error %v, want Check's", err)
	}
}

// rankElems is the vector of TestOneCopyAllReduce.
const rankElems = 10007

// beRank is a rank of an all-reduce in one copy: everybody sums its share of all
// vectors straight from the others' memory, and then copies the others' shares.
func beRank(in *bufio.Scanner) error {
	var self, ranks, rounds int
	if err := readNumbers(in, &self, &ranks, &rounds); err != nil {
		return err
	}
	words := 2 * rankElems
	own, err := Create(int64(BarrierSize(ranks)) + int64(4*words))
	if err != nil {
		return err
	}
	fmt.Println(own.Handle())
	line, err := readLine(in)
	if err != nil {
		return err
	}
	var handles []Handle
	for _, text := range strings.Fields(line) {
		h, err := ParseHandle(text)
		if err != nil {
			return err
		}
		handles = append(handles, h)
	}
	all, err := OpenAll(own, handles, self)
	if err != nil {
		return err
	}
	b, err := NewBarrier(all[0].Bytes(), ranks, self)
	if err != nil {
		return err
	}
	patience := &Patience{Limit: 20 * time.Second, Crowded: true}
	if s := os.Getenv("BUSBAR_SHM_LIMIT"); s != "" {
		if patience.Limit, err = time.ParseDuration(s); err != nil {
			return err
		}
	}
	if err := b.Wait(patience); err != nil {
		return err
	}
	if err := own.Settle(); err != nil {
		return err
	}
	if err := allReduce(all, b, self, rounds, patience); err != nil {
		return err
	}
	fmt.Println("done")
	return nil
}

func allReduce(all []*Segment, b *Barrier, self, rounds int, patience *Patience) error {
	ranks := len(all)
	at := func(r, i int) []byte { return all[r].Bytes()[BarrierSize(ranks)+4*i:] }
	put, get := binary.LittleEndian.PutUint32, binary.LittleEndian.Uint32
	from, to := self*rankElems/ranks, (self+1)*rankElems/ranks
	for round := range rounds {
		for i := range rankElems {
			put(at(self, i), uint32(i*(self+1)+round))
		}
		if err := b.Wait(patience); err != nil {
			return err
		}
		for i := from; i < to; i++ {
			sum := uint32(0)
			for r := range ranks {
				sum += get(at(r, i))
			}
			put(at(self, rankElems+i), sum)
		}
		if err := b.Wait(patience); err != nil {
			return err
		}
		for r := range ranks {
			for i := r * rankElems / ranks; i < (r+1)*rankElems/ranks; i++ {
				want := uint32(i*ranks*(ranks+1)/2 + ranks*round)
				if got := get(at(r, rankElems+i)); got != want {
					return fmt.Errorf("round %d, element %d: %d, want %d", round, i, got, want)
				}
			}
		}
	}
	return nil
}

func startRanks(t *testing.T, ranks, rounds int, env ...string) []*child {
	t.Helper()
	var all []*child
	var handles []string
	for r := range ranks {
		c := start(t, "rank", env...)
		c.say(t, r)
		c.say(t, ranks)
		c.say(t, rounds)
		handles = append(handles, c.hear(t))
		all = append(all, c)
	}
	for _, c := range all {
		c.say(t, strings.Join(handles, " "))
	}
	return all
}

// TestOneCopyAllReduce runs more processes than most test machines have
// processors to spare.
func TestOneCopyAllReduce(t *testing.T) {
	rounds := 30
	if testing.Short() {
		rounds = 5
	}
	for _, c := range startRanks(t, 8, rounds, "GOMAXPROCS=1") {
		if got := c.hear(t); got != "done" {
			t.Error(got)
		}
	}
}

// TestKilledRank: one of the ranks dies by kill -9; all others say which within
// the limit.
func TestKilledRank(t *testing.T) {
	all := startRanks(t, 4, 1<<20, "GOMAXPROCS=1", "BUSBAR_SHM_LIMIT=2s")
	time.Sleep(100 * time.Millisecond)
	all[2].kill(t)
	for r, c := range all {
		if r == 2 {
			continue
		}
		got := c.hear(t)
		if !strings.HasPrefix(got, "error: rank ") || !strings.Contains(got, ErrTimeout.Error()) {
			t.Errorf("rank %d says %q", r, got)
		}
	}
	if left := leftovers(t); len(left) != 0 {
		t.Errorf("left in %s: %v", dir, left)
	}
}
