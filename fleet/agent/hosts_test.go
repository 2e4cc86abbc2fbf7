package agent

import (
	"net"
	"strings"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/fleet"
	"busbar.dev/unit"
)

// TestConnectsToNamedHosts: a node of a part connects to the hosts that the server named and to nobody else, whatever
// addresses the table of rank 0 has.
func TestConnectsToNamedHosts(t *testing.T) {
	if l, err := net.Listen("tcp", "127.0.0.2:0"); err != nil {
		t.Skip("there is one loopback address here: ", err)
	} else {
		l.Close()
	}
	f := newFixture(t)
	first, _ := f.agent("a", nil)
	f.agent("b", func(c *Config) {
		_, port, _ := net.SplitHostPort(c.Meet)
		c.Meet, c.Bind = net.JoinHostPort("127.0.0.2", port), "127.0.0.2"
		c.Measure = ThisProgram("127.0.0.2", "").Measure
	})
	f.agent("c", nil)
	p := pairPart("all", []fleet.Name{"a", "b", "c"}, first.Meet)
	p.Hosts = []string{"127.0.0.1", "127.0.0.3", "127.0.0.1"} // b is not where the server knows it
	p.What = fleet.What{Measure: fleet.MeasureCollective, Op: coll.AllReduce, Sizes: []unit.Bytes{1024}, Iters: 1}
	for i, n := range p.Ranks {
		p.Rank = i
		f.until(string(n)+" begins", func() bool { return f.ask(n, p).Begins })
	}
	f.until("c tells", func() bool { return len(f.sent("c", fleet.KindMeasured)) > 0 })
	if m := f.sent("c", fleet.KindMeasured)[0].Measured; !strings.Contains(m.Failed, "127.0.0.2 is no node of part all") {
		t.Errorf("c connected to 127.0.0.2, or did not say why not: %q", m.Failed)
	}
}
