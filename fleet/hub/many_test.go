package hub

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/test/eventually"
)

// TestManyNodes orders sweeps over many nodes that measure nothing, to see what the server and the
// bus take: BUSBAR_MANY=200 go test -run TestManyNodes -v ./fleet/hub.
func TestManyNodes(t *testing.T) {
	count, err := strconv.Atoi(os.Getenv("BUSBAR_MANY"))
	if err != nil {
		t.Skip("BUSBAR_MANY says how many")
	}
	srv := server(t, t.TempDir())
	h, _ := hubOn(t, srv)
	h.cfg.Unreachable = time.Minute
	for i := range count {
		newRemote(t, srv, fleet.Name(fmt.Sprintf("n%d", i)), func(fleet.Name) float64 { return 1 })
	}
	eventually.Holds(t, "all are up", func() bool {
		up := 0
		for _, s := range h.Nodes() {
			if s.State == fleet.NodeUp {
				up++
			}
		}
		return up == count
	})
	o := pairOrder()
	o.Rounds = 10
	o.Caps.Time = time.Minute
	s, err := h.Give(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	eventually.Within(5*time.Minute, func() bool { return h.over(s.ID) })
	s, _ = h.View().Order(s.ID, time.Now())
	took := s.Since.Sub(s.Ran)
	t.Logf("%d nodes, %d of %d pairs in %v: %v each; %v", count, s.Measured, s.Parts, took,
		took/time.Duration(max(s.Measured, 1)), s.State)
	if s.State != fleet.Done || s.Measured != s.Parts {
		t.Errorf("%+v", s)
	}
}
