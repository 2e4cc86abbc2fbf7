package health

import (
	"slices"
	"strings"
	"testing"
)

// TestTransports: what RDMA shows is no past and no peer of TCP, and a fault that only one of them has is found there
// alone.
func TestTransports(t *testing.T) {
	tcp, rdma := shared(8, 4, 1), shared(8, 4, 2)
	rdma.h, rdma.by, rdma.weather = tcp.h, "rdma", func(int) float64 { return 20 }
	tcp.run(12)
	if list := rdma.run(12); len(list) > 0 {
		t.Fatalf("healthy: %v", ids(list))
	}
	rdma.fault = host(3, 0.5)
	found := rdma.run(3)
	if got := ids(found); !slices.Equal(got, []string{"slow-host:node3@rdma"}) || found[0].Transport != "rdma" ||
		!strings.HasPrefix(found[0].Text, "Over RDMA: node3 is slow") {
		t.Fatalf("%+v", found)
	}
	// TCP's sweeps are no end of it.
	if got := ids(tcp.run(30)); !slices.Equal(got, []string{"slow-host:node3@rdma"}) {
		t.Errorf("after more sweeps over TCP: %v", got)
	}
	for way, least := range map[Way]float64{{}: 3, {By: "rdma"}: 60} {
		p := tcp.h.Pair("node0", "node1", way)
		if len(p) < 12 || p[0].Rate.GBps() < least || p[0].Rate.GBps() > 6*least {
			t.Errorf("%+v: %d samples, %v", way, len(p), p[0].Rate)
		}
	}
	if w := tcp.h.Ways("node0", "node1"); !slices.Equal(w, []Way{{}, {By: "rdma"}}) {
		t.Errorf("%v", w)
	}
	tcp.h.Forget("node3")
	if got := ids(tcp.h.Findings(tcp.at(60))); len(got) > 0 {
		t.Errorf("of a node that was taken out: %v", got)
	}
}
