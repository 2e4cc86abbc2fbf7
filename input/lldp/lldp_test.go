package lldp

import (
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/readertest"
	"busbar.dev/unit"
)

// Made samples: two NICs on two leaves, and a management port that sees another host.
var samples = []string{
	`-------------------------------------------------------------------------------
LLDP neighbors:
-------------------------------------------------------------------------------
Interface:    eth0, via: LLDP, RID: 1, Time: 0 day, 00:05:08
  Chassis:
    ChassisID:    mac 44:38:39:00:00:01
    SysName:      leaf01
    SysDescr:     a switch
    Capability:   Bridge, on
    Capability:   Router, on
  Port:
    PortID:       ifname swp17
    PortDescr:    to dgx
    TTL:          120
Interface:    eth1, via: LLDP, RID: 2, Time: 0 day, 00:05:08
  Chassis:
    ChassisID:    mac 44:38:39:00:00:02
    SysName:      leaf02
    Capability:   Bridge, on
  Port:
    PortID:       mac 44:38:39:00:00:12
    PortDescr:    swp17
Interface:    eno1, via: LLDP, RID: 3, Time: 0 day, 00:05:08
  Chassis:
    ChassisID:    mac 44:38:39:00:00:03
    SysName:      other-host
    Capability:   Bridge, off
    Capability:   Station, on
  Port:
    PortID:       mac 44:38:39:00:00:13
`,
	`{"lldp": {"interface": [
 {"eth0": {"via": "LLDP", "chassis": {"leaf01": {"id": {"type": "mac", "value": "44:38:39:00:00:01"}, "capability": [{"type": "Bridge", "enabled": true}, {"type": "Router", "enabled": true}]}}, "port": {"id": {"type": "ifname", "value": "swp17"}, "descr": "to dgx"}}},
 {"eth1": {"via": "LLDP", "chassis": {"leaf02": {"id": {"type": "mac", "value": "44:38:39:00:00:02"}, "capability": {"type": "Bridge", "enabled": true}}}, "port": {"id": {"type": "mac", "value": "44:38:39:00:00:12"}, "descr": "swp17"}}},
 {"eno1": {"via": "LLDP", "chassis": {"other-host": {"id": {"type": "mac", "value": "44:38:39:00:00:03"}, "capability": {"type": "Station", "enabled": true}}}, "port": {"id": {"type": "mac", "value": "44:38:39:00:00:13"}}}}]}}`,
	`lldp.eth0.via=LLDP
lldp.eth0.chassis.name=leaf01
lldp.eth0.chassis.Bridge.enabled=on
lldp.eth0.port.ifname=swp17
lldp.eth1.chassis.name=leaf02
lldp.eth1.chassis.Bridge.enabled=on
lldp.eth1.port.ifname=swp17
lldp.eno1.chassis.name=other-host
lldp.eno1.chassis.Bridge.enabled=off
`,
}

func TestRead(t *testing.T) {
	for i, text := range samples {
		if !Match([]byte(text)) {
			t.Errorf("sample %d is not recognised", i)
		}
		f, err := Read("dgx01", strings.NewReader(text))
		if err != nil {
			t.Errorf("sample %d: %v", i, err)
			continue
		}
		n := &f.Network
		if len(f.Hosts) != 1 || f.Types[0].Count(cluster.NIC) != 2 || len(n.Switches) != 2 || len(n.Links) != 2 ||
			!n.Cabled() {
			t.Errorf("sample %d: %d hosts, switches %+v, links %+v", i, len(f.Hosts), n.Switches, n.Links)
			continue
		}
		for k, l := range n.Links {
			if n.Switches[l.A.Switch].Name != []string{"leaf01", "leaf02"}[k] || l.A.Port != 17 || l.B.NIC != k {
				t.Errorf("sample %d: link %d is %+v", i, k, l)
			}
		}
		if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].Text, "other-host, forwards nothing") {
			t.Errorf("sample %d: warnings %v", i, f.Warnings)
		}
	}
	for name, want := range map[string]int{
		"swp17": 17, "Ethernet48": 48, "Ethernet49/1": 49, "Ethernet49/2": 1049, "swp1s2": 2001, "Ethernet3/1/2": 0, "": 0,
		"mgmt": 0,
	} {
		if got := portNumber(name); got != want {
			t.Errorf("port %q: %d, want %d", name, got, want)
		}
	}
}

// A number of the switch's own for a port ("local 539") is not the port's; the description says which it is.
func TestLocalPort(t *testing.T) {
	const mine = "    PortID:       mac 44:38:39:00:00:12\n    PortDescr:    swp17\n"
	for other, want := range map[string]int{
		"    PortID:       local 539\n    PortDescr:    swp9\n": 9, "    PortID:       local 539\n": 0, mine: 17,
	} {
		f, err := Read("dgx01", strings.NewReader(strings.Replace(samples[0], mine, other, 1)))
		if err != nil || len(f.Network.Links) != 2 || f.Network.Links[1].A.Port != want {
			t.Errorf("%s: %+v, %v; want port %d", other, f.Network.Links, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	readertest.Reader{Match: Match, Read: Read}.Fuzz(f, func(*testing.T, *cluster.Fragment) {}, samples...)
}

const sonic = "admin@leaf-1:~$ show lldp table\nCapability codes: (R) Router, (B) Bridge, (O) Other\n" +
	"LocalPort    RemoteDevice    RemotePortID       Capability    RemotePortDescr\n" +
	"-----------  --------------  -----------------  ------------  -----------------\n" +
	"Ethernet0    spine1          etp0               BR            Ethernet0\n" +
	"Ethernet8    node1           0c:42:a1:00:00:01                ens1f0np0\n" +
	"Ethernet16   node2           0c:42:a1:00:00:02                ens1f0np0\n" +
	"eth0         oob             swp10              BR            swp10\n" +
	"--------------------------------------------------\nTotal entries displayed:  4\n"

const nvue = "cumulus@leaf-1:mgmt:~$ nv show interface lldp\n" +
	"Interface  Speed  Type  Remote Host      Remote Port      \n" +
	"---------  -----  ----  ---------------  -----------------\n" +
	"eth0       1G     eth   oob-mgmt-switch  swp10            \n" +
	"swp8       400G   swp   node1            48:b0:2d:76:ee:8e\n" +
	"swp16      400G   swp   node2            48:b0:2d:86:c1:f8\n" +
	"swp51      400G   swp   spine1           swp1             \n"

const arista = "leaf-1#show lldp neighbors\nLast table change time   : 0:01:02 ago\n" +
	"Port          Neighbor Device ID       Neighbor Port ID    TTL\n" +
	"------------- ------------------------ ------------------- ---\n" +
	"Et8/1         node1                    ens1f0np0           120\n" +
	"Et16/1        node2                    ens1f0np0           120\n" +
	"Et51/1        spine1                   Ethernet1/1         120\n" +
	"Ma1           oob                      Ethernet3           120\n"

const aristaAPI = `{"jsonrpc": "2.0", "result": [{}, {"tablesInserts": 3, "lldpNeighbors": [
 {"ttl": 120, "neighborDevice": "node1", "neighborPort": "ens1f0np0", "port": "Ethernet8/1"},
 {"ttl": 120, "neighborDevice": "node2", "neighborPort": "ens1f0np0", "port": "Ethernet16/1"},
 {"ttl": 120, "neighborDevice": "spine1", "neighborPort": "Ethernet1/1", "port": "Ethernet51/1"}]}]}`

func TestReadTable(t *testing.T) {
	for name, text := range map[string]string{"sonic": sonic, "nvue": nvue, "arista": arista, "api": aristaAPI} {
		if !MatchTable([]byte(text)) {
			t.Errorf("%s is not recognised", name)
		}
		f, err := ReadTable("site/leaf-1.txt", strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		n := &f.Network
		if len(f.Hosts) != 2 || len(n.Switches) != 2 || len(n.Links) != 3 || n.Switches[0].Name != "leaf-1" || !n.Cabled() {
			t.Errorf("%s: hosts %+v, switches %+v, links %+v", name, f.Hosts, n.Switches, n.Links)
			continue
		}
		for _, l := range n.Links {
			if l.B.ToHosts() && l.A.Port != 8 && l.A.Port != 16 || !l.B.ToHosts() && n.Switches[l.B.Switch].Name != "spine1" {
				t.Errorf("%s: %+v", name, l)
			}
			if name == "nvue" && l.Rate.Value != 400*unit.Gbps {
				t.Errorf("%s: rate %v", name, l.Rate.Value)
			}
		}
	}
}

func FuzzReadTable(f *testing.F) {
	readertest.Reader{Match: MatchTable, Read: ReadTable}.Fuzz(f, func(*testing.T, *cluster.Fragment) {}, sonic, nvue,
		arista, aristaAPI)
}
