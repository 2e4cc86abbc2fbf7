package lldp

import (
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/readertest"
)

// A made sample: two NICs on two leaves, and a management port that sees another host.
const sample = `{"lldp": {"interface": [
 {"eth0": {"via": "LLDP", "chassis": {"leaf01": {"id": {"type": "mac", "value": "44:38:39:00:00:01"}, "capability": [{"type": "Bridge", "enabled": true}, {"type": "Router", "enabled": true}]}}, "port": {"id": {"type": "ifname", "value": "swp17"}, "descr": "to dgx"}}},
 {"eth1": {"via": "LLDP", "chassis": {"leaf02": {"id": {"type": "mac", "value": "44:38:39:00:00:02"}, "capability": {"type": "Bridge", "enabled": true}}}, "port": {"id": {"type": "mac", "value": "44:38:39:00:00:12"}, "descr": "swp17"}}},
 {"eno1": {"via": "LLDP", "chassis": {"other-host": {"id": {"type": "mac", "value": "44:38:39:00:00:03"}, "capability": {"type": "Station", "enabled": true}}}, "port": {"id": {"type": "mac", "value": "44:38:39:00:00:13"}}}}]}}`

func TestRead(t *testing.T) {
	if !Match([]byte(sample)) {
		t.Error("not recognised")
	}
	f, err := Read("dgx01", strings.NewReader(sample))
	if err != nil {
		t.Fatal(err)
	}
	n := &f.Network
	if len(f.Hosts) != 1 || f.Types[0].Count(cluster.NIC) != 2 || len(n.Switches) != 2 || len(n.Links) != 2 ||
		!n.Cabled() {
		t.Fatalf("%d hosts, switches %+v, links %+v", len(f.Hosts), n.Switches, n.Links)
	}
	for k, l := range n.Links {
		if n.Switches[l.A.Switch].Name != []string{"leaf01", "leaf02"}[k] || l.A.Port != 17 || l.B.NIC != k {
			t.Errorf("link %d is %+v", k, l)
		}
	}
	if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].Text, "other-host, forwards nothing") {
		t.Errorf("warnings %v", f.Warnings)
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

// A number of the switch's own for a port ("local", 539) is not the port's; the description says which it is.
func TestLocalPort(t *testing.T) {
	const mine = `"id": {"type": "mac", "value": "44:38:39:00:00:12"}, "descr": "swp17"`
	for other, want := range map[string]int{
		`"id": {"type": "local", "value": "539"}, "descr": "swp9"`: 9, `"id": {"type": "local", "value": "539"}`: 0, mine: 17,
	} {
		f, err := Read("dgx01", strings.NewReader(strings.Replace(sample, mine, other, 1)))
		if err != nil || len(f.Network.Links) != 2 || f.Network.Links[1].A.Port != want {
			t.Errorf("%s: %+v, %v; want port %d", other, f.Network.Links, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	readertest.Reader{Match: Match, Read: Read}.Fuzz(f, func(*testing.T, *cluster.Fragment) {}, sample)
}
