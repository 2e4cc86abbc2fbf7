package reduce

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
	"unsafe"

	"busbar.dev/coll"
)

// cSums is a running testdata/sums.c.
type cSums struct {
	in  io.Writer
	out *bufio.Reader
}

// startC compiles for an architecture as -march takes it.
func startC(b *testing.B, march string) cSums {
	cc, err := exec.LookPath("gcc")
	if err != nil {
		b.Skip("no gcc: nothing to compare with")
	}
	exe := filepath.Join(b.TempDir(), "sums")
	if out, err := exec.Command(cc, "-O3", "-march="+march, "-o", exe, "testdata/sums.c").CombinedOutput(); err != nil {
		b.Skipf("gcc: %v\n%s", err, out)
	}
	cmd := exec.Command(exe)
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	return cSums{in: in, out: bufio.NewReader(out)}
}

// run returns the time of some rounds, or a negative one if C has no such kernel.
func (c cSums) run(b *testing.B, kernel string, bytes, rounds int) time.Duration {
	fmt.Fprintln(c.in, kernel, bytes, rounds)
	var ns int64
	if _, err := fmt.Fscan(c.out, &ns); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ns)
}

// BenchmarkAgainstC alternates between Go and C in one run and reports both
// rates and their ratio (above 1: Go is faster), by the medians of the rounds:
// the best path against -march=native, and AVX2 against C for processors that
// have no more than that.
func BenchmarkAgainstC(b *testing.B) {
	for _, size := range []int{4 << 10, 16 << 10, 64 << 10, 512 << 10, 64 << 20} {
		for _, k := range []struct {
			name  string
			t     coll.Dtype
			p     Path
			march string
		}{
			{"f32", coll.Float, Best(), "native"},
			{"f64", coll.Double, Best(), "native"},
			{"bf16", coll.BFloat16, Best(), "native"},
			{"f16", coll.Half, Best(), "native"},
			{"f16c", coll.Half, AVX512, "native"},
			{"i8", coll.Int8, Best(), "native"},
			{"i32", coll.Int32, Best(), "native"},
			{"i64", coll.Int64, Best(), "native"},
			{"f32", coll.Float, AVX2, "haswell"},
			{"bf16", coll.BFloat16, AVX2, "haswell"},
			{"f16c", coll.Half, AVX2, "haswell"},
		} {
			if !slices.Contains(Paths(), k.p) {
				continue
			}
			b.Run(fmt.Sprintf("%s/%s/%v-%s", sizeName(size), k.name, k.p, k.march), func(b *testing.B) {
				againstC(b, startC(b, k.march), k.name, k.t, k.p, size)
			})
		}
	}
}

func againstC(b *testing.B, c cSums, name string, t coll.Dtype, p Path, size int) {
	f, err := p.Func(t, coll.Sum)
	if err != nil {
		b.Fatal(err)
	}
	dst, src := page(size), page(size)
	rounds := max(1, 4<<20/size)
	if c.run(b, name, size, rounds) < 0 {
		b.Skip("the C compiler has no such type")
	}
	b.SetBytes(int64(2 * size * rounds))
	var goTimes, cTimes []time.Duration
	for b.Loop() {
		cTimes = append(cTimes, c.run(b, name, size, rounds))
		start := time.Now()
		for range rounds {
			f(dst, dst, src)
		}
		goTimes = append(goTimes, time.Since(start))
	}
	rate := func(times []time.Duration, at int) float64 {
		slices.Sort(times)
		return float64(size) * float64(rounds) / float64(times[at*(len(times)-1)/100])
	}
	b.ReportMetric(rate(goTimes, 50), "go-GB/s")
	b.ReportMetric(rate(cTimes, 50), "c-GB/s")
	b.ReportMetric(rate(goTimes, 50)/rate(cTimes, 50), "ratio")
	b.ReportMetric(rate(goTimes, 0)/rate(cTimes, 0), "best-ratio")
}

// page returns memory that begins at a page, as C's does.
func page(n int) []byte {
	const size = 4096
	all := make([]byte, n+size)
	skip := -int(uintptr(unsafe.Pointer(&all[0]))) & (size - 1)
	return all[skip : skip+n : skip+n]
}
