package lldp

import (
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/readertest"
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
