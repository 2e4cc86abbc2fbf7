package engine

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"busbar.dev/coll"
)

// TestRootAfterLosses: the root of an operation is a rank of the view that the user was told last,
// also when members were lost twice since.
func TestRootAfterLosses(t *testing.T) {
	const n = 5
	var all [n]*Elastic
	var wg sync.WaitGroup
	meet := filepath.Join(t.TempDir(), "meet")
	for r := range all {
		wg.Go(func() {
			e, err := JoinElastic(context.Background(), Config{Rank: r, Size: n, Meet: meet, Bind: "127.0.0.1", Transport: TCP, Timeout: 20 * time.Second})
			if err != nil {
				t.Error(err)
				return
			}
			all[r] = e
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for lost := range 2 {
		all[lost].Close()
		for _, e := range all[lost+1:] { // what the user is not told
			m := e.members
			if err := m.until(t.Context(), func() bool { return m.err != nil || m.steady && m.base.Epoch == uint32(lost+2) }); err != nil || m.failure() != nil {
				t.Fatal(err, m.failure())
			}
		}
	}
	for r, e := range all[2:] {
		r += 2
		wg.Go(func() {
			defer e.Close()
			b := []int64{int64(r)}
			op := coll.Op{Kind: coll.Broadcast, Type: coll.Int64, Bytes: 8, Root: 3} // of five
			if _, _, err := e.Run(context.Background(), Work{Op: op, Buffers: Buffers{Send: Bytes(b), Recv: Bytes(b)}}); err != nil || b[0] != 3 {
				t.Errorf("rank %d has the data of rank %d (%v); want that of rank 3", r, b[0], err)
			}
			if err := e.Finish(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
