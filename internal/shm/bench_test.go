//go:build linux

package shm

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
)

// BenchmarkPingPong is half the way there and back between two processes. On a
// machine with other work, the first percentile says what the code does and the
// median what the machine does.
func BenchmarkPingPong(b *testing.B) {
	for _, size := range []int{8, 1 << 10, 64 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			_, out, in := talk(b, "echo", size, 4)
			patience := &Patience{Limit: 20 * time.Second}
			m := make([]byte, size)
			var times []time.Duration
			for b.Loop() {
				begin := time.Now()
				if err := out.Send(m, patience); err != nil {
					b.Fatal(err)
				}
				if _, err := in.Next(patience); err != nil {
					b.Fatal(err)
				}
				in.Release()
				times = append(times, time.Since(begin)/2)
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/100]), "p1-ns/way")
			b.ReportMetric(float64(times[len(times)/2]), "median-ns/way")
			if err := out.Close(patience); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkStream is one way as fast as it goes.
func BenchmarkStream(b *testing.B) {
	for _, size := range []int{64, 4 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			_, out, in := talk(b, "sink", size, 8)
			patience := &Patience{Limit: 20 * time.Second}
			m := make([]byte, size)
			batch := max(1, min(1000, 8<<20/size))
			b.SetBytes(int64(size * batch))
			sent := uint64(0)
			var times []time.Duration
			for b.Loop() {
				begin := time.Now()
				for range batch {
					if err := out.Send(m, patience); err != nil {
						b.Fatal(err)
					}
					sent++
				}
				times = append(times, time.Since(begin))
			}
			slices.Sort(times)
			b.ReportMetric(float64(size*batch)/float64(times[len(times)/10]), "p10-GB/s")
			b.ReportMetric(float64(size*batch)/float64(times[len(times)/2]), "median-GB/s")
			if err := out.Close(patience); err != nil {
				b.Fatal(err)
			}
			got, err := in.Next(patience)
			if err != nil {
				b.Fatal(err)
			}
			if n := binary.LittleEndian.Uint64(got); n != sent {
				b.Fatalf("%d of %d messages arrived", n, sent)
			}
		})
	}
}

// beMeeting passes a barrier as often as it is told to.
func beMeeting(in *bufio.Scanner) error {
	s, err := openLine(in)
	if err != nil {
		return err
	}
	var self, ranks, rounds int
	if err := readNumbers(in, &self, &ranks); err != nil {
		return err
	}
	b, err := NewBarrier(s.Bytes(), ranks, self)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	patience := &Patience{Limit: 20 * time.Second, Crowded: ranks > runtime.NumCPU()}
	for {
		if readNumbers(in, &rounds) != nil {
			return nil
		}
		for range rounds {
			if err := b.Wait(patience); err != nil {
				return err
			}
		}
	}
}

// BenchmarkBarrier lets 2, 4 and 8 processes meet.
func BenchmarkBarrier(b *testing.B) {
	for _, ranks := range []int{2, 4, 8} {
		b.Run(fmt.Sprint(ranks), func(b *testing.B) {
			s, err := Create(int64(BarrierSize(ranks)))
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			var others []*child
			for r := 1; r < ranks; r++ {
				c := start(b, "meeting")
				c.say(b, s.Handle())
				c.say(b, r)
				c.say(b, ranks)
				c.hear(b)
				others = append(others, c)
			}
			meet, err := NewBarrier(s.Bytes(), ranks, 0)
			if err != nil {
				b.Fatal(err)
			}
			patience := &Patience{Limit: 20 * time.Second, Crowded: ranks > runtime.NumCPU()}
			const rounds = 200
			var times []time.Duration
			for b.Loop() {
				for _, c := range others {
					c.say(b, rounds)
				}
				if err := meet.Wait(patience); err != nil {
					b.Fatal(err)
				}
				begin := time.Now()
				for range rounds - 1 {
					if err := meet.Wait(patience); err != nil {
						b.Fatal(err)
					}
				}
				times = append(times, time.Since(begin)/(rounds-1))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/10]), "p10-ns/barrier")
			b.ReportMetric(float64(times[len(times)/2]), "median-ns/barrier")
		})
	}
}
