//go:build unix

package hang

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"

	"busbar.dev/internal/test/synth/livejob"
)

// cpu is the processor time of this process, in seconds.
func cpu() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// BenchmarkJudge4096 reads the recorder dumps of 4,096 ranks and judges them.
func BenchmarkJudge4096(b *testing.B) {
	j := &livejob.Job{Ranks: 4096, TP: 8, Steps: 20, Fault: livejob.Late, Culprit: 1234}
	dumps := make([][]byte, j.Ranks)
	size := int64(0)
	for r := range dumps {
		dumps[r] = j.Dump(r)
		size += int64(len(dumps[r]))
	}
	runtime.GC()
	b.SetBytes(size)
	b.ReportAllocs()
	b.ResetTimer()
	from := cpu()
	for range b.N {
		c := NewCase()
		for r := range dumps {
			if _, err := c.Add(fmt.Sprintf("nccl_trace_rank_%d", r), dumps[r]); err != nil {
				b.Fatal(err)
			}
		}
		if v := c.Judge(); v.Kind != Late || len(v.Ranks) != 1 || v.Ranks[0].Rank != 1234 {
			b.Fatalf("%s %v", v.Kind, v.Ranks)
		}
	}
	b.ReportMetric((cpu()-from)/float64(b.N), "cpu-s/op")
}

// BenchmarkRAS16384 reads two RAS answers of 16,384 ranks and judges them.
func BenchmarkRAS16384(b *testing.B) {
	j := &livejob.Job{Ranks: 16384, TP: 8, Steps: 2, Fault: livejob.Late, Culprit: 77}
	first, second := []byte(j.RAS("2026-11-16 02:00:05", true)), []byte(j.RAS("2026-11-16 02:00:20", true))
	b.SetBytes(int64(len(first)))
	b.ResetTimer()
	from := cpu()
	for range b.N {
		c := NewCase()
		for i, data := range [][]byte{first, second} {
			if _, err := c.Add(fmt.Sprint("ras", i), data); err != nil {
				b.Fatal(err)
			}
		}
		if v := c.Judge(); len(v.Ranks) != 1 || v.Ranks[0].Rank != 77 {
			b.Fatalf("%s %v", v.Kind, v.Ranks)
		}
	}
	b.ReportMetric((cpu()-from)/float64(b.N), "cpu-s/op")
}
