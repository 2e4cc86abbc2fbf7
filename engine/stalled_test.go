package engine

import (
	"fmt"
	"net"
	"testing"
	"time"
)

// TestStalledStrangers fills an endpoint with connections that say nothing. A rank of the job is let in all the same,
// before those are given up. A machine that stops for seconds may give them up first: then once more.
func TestStalledStrangers(t *testing.T) {
	var err error
	for range 5 {
		if err = besideStalled(t); err == nil {
			return
		}
		t.Log(err)
	}
	t.Error(err)
}

func besideStalled(t *testing.T) error {
	d, err := newEndpoint(&Config{Job: "j", Secret: "s"})
	if err != nil {
		t.Fatal(err)
	}
	came := make(chan hello, 1)
	d.receive = func(c net.Conn, h hello, answer func(Refusal) error) Refusal {
		came <- h
		_ = answer(0)
		c.Close()
		return 0
	}
	addrs, err := d.listen([]net.IP{net.IPv4(127, 0, 0, 1)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		close(d.quit)
		for _, l := range d.listeners {
			l.Close()
		}
		d.tasks.Wait()
	}()
	for range maxHandshakes + 50 {
		c, err := net.Dial("tcp", addrs[0].String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	began := time.Now()
	c, err := net.Dial("tcp", addrs[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := d.introduce(c, hello{purpose: forControl, rank: 1, size: 2}); err != nil {
		return fmt.Errorf("a rank of the job is refused beside stalled connections: %w", err)
	}
	<-came
	if took := time.Since(began); took > patience/2 {
		return fmt.Errorf("it took %v to be let in", took)
	}
	return nil
}
