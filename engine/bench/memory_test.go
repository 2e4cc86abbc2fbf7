package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// TestRunFrees lets two ranks measure five times over shared memory: it goes with the measurement
// that took it, not with the process.
func TestRunFrees(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("shared memory needs Linux")
	}
	size := 4 << 20
	if testing.Short() {
		size = 1 << 20
	}
	p := Plan{Op: coll.Op{Kind: coll.AllReduce}, Sizes: []unit.Bytes{unit.Bytes(size)}, Iters: 2, Check: true}
	meet := filepath.Join(t.TempDir(), "meet")
	var wg sync.WaitGroup
	var before, after int64
	for r := range 2 {
		wg.Go(func() {
			cfg := engine.Config{
				Rank: r, Size: 2, Timeout: 2 * time.Minute, Meet: meet, Bind: "127.0.0.1", Transport: engine.Shm,
			}
			g, err := engine.Join(t.Context(), cfg)
			if err != nil {
				t.Error(err)
				return
			}
			for k := range 5 {
				err := Run(t.Context(), g, p, right)
				_, met := g.Run(t.Context(), nil, coll.Op{Kind: coll.Barrier}, engine.Buffers{})
				if err := errors.Join(err, met); err != nil {
					t.Errorf("run %d: %v", k, err)
				}
				if r == 0 && k == 0 {
					before = sharedMemory(t)
				}
			}
			if r == 0 {
				after = sharedMemory(t)
			}
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if grown := after - before; grown > int64(size) {
		t.Errorf("four runs on buffers of 4 times %d bytes left %d bytes", size, grown)
	}
}

// right is an error where a sweep has wrong values.
func right(s *result.Sweep) error {
	for _, r := range s.Rows() {
		if *r.Wrong != 0 {
			return fmt.Errorf("%d wrong values", *r.Wrong)
		}
	}
	return nil
}

// sharedMemory is what this process holds.
func sharedMemory(t *testing.T) int64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "RssShmem:" {
			kib, _ := strconv.ParseInt(f[1], 10, 64)
			return kib << 10
		}
	}
	t.Skip("the system does not say how much shared memory a process holds")
	return 0
}

// TestPlanMemory: what a plan says it needs is what its buffers take.
func TestPlanMemory(t *testing.T) {
	for _, tt := range []struct {
		kind coll.Kind
		want unit.Bytes
	}{{coll.AllReduce, 2 << 20}, {coll.AllGather, 2 << 20}, {coll.Barrier, 0}} {
		p := Plan{Op: coll.Op{Kind: tt.kind}, Sizes: []unit.Bytes{8, 1 << 20}, Algo: "ring", Iters: 1}
		if tt.kind == coll.Barrier {
			p.Sizes, p.Algo = []unit.Bytes{0}, "auto"
		}
		if got := p.Memory(4); got < tt.want || got > tt.want*3/2 {
			t.Errorf("%s: %v; expected about %v", tt.kind, got, tt.want)
		}
	}
	if got := (&Plan{
		Op: coll.Op{Kind: coll.AllReduce}, Sizes: []unit.Bytes{16 << 40}, Iters: 1,
	}).Memory(1024); got < 32<<40 {
		t.Errorf("16 TiB: %v", got)
	}
}
