package ibnet

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

func readLinkInfo(t *testing.T, text string) *cluster.Fragment {
	t.Helper()
	if !LinkInfo.Match([]byte(text)) {
		t.Fatalf("not recognised: %.80q", text)
	}
	f, err := LinkInfo.Read("x", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	check(t, f)
	return f
}

// Synthetic, in the layout of infiniband-diags 44.
const twoHosts = `Switch: 0x0000000000000001 leaf1:
           1    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       2    1[  ] "n1 mlx5_0" ( Could be 53.125 Gbps)
           1    2[  ] ==( 2X        53.125 Gbps Active/  LinkUp)==>       3    1[  ] "n2 mlx5_0" (Could be 4X )
           1    3[  ] ==(                Down/Disabled)==>             [  ] "" ( )
           1    4[  ] ==( 4X        53.125 Gbps Initialize/  LinkUp)==>    "Port not available"
CA: n1 mlx5_0:
      0x0000000000000011      2    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       1    1[  ] "leaf1" ( Could be 53.125 Gbps)
CA: n2 mlx5_0:
      0x0000000000000021      3    1[  ] ==( 2X        53.125 Gbps Active/  LinkUp)==>       1    2[  ] "leaf1" (Could be 4X )
`

func TestLinkInfo(t *testing.T) {
	f := readLinkInfo(t, twoHosts)
	if len(f.Network.Links) != 4 || len(f.Hosts) != 2 || len(f.Warnings) != 0 || f.Network.Switches[0].Ports != 4 {
		t.Fatalf("%+v, %v", f.Summary(), f.Warnings)
	}
	for i, want := range []struct {
		state     cluster.State
		rate, max unit.Rate
	}{{cluster.Up, 100, 200}, {cluster.Up, 100, 200}, {cluster.Down, 0, 0}, {cluster.Init, 200, 0}} {
		l := f.Network.Links[i]
		if l.State != want.state || l.Rate.Value != want.rate*unit.Gbps || l.Max.Value != want.max*unit.Gbps ||
			l.A.Port != i+1 {
			t.Errorf("port %d: %+v", i+1, l)
		}
	}
	if f.Hosts[0].IDs[0].GUID != "0x0000000000000011" {
		t.Errorf("%+v", f.Hosts[0])
	}
}

// Lines without the node above, as grep leaves them, are of the node with their LID, and neighbours name what the scan
// itself does not.
func TestLinkInfoByLID(t *testing.T) {
	const link = "  1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>  "
	f := readLinkInfo(t, "0x0000000000000011      4  "+link+"  2   17[  ] \"MF0;sw1:MSB7700/U1\" ( )\n"+
		"           2   17[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       4    1[  ] \"n02 HCA-1\" ( )\n"+
		"           2   18[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       1    1[  ] \"n01 HCA-1\" ( )\n")
	if s := f.Summary(); s.Nodes != 2 || s.Switches != 1 || len(f.Network.Links) != 2 ||
		f.Hosts[0].Name != "n01" || f.Hosts[1].Name != "n02" || f.Hosts[1].IDs[0].GUID != "0x0000000000000011" ||
		f.Network.Switches[0].Name != "sw1" {
		t.Errorf("%+v, %+v, %v", s, f.Hosts, f.Warnings)
	}
}

// Two hosts on one cable are two, whether or not somebody named their adapters.
func TestLinkInfoWithoutSwitch(t *testing.T) {
	const text = `CA: MT25408 ConnectX Mellanox Technologies:
      0x0002c90300000779      4    1[  ] ==( 4X           5.0 Gbps Active/  LinkUp)==>       3    1[  ] "n1 mlx4_0" ( )
CA: n1 mlx4_0:
      0x0002c90300000f79      3    1[  ] ==( 4X           5.0 Gbps Active/  LinkUp)==>       4    1[  ] "MT25408 ConnectX Mellanox Technologies" ( )
`
	if f := readLinkInfo(t, text); f.Summary().Nodes != 2 || len(f.Network.Links) != 1 {
		t.Errorf("%+v, %v", f.Summary(), f.Warnings)
	}
}

func TestLinkInfoSpeeds(t *testing.T) {
	for text, want := range map[string]string{
		"4X           2.5 Gbps": "4xSDR", "4X           5.0 Gbps": "4xDDR", "4X          10.0 Gbps": "4xQDR",
		"4X  10.0 Gbps (FDR10)": "4xFDR10", "4X       14.0625 Gbps": "4xFDR", "4X        106.25 Gbps": "4xNDR",
		"4X         212.5 Gbps": "4xXDR",
	} {
		l, _, ok := parseLink("1    1[  ] ==( " + text +
			" Active/  LinkUp) (HOQ:18 VL_Stall:7)==>       2    1[  ] \"n1 mlx5_0\" ( )")
		if !ok || l.is.String() != want || l.could != l.is || l.state != cluster.Up {
			t.Errorf("%s: %v %+v", text, ok, l)
		}
	}
	l, _, ok := parseLink(`1    1[  ] ==( 4X          10.0 Gbps Active/  LinkUp)==>       2    1[ 3] "a "b" c" ( Could be FDR10 (Found link at QDR but expected speed is FDR10))`)
	if !ok || l.could.speed != speeds()["FDR10"] || l.far.desc != `a "b" c` {
		t.Errorf("%v %+v", ok, l)
	}
}

// A width, a speed or a state in words that nobody here has seen, or none, leaves the link.
func TestLinkInfoOddWords(t *testing.T) {
	qdr := speeds()["QDR"]
	up, speed := cluster.Up, width{speed: qdr}
	for text, want := range map[string]row{
		"4X          10.0 Gbps ???":             {is: width{4, qdr}},
		"4X          10.0 Gbps No state change": {is: width{4, qdr}},
		"10.0 Gbps Active":                      {is: speed, state: up},
		"undefined (0)     10.0 Gbps Active":    {state: up},
		"4X          undefined (9) Active":      {is: width{lanes: 4}, state: up},
		"Active":                                {state: up},
	} {
		l, _, ok := parseLink("1    1[  ] ==( " + text + "/  LinkUp)==>       2    1[  ] \"n1 mlx5_0\" ( )")
		if !ok || l.is != want.is || l.state != want.state || l.far.num != 1 {
			t.Errorf("%s: %v %+v", text, ok, l)
		}
	}
}

func TestLinkInfoRefuses(t *testing.T) {
	for _, text := range []string{
		"", "a ==( b )==> c", "CA: n1:\n", "1 1[ ] ==( 4X 10.0 Gbps )==> 1 1[ ] \"x\" ( )",
	} {
		if LinkInfo.Match([]byte(text)) {
			t.Errorf("taken for iblinkinfo: %q", text)
		}
		if _, err := LinkInfo.Read("log", strings.NewReader(text)); err == nil ||
			!strings.Contains(err.Error(), "no line of iblinkinfo; expected such as 2 1[ ] ==(") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Synthetic, in the layout of ibqueryerrors -r, whose cables are left to iblinkinfo.
func TestErrorsWithLinkInfo(t *testing.T) {
	const text = `Errors for "node10 mlx5_0"
   GUID 0x2c903003000a1 port 1: [SymbolErrorCounter == 5 (5.000)] [PortXmitData == 99 (396.000B)]
       Link info:     16   1[  ] ==( 1X        53.125 Gbps Active/  LinkUp)==>  0x0002c90300100003      3    2[  ] "leaf3" (Could be 4X )
Errors for 0x2c90300100003 "leaf3"
   GUID 0x2c90300100003 port ALL: [SymbolErrorCounter == 1234]
   GUID 0x2c90300100003 port 0: [VL15Dropped == 3]
   GUID 0x2c90300100003 port 2: [SymbolErrorCounter == 1234] [torn
Data Counters for 0x2c90300100004 "leaf4"
   GUID 0x2c90300100004 port 1: [PortXmitData == 7 (28.000B)]

## Summary: 22 nodes checked, 2 bad nodes found
##          402 ports checked, 2 ports have errors beyond threshold
`
	if !Errors.Match([]byte(text)) || LinkInfo.Match([]byte(text)) {
		t.Error("not recognised, or taken for iblinkinfo")
	}
	f, err := Errors.Read("x", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	check(t, f)
	if len(f.Network.Links) != 1 || len(f.Network.Switches) != 1 || len(f.Hosts) != 1 ||
		!warned(f, "a counter without its end") {
		t.Fatalf("%+v, %v", f.Summary(), f.Warnings)
	}
	l := f.Network.Links[0]
	if want := map[string]uint64{"A.SymbolErrorCounter": 1234}; !maps.Equal(l.Counters, want) || !l.Loose() {
		t.Errorf("%+v", l)
	}
	if id := f.Hosts[0].IDs[0]; f.Hosts[0].Name != "node10" || id.GUID != "0x0002c903003000a1" ||
		id.Counters["SymbolErrorCounter"] != 5 {
		t.Errorf("%+v", f.Hosts[0])
	}
	clean := "## Summary: 22 nodes checked, 0 bad nodes found\n##          402 ports checked, 0 ports have errors " +
		"beyond threshold\n"
	if f, err := Errors.Read("x", strings.NewReader(clean)); !Errors.Match([]byte(clean)) || err != nil ||
		len(f.Network.Links) != 0 {
		t.Errorf("a clean fabric: %v", err)
	}
	if _, err := Errors.Read("x", strings.NewReader("Errors for nothing\n")); err == nil {
		t.Error("no error for other text")
	}
}

func TestPerf(t *testing.T) {
	const text = "# Port counters: Lid 3 port 255 (CapMask: 0x1300)\nSymbolErrorCounter:....9\n" +
		"# Port counters: Lid 3 port 2 (CapMask: 0x1300)\nPortSelect:....2\nSymbolErrorCounter:........7\n" +
		"XmtData:.........12\nLinkDownedCounter:....99999999999999999999999\nVL15Dropped:....0\n" +
		"# Port extended counters: Lid 3 port 2 (CapMask: 0x1300 CapMask2: 0x0000000)\nSymbolErrorCounter:....8\n"
	f, err := Perf.Read("x", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	check(t, f)
	if len(f.Network.Links) != 1 || !maps.Equal(f.Network.Links[0].Counters,
		map[string]uint64{"A.SymbolErrorCounter": 8}) || !warned(f, "sums over all ports") ||
		!warned(f, "1 LID may be an adapter's") {
		t.Errorf("%+v, %v", f.Network.Links, f.Warnings)
	}
	if _, err := Perf.Read("x", strings.NewReader("# Port counters: Lid 0 port 2\n")); err == nil {
		t.Error("LID 0 accepted")
	}
}

func TestPortReport(t *testing.T) {
	var b strings.Builder
	for p := 1; p <= 4; p++ {
		fmt.Fprintf(&b, "SW     1 %2d 0x0000000000000001 4x HDR - CA    %2d  %d 0x00000000000000%02x ( 'it's leaf1' - 'n1 "+
			"mlx5_%d' )\n", p, 10+p, 1+p%2, 16+p, (p-1)/2)
		fmt.Fprintf(&b, "CA    %2d  %d 0x00000000000000%02x 4x HDR - SW     1 %2d 0x0000000000000001 ( 'n1 mlx5_%d' - "+
			"'it's leaf1' )\n", 10+p, 1+p%2, 16+p, p, (p-1)/2)
	}
	b.WriteString("RT     9  1 0x0000000000000099 4x HDR                                    'gw'\n")
	if !Ports.Match([]byte(b.String())) {
		t.Error("not recognised")
	}
	f, err := Ports.Read("x", strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	check(t, f)
	// Two cards with two ports each, which the report lists by port GUID only.
	if s := f.Summary(); s.Nodes != 1 || s.NICs != 2 || s.Switches != 1 || len(f.Network.Links) != 4 ||
		f.Network.Switches[0].Ports != 4 || f.Network.Switches[0].Name != "it's leaf1" {
		t.Errorf("%+v, %+v", s, f.Network.Switches)
	}
	if !warned(f, "1 router") || len(f.Warnings) != 1 {
		t.Errorf("%v", f.Warnings)
	}
	if _, err := Ports.Read("x", strings.NewReader("SW 1 2 3\nCA x\n")); err == nil {
		t.Error("no error for other text")
	}
}
