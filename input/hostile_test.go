package input

import (
	"bytes"
	"context"
	"runtime"
	"testing"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/internal/test/hostile"
)

// allocated is what a function allocates in all, in MB, and how long it takes.
func allocated(f func()) (mb uint64, took time.Duration) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	f()
	took = time.Since(began)
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) >> 20, took
}

// TestHostileDocuments reads every known attack within the budget of a question from the page: what a short text stands
// for is counted before it is made.
func TestHostileDocuments(t *testing.T) {
	for _, d := range hostile.Documents() {
		t.Run(d.Name, func(t *testing.T) {
			b := cluster.NewBudget(cluster.Limits{
				Hosts: 20_000, Names: 640_000, Devices: 200_000, Pairs: 8 << 20, Bytes: 64 << 20,
			}, nil)
			var err error
			mb, took := allocated(func() { _, err = ReadWithin(b, d.Name, bytes.NewReader(d.Data)) })
			t.Logf("%d bytes: %d MB allocated, %v: %.120v", len(d.Data), mb, took.Round(time.Millisecond), err)
			if mb > 600 {
				t.Errorf("%d bytes took %d MB; want at most 600", len(d.Data), mb)
			}
		})
	}
}

// TestHostileDocumentsStop has whoever asked go away: reading ends at once, also in the middle of a list.
func TestHostileDocumentsStop(t *testing.T) {
	for _, d := range hostile.Documents() {
		asked := 0
		b := cluster.NewBudget(cluster.Limits{}, func() error {
			if asked++; asked > 20 {
				return context.Canceled
			}
			return nil
		})
		_, took := allocated(func() { _, _ = ReadWithin(b, d.Name, bytes.NewReader(d.Data)) })
		if took > eventually.Limit { // without end, as far as anybody who asks can tell
			t.Errorf("%s goes on for %v after it was cancelled", d.Name, took)
		}
	}
}
