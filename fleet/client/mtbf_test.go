package client_test

import (
	"math"
	"testing"

	"busbar.dev/fleet"
	"busbar.dev/fleet/client"
	"busbar.dev/fleet/server"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/plan/campaign"
	"busbar.dev/query"
	"busbar.dev/unit"
)

// goodput --mtbf fleet asks a server with a store: a node that has just joined and never failed leaves the published
// time between failures, and a step knows the same. A store without nodes is refused with what to do.
func TestMTBFOfFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server with a store")
	}
	q := query.Goodput{Job: query.Job{Cluster: "dgx-h100:4", Model: "llama3-8b"}}
	q.MTBF = "fleet"
	empty := serve(t, nil)
	if _, err := q.Run(t.Context(),
		query.Env{Fleet: client.New(client.Options{Folder: empty.options.Folder})}); err == nil {
		t.Error("a fleet without nodes has a history")
	}
	empty.stop()
	s := serve(t, func(o *server.Options) { o.NoLocal = false })
	c := client.New(client.Options{Folder: s.options.Folder})
	eventually.Holds(t, "the machine is a node", func() bool {
		var got fleet.NodesReply
		return c.Call(t.Context(), "GET", "/api/fleet/nodes?brief=1", nil, &got) == nil && len(got.Nodes) == 1
	})
	d, err := q.Run(t.Context(), query.Env{Fleet: c})
	if err != nil {
		t.Fatal(err)
	}
	h := d.History
	if h == nil || h.Nodes != 1 || h.Failures != 0 || h.Observed < 0 || h.Observed > unit.Hour {
		t.Fatalf("history %+v; expected one node without failures", h)
	}
	if prior := campaign.MTBF().Value / 8; math.Abs(float64(h.Between/prior)-1) > 1e-3 || d.Asked.Share <= 0 ||
		d.Asked.Share >= 1 {
		t.Errorf("%v between failures, goodput %v; expected the published %v and a share", h.Between, d.Asked.Share, prior)
	}
}
