package ibnet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// Two hosts of two adapters on two leaves and a spine, the same fabric in each form; written after ibutils' Fabric.cpp,
// the column names of ibdiagnet2.db_csv, and the fields of UFM's REST API.
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

func lstText() string {
	var b strings.Builder
	for _, c := range madeCables {
		for _, e := range c {
			ports, device := 1, "1021"
			if e.kind == "SW" {
				ports, device = 0x41, "d2f2"
			}
			fmt.Fprintf(&b, "{ %s Ports:%02x SystemGUID:%016x NodeGUID:%016x PortGUID:%016x VenID:000002c9 DevID:%s "+
				"Rev:000000a0 {%s} LID:%04x PN:%02x } ",
				e.kind, ports, e.guid, e.guid, e.guid, device, e.desc, e.guid&0xff+1, e.port)
		}
		b.WriteString("PHY=4x LOG=ACT SPD=100\n")
	}
	return b.String()
}

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

func ufmText() string {
	var items []string
	for _, c := range madeCables {
		end := func(side string, e madeEnd) string {
			shown, desc := "HCA-1/1", e.desc
			if e.kind == "SW" {
				shown, desc = fmt.Sprint(e.port), fmt.Sprintf("%s:%d", e.desc, e.port)
			}
			return fmt.Sprintf(`"%[1]s_guid":"%016[2]x","%[1]s_port":"%[3]d","%[1]s_port_dname":"%[4]s","%[1]s_port_node_description":"%[5]s"`, side, e.guid, e.port, shown, desc)
		}
		items = append(items, "{"+end("source", c[0])+","+end("destination", c[1])+`,"width":"4x","severity":"Info"}`)
	}
	return "[" + strings.Join(items, ",\n") + "]"
}

func TestFabricManagers(t *testing.T) {
	for name, text := range map[string]string{
		"ibdiagnet2.lst": lstText(), "ibdiagnet2.db_csv": dbText(), "UFM links": ufmText(),
		"ibdiagnet2.net_dump": netDumpText(),
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
			if name != "UFM links" && s.Ports != 64 || s.GUID == "" {
				t.Errorf("%s: switch %+v", name, *s)
			}
		}
		up := 0
		for _, l := range f.Network.Links {
			if !l.A.ToHosts() && !l.B.ToHosts() {
				up += max(l.Count, 1)
			}
			if want := 400 * unit.Gbps; name != "UFM links" && l.Rate.Value != want {
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

// netDumpText has every switch's ports as rows. Leaves' first two ports are the halves of a splitter, 1/1 and 1/2.
func netDumpText() string {
	rows := map[uint64][]string{}
	names := map[uint64]string{}
	row := func(near, far madeEnd) {
		names[near.guid] = near.desc
		rows[near.guid] = append(rows[near.guid], fmt.Sprintf("%-8s : %-4d : ACT : LINK UP : 5 : 4x : 100 : "+
			"MLNX_RS_271_257_PLR : NO-RTR : 0x%016x : %-3d : 7 : \"%s\"", fmt.Sprintf("%d/%d", (near.port+1)/2, 2-near.port%2),
			near.port, far.guid, far.port, far.desc))
	}
	for _, c := range madeCables {
		row(c[0], c[1])
		if c[1].kind == "SW" {
			row(c[1], c[0])
		}
	}
	var b strings.Builder
	b.WriteString("# This file was automatically generated\n")
	for _, guid := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(&b, "\"%s\", Mellanox, 0x%016x, LID 3\n#  : IB# : Sta  : PhysSta : MTU : LWA : LSA : FEC mode : Retran "+
			": Neighbor Guid : N# : NLID : Neighbor Description\n%s\n", names[guid], guid, strings.Join(rows[guid], "\n"))
		for port := 40; port <= 65; port++ {
			if port < 65 || guid == 0xfd00 {
				fmt.Fprintf(&b, "%d/1 : %d : DOWN : POLL : N/A : N/A : N/A : N/A : N/A :  :  :  :\n", (port+1)/2, port)
			}
		}
	}
	return b.String()
}

func FuzzReadNetDump(f *testing.F) {
	formats["ibdiagnet2.net_dump"].Fuzz(f, check, netDumpText(),
		"\"a, b\", V, 0x1, LID 1\n# : IB# : LWA : Neighbor Guid : N#\n1 : 1 : 4x : 0x1 : 2\n")
}

func FuzzReadLST(f *testing.F) {
	formats["ibdiagnet2.lst"].Fuzz(f, check, lstText(), "{ CA Ports:02 NodeGUID:01 PortGUID:02 {a {b} c} LID:0005 PN:01 "+
		"} { SW Ports:24 NodeGUID:03 LID:0002 PN:14 } PHY=4x LOG=ACT SPD=2.5\n")
}

func FuzzReadDB(f *testing.F)  { formats["ibdiagnet2.db_csv"].Fuzz(f, check, dbText()) }
func FuzzReadUFM(f *testing.F) { formats["UFM links"].Fuzz(f, check, ufmText()) }
