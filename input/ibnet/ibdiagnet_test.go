package ibnet

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// Two hosts of two adapters on two leaves and a spine,  written after the column names
// of ibdiagnet2.db_csv.
type madeEnd struct {
	kind string
	guid uint64
	desc string
	port int
}

var madeCables = func() [][2]madeEnd {
	leaf := func(r, port int) madeEnd { return madeEnd{"SW", 0xfc00 + uint64(r), fmt.Sprintf("leaf%d", r+1), port} }
	var list [][2]madeEnd
	for r := range 2 {
		for h := range 2 {
			list = append(list, [2]madeEnd{
				leaf(r, h+1), {"CA", 0xb800 + uint64(2*h+r), fmt.Sprintf("dgx%02d mlx5_%d", h+1, 3*r), 1},
			})
		}
		for c := range 2 {
			list = append(list, [2]madeEnd{leaf(r, 33+c), {"SW", 0xfd00, "spine1", 1 + 2*r + c}})
		}
		list = append(list, [2]madeEnd{leaf(r, 65), {"CA", 0xaa00 + uint64(r), "Mellanox Technologies Aggregation Node", 1}})
	}
	return list
}()

func dbText() string {
	var nodes, ports, links strings.Builder
	seen := map[uint64]bool{}
	for _, c := range madeCables {
		for _, e := range c {
			number, kind, device := 1, 1, 4129
			if e.kind == "SW" {
				number, kind, device = 65, 2, 54002
			}
			if !seen[e.guid] {
				seen[e.guid] = true
				fmt.Fprintf(&nodes, "\"%s\",%d,%d,1,1,0x%016x,0x%016x,0x%016x,%d,128,160,713,1\n", e.desc, number, kind, e.guid,
					e.guid, e.guid, device)
			}
			fmt.Fprintf(&ports, "0x%016x,0x%016x,%d,2,2048,5,4\n", e.guid, e.guid, e.port)
		}
		fmt.Fprintf(&links, "0x%016x,%d,0x%016x,%d\n", c[0].guid, c[0].port, c[1].guid, c[1].port)
	}
	return "# This database file was automatically generated\nSTART_NODES\n" +
		"NodeDesc,NumPorts,NodeType,ClassVersion,BaseVersion,SystemImageGUID,NodeGUID,PortGUID,DeviceID,PartitionCap,revision,VendorID,LocalPortNum\n" + nodes.String() +
		"END_NODES\n\nSTART_LINKS\nNodeGuid1,PortNum1,NodeGuid2,PortNum2\n" + links.String() +
		"END_LINKS\n\nSTART_PORTS\nNodeGuid,PortGuid,PortNum,LinkWidthActv,LinkSpeedActv,PortPhyState,PortState\n" +
		ports.String() + "END_PORTS\n"
}

func TestFabricManagers(t *testing.T) {
	for name, text := range map[string]string{
		"ibdiagnet2.db_csv": dbText(),
	} {
		r := formats[name]
		if !r.Match([]byte(text)) {
			t.Errorf("%s is not recognised", name)
			continue
		}
		f, err := r.Read("x", strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		check(t, f)
		if f.Format != name || len(f.Hosts) != 2 || f.Summary().NICs != 4 || len(f.Network.Switches) != 3 {
			t.Errorf("%s: %s, %d hosts, %+v", name, f.Format, len(f.Hosts), f.Summary())
		}
		for i := range f.Network.Switches {
			s := &f.Network.Switches[i]
			if s.Ports != 64 || s.GUID == "" {
				t.Errorf("%s: switch %+v", name, *s)
			}
		}
		up := 0
		for _, l := range f.Network.Links {
			if !l.A.ToHosts() && !l.B.ToHosts() {
				up += max(l.Count, 1)
			}
			if want := 400 * unit.Gbps; l.Rate.Value != want {
				t.Errorf("%s: a cable of %v", name, l.Rate.Value)
			}
		}
		if up != 4 {
			t.Errorf("%s: %d cables between switches", name, up)
		}
		if !slices.ContainsFunc(f.Warnings,
			func(w cluster.Warning) bool { return strings.Contains(w.Text, "aggregation nodes") }) {
			t.Errorf("%s: warnings %v", name, f.Warnings)
		}
	}
}

func FuzzReadDB(f *testing.F) { formats["ibdiagnet2.db_csv"].Fuzz(f, check, dbText()) }
