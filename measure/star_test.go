package measure

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"busbar.dev/engine"
	"busbar.dev/internal/test/eventually"
)

// inStar runs ranks of a star in this process, on hosts n0, n1 and so on.
func inStar(t *testing.T, n int, work func(ctx context.Context, s *engine.Star)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
	defer cancel()
	meet := filepath.Join(t.TempDir(), "meet")
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			s, err := engine.JoinStar(ctx, engine.Config{
				Rank: r, Size: n, Meet: meet, Bind: "127.0.0.1", Host: fmt.Sprintf("n%d", r), Transport: engine.TCP,
				JoinTimeout: eventually.Limit,
			})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			work(ctx, s)
		})
	}
	wg.Wait()
}
