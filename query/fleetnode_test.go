package query

import (
	"encoding/json"
	"fmt"
	"net"
	"testing"

	"busbar.dev/engine"
	"busbar.dev/engine/ranks"
	"busbar.dev/fleet"
	"busbar.dev/internal/test/rdmatest"
)

// TestHostileRDMALead: a node that leads a part of RDMA asks the other for what only busbar check does, which once made
// its agent panic.
func TestHostileRDMALead(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	p := &fleet.Part{
		ID: "p", Order: "o", Ranks: []fleet.Name{"evil", "b"}, Rank: 1, Meet: l.Addr().String(), Secret: "0123456789abcdef",
		What: fleet.What{Measure: fleet.MeasurePairs, By: fleet.RDMA, Small: 8, Large: 1 << 20, Iters: 5},
	}
	work, err := json.Marshal(p.What)
	if err != nil {
		t.Fatal(err)
	}
	node := FleetNode{
		With: Programs{Find: ranks.FindProgram, Run: ranks.Program, Sys: rdmatest.Sys("a")}, Bind: "127.0.0.1",
		Perftest: rdmatest.Install(t, map[string]rdmatest.Device{"a": {}}),
	}
	ended := make(chan error, 1)
	go func() {
		_, err := node.RDMA(t.Context(), p, func(int, int, string) {})
		ended <- err
	}()
	s, err := engine.JoinStar(t.Context(), engine.Config{
		Size: 2, Meet: p.Meet, Job: p.ID, Secret: p.Secret, Work: string(work), Transport: engine.TCP, Bind: "127.0.0.1",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, order := range []string{
		`{"id":%d,"do":"local"}`, `{"id":%d,"do":"local","rdma":{}}`, `{"id":%d,"do":"ports"}`, `{"id":%d,"do":"pair"}`,
		`{"id":%d,"do":"sum","seat":{"rank":1,"size":2,"meet":"127.0.0.1:1"},"limit":1000000000}`,
		`{"id":%d,"do":"rdma-run","rdma":{"server":"--help:1"},"limit":1000000000}`,
	} {
		if err := s.Order(1, json.RawMessage(fmt.Sprintf(order, i))); err != nil {
			t.Fatal(err)
		}
		x := <-s.Replies()
		var r checkReply
		if err := json.Unmarshal(x.Body, &r); x.Err != nil || err != nil || r.Failed == "" {
			t.Fatalf("%s: %v, %v, %s", order, x.Err, err, x.Body)
		}
		t.Logf("%s: %s", order, r.Failed)
	}
	if err := s.Order(1, json.RawMessage(`{"do":"end"}`)); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
