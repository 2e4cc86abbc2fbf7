package hardware

import (
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/csvtable"
)

// lint reads one table as the package does.
func lint[T any](text string) error {
	_, err := csvtable.Read[T](text)
	return err
}

// TestTables reads every file of the catalogue: no unknown column, none missing,
// nothing required is empty, values parse, names are unique (csvtable sees to
// that), and every row has a source.
func TestTables(t *testing.T) {
	readers := map[string]func(string) error{
		"cards": lint[card], "fabrics": lint[fabric], "gpus": lint[gpuRow], "infiniband": lint[ibGen],
		"latencies": lint[latencyRow],
		"links":     lint[linkRow], "networks": lint[linkRow], "nics": lint[NICModel], "nodes": lint[nodeRow],
		"pcie":        lint[pcieGen],
		"port_speeds": lint[portSpeed], "presets": lint[preset], "processors": lint[processor], "switches": lint[switchRow],
		"usual_networks": lint[UsualNetwork],
	}
	files, err := tables.ReadDir("data")
	if err != nil || len(files) != len(readers) {
		t.Errorf("%d tables for %d readers, %v", len(files), len(readers), err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".csv")
		text, err := tables.ReadFile("data/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		read := readers[name]
		if read == nil {
			t.Errorf("%s: nothing reads it", f.Name())
			continue
		}
		if err := read(string(text)); err != nil {
			t.Errorf("%s: %v", f.Name(), err)
		}
		// The tags make a source a required column; the header shows that it is there.
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "#") {
				if !slices.Contains(strings.Split(strings.TrimSpace(line), ","), "source") {
					t.Errorf("%s: no column source", f.Name())
				}
				break
			}
		}
	}
}

// TestReferences follows the names by which rows of one table name rows of another.
func TestReferences(t *testing.T) {
	used := make(map[string]bool)
	for _, p := range load[preset]("presets") {
		if _, ok := gpuTable().short[p.GPU]; !ok {
			t.Errorf("%s: no GPU %q", p.Name, p.GPU)
		}
		if nodeTable()[p.Node] == nil {
			t.Errorf("%s: no node %q", p.Name, p.Node)
		}
		if cardTable()[p.NIC] == nil {
			t.Errorf("%s: no card %q", p.Name, p.NIC)
		}
		if fabricTable()[p.Network] == nil {
			t.Errorf("%s: no fabric %q", p.Name, p.Network)
		}
		used["node "+p.Node], used["card "+p.NIC], used["fabric "+p.Network] = true, true, true
	}
	for name := range nodeTable() {
		if !used["node "+name] {
			t.Errorf("node %s is in no preset", name)
		}
	}
	for name := range fabricTable() {
		if !used["fabric "+name] {
			t.Errorf("fabric %s is in no preset", name)
		}
	}
	for name, c := range cardTable() {
		if !used["card "+name] {
			t.Errorf("card %s is in no preset", name)
		}
		if _, ok := NICByName(c.Model); c.Model != "" && !ok {
			t.Errorf("card %s: no NIC %q", name, c.Model)
		}
		if _, err := ParsePortSpeed(c.Speed); err != nil {
			t.Errorf("card %s: %v", name, err)
		}
	}
	for _, p := range processors() {
		if nodeLink(p.SMP).Origin == cluster.Unknown {
			t.Errorf("processor %s: no link %q between sockets with an origin", p.Name, p.SMP)
		}
	}
}

// TestTreeText refuses trees that are not closed, and devices that do not exist.
func TestTreeText(t *testing.T) {
	for _, bad := range []string{"socket(", "socket)", "x*socket", "*", "()(", "socket(root(gpu)"} {
		if err := new(tree).UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	var ok tree
	if err := ok.UnmarshalText([]byte("2*socket(root(2*(gpu nic))) numa1(gpu)")); err != nil || len(ok) != 2 ||
		ok[0].count != 2 || ok[0].below[0].below[0].count != 2 {
		t.Errorf("%+v, %v", ok, err)
	}
}

func TestUsualNetworkOf(t *testing.T) {
	if u, ok := UsualNetworkOf("NVIDIA H100 80GB HBM3"); !ok || u.Port.Gbps() != 400 || u.NICsPerGPU != 1 {
		t.Errorf("H100: %+v", u)
	}
	if u, ok := UsualNetworkOf("Tesla V100-SXM2-16GB"); !ok || u.NICsPerGPU != 0.5 {
		t.Errorf("V100: %+v", u)
	}
	if u, ok := UsualNetworkOf("Tesla P40"); ok {
		t.Errorf("P40: %+v", u)
	}
	if rates := PortRates(); !slices.IsSorted(rates) || len(rates) < 5 {
		t.Errorf("port rates %v", rates)
	}
}
