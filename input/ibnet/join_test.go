package ibnet

import (
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// The counters of ibqueryerrors and the remarks of iblinkinfo land on the cables
// of ibnetdiscover, in whatever order the files are given.
func TestJoined(t *testing.T) {
	scan := open(t, "ibnetdiscover", "ib/sim-ibnetdiscover.txt")
	errs := open(t, "ibqueryerrors", "ib/sim-ibqueryerrors.txt")
	info := open(t, "iblinkinfo", "ib/sim-iblinkinfo.txt")
	perf := open(t, "perfquery", "ib/sim-perfquery.txt")
	for name, frags := range map[string][]*cluster.Fragment{
		"scan first": {scan, errs, info}, "errors first": {errs, scan, info}, "info first": {info, errs, scan},
		"perfquery first": {perf, scan, errs, info}, "perfquery last": {scan, errs, info, perf},
	} {
		c := cluster.Join(frags...)
		if s := c.Summary(); s.Nodes != 16 || s.NICs != 16 || s.Switches != 6 {
			t.Errorf("%s: %+v", name, s)
		}
		whole := 0
		for i := range c.Network.Links {
			l := &c.Network.Links[i]
			if l.A.Switch >= 0 && (l.B.Switch >= 0 || len(l.B.Hosts) > 0) {
				whole++
			}
			at := func(sw string, port int) string {
				for letter, e := range map[string]cluster.End{"A.": l.A, "B.": l.B} {
					if !e.ToHosts() && c.Network.Switches[e.Switch].Name == sw && e.Port == port {
						return letter
					}
				}
				return ""
			}
			if end := at("leaf3", 2); end != "" && (l.Counters[end+"SymbolErrorCounter"] != 1234 ||
				l.Rate.Value != 50*unit.Gbps || l.Max.Value != 200*unit.Gbps) {
				t.Errorf("%s: leaf3[2]: %+v", name, l)
			}
			if end := at("leaf2", 33); end != "" && (l.Counters[end+"LinkDownedCounter"] != 7 ||
				l.Counters[end+"PortXmitWait"] != 4000000 || l.Rate.Value != 100*unit.Gbps) {
				t.Errorf("%s: leaf2[33]: %+v", name, l)
			}
		}
		if whole != 32 {
			t.Errorf("%s: %d cables", name, whole)
		}
		t.Log(c.Warnings)
	}
}
