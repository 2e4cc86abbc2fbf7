package shm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"
)

func TestRingKeepsOrderAndBytes(t *testing.T) {
	for _, max := range []int{0, 1, 24, 1000} {
		size, err := RingSize(max, 3)
		if err != nil {
			t.Fatal(err)
		}
		mem := plain(size)
		p, err := NewProducer(mem)
		if err != nil {
			t.Fatal(err)
		}
		c, err := NewConsumer(mem)
		if err != nil {
			t.Fatal(err)
		}
		if p.Max() < max {
			t.Fatalf("a ring for %d takes %d at most", max, p.Max())
		}
		message := func(i int) []byte {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			m := make([]byte, rng.IntN(p.Max()+1))
			for j := range m {
				m[j] = byte(rng.Uint32())
			}
			return m
		}
		const count = 1000
		patience := &Patience{Limit: 20 * time.Second}
		sent := make(chan error, 1)
		go func() {
			patience := &Patience{Limit: 20 * time.Second}
			for i := range count {
				if err := p.Send(message(i), patience); err != nil {
					sent <- err
					return
				}
			}
			sent <- p.Close(patience)
		}()
		buf := make([]byte, p.Max())
		for i := range count {
			n, err := c.Recv(buf, patience)
			if err != nil {
				t.Fatal(err)
			}
			if want := message(i); !bytes.Equal(buf[:n], want) {
				t.Fatalf("message %d of %d bytes came as %d others", i, len(want), n)
			}
		}
		for range 2 {
			if _, err := c.Recv(buf, patience); err != io.EOF {
				t.Fatalf("after the end: %v", err)
			}
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
}

// TestPositionsWrapAround sends more than 2^32 bytes' worth of positions.
func TestPositionsWrapAround(t *testing.T) {
	mem := plain(ringHead + 4096)
	p, _ := NewProducer(mem)
	c, _ := NewConsumer(mem)
	const near = 1<<32 - 5000&^7 - 4096
	p.position, p.seen, c.position, c.seen = near, near, near, near
	p.head.Set(near)
	p.tail.Set(near)
	patience := &Patience{Limit: time.Second}
	for i := range uint64(1000) {
		if err := p.Send(binary.LittleEndian.AppendUint64(nil, i), patience); err != nil {
			t.Fatal(err)
		}
		m, err := c.Next(patience)
		if err != nil || binary.LittleEndian.Uint64(m) != i {
			t.Fatalf("message %d: %v, %v", i, m, err)
		}
		c.Release()
	}
	if p.position > near {
		t.Fatal("the position did not wrap around")
	}
}

func TestRingRefuses(t *testing.T) {
	for _, n := range []int{0, ringHead, ringHead + 100, ringHead + 63} {
		if _, err := NewProducer(plain(n)); err == nil {
			t.Errorf("a ring in %d bytes", n)
		}
	}
	for _, c := range [][2]int{{-1, 1}, {1 << 30, 1}, {8, 1 << 30}, {8, 0}} {
		if n, err := RingSize(c[0], c[1]); err == nil {
			t.Errorf("%d messages of %d bytes take %d", c[1], c[0], n)
		}
	}
	mem := plain(ringHead + 64)
	p, _ := NewProducer(mem)
	patience := &Patience{Limit: time.Millisecond}
	if err := p.Send(make([]byte, p.Max()+1), patience); err == nil {
		t.Error("a message greater than the greatest")
	}
	var err error
	for err == nil {
		err = p.Send(nil, patience)
	}
	if !errors.Is(err, ErrTimeout) {
		t.Errorf("a full ring: %v", err)
	}
	c, _ := NewConsumer(mem)
	if _, err := c.Recv(nil, patience); err != nil {
		t.Error(err)
	}
}

// FuzzConsumer gives the consumer memory that no honest producer writes: it must
// neither panic nor read outside nor loop for ever.
func FuzzConsumer(f *testing.F) {
	f.Add(make([]byte, 256), uint32(64))
	f.Add(bytes.Repeat([]byte{0xff}, 64), uint32(1<<31))
	f.Add([]byte{8, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0xff, 0xff, 0xff, 0xff}, uint32(40))
	f.Fuzz(func(t *testing.T, data []byte, head uint32) {
		mem := plain(ringHead + 256)
		copy(mem[ringHead:], data)
		c, err := NewConsumer(mem)
		if err != nil {
			t.Fatal(err)
		}
		c.head.Set(head)
		stop := errors.New("enough")
		patience := &Patience{Limit: time.Microsecond, Crowded: true, Check: func() error { return stop }}
		for range 100 {
			if _, err := c.Next(patience); err != nil {
				return
			}
			c.Release()
		}
		t.Fatal("more messages than fit")
	})
}

// TestProducerDoesNotTrust gives the producer a consumer's position that cannot
// be.
func TestProducerDoesNotTrust(t *testing.T) {
	mem := plain(ringHead + 64)
	p, _ := NewProducer(mem)
	patience := &Patience{Limit: time.Millisecond}
	var err error
	for err == nil {
		p.tail.Set(p.position + 8) // has read what was not sent
		err = p.Send(nil, patience)
	}
	if !errors.Is(err, ErrCorrupt) {
		t.Errorf("error %v, want ErrCorrupt", err)
	}
}
