package predict

import (
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/unit"
)

// bare is a preset whose sources name neither GPUs nor rates, as nvidia-smi's
// matrix leaves it.
func bare(t *testing.T, preset string) *cluster.Cluster {
	t.Helper()
	c, err := hardware.Preset(preset, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range c.Types {
		for i := range typ.Devices {
			d := &typ.Devices[i]
			switch d.Kind {
			case cluster.GPU:
				d.Model, d.GPU, d.PCIID = cluster.Fact[string]{}, nil, nil
			case cluster.NIC:
				d.Model, d.NIC, d.PCIID = cluster.Fact[string]{}, nil, nil
			}
		}
	}
	return c
}

func TestAssume(t *testing.T) {
	for _, c := range []struct {
		preset string
		given  Given
		sm     int
		nic    unit.Rate
		notes  string
	}{
		{"dgx-h100", Given{}, 90, 400 * unit.Gbps, "18 NVLinks"},
		{"dgx-a100", Given{}, 80, 200 * unit.Gbps, "12 NVLinks"},
		{"baskerville", Given{}, 80, 200 * unit.Gbps, "12 NVLinks"},
		{"dgx-1v", Given{}, 70, 100 * unit.Gbps, "6 NVLinks"},
		{"dgx-a100", Given{GPU: "h100", NIC: NICs{Rate: 100 * unit.Gbps}}, 90, 100 * unit.Gbps, "taken as NVIDIA H100"},
	} {
		cl := bare(t, c.preset)
		notes, err := Assume(cl, c.given, true)
		if err != nil {
			t.Errorf("%s: %v", c.preset, err)
			continue
		}
		if !strings.Contains(strings.Join(notes, "\n"), c.notes) || len(notes) != 2 {
			t.Errorf("%s: notes %q lack %q", c.preset, notes, c.notes)
		}
		typ := cl.Types[0]
		g, n := typ.Devices[typ.Of(cluster.GPU)[0]], typ.Devices[typ.Of(cluster.NIC)[0]]
		if g.GPU.SM != c.sm || g.Model.Origin != cluster.Assumed {
			t.Errorf("%s: GPU %+v of %+v", c.preset, g.GPU, g.Model)
		}
		if r := n.NIC.Ports[0].Rate; r.Value != c.nic || r.Origin != cluster.Assumed {
			t.Errorf("%s: NIC %+v", c.preset, r)
		}
	}
}

// What sources say stays.
func TestAssumeNothing(t *testing.T) {
	c, err := hardware.Preset("baskerville", 2)
	if err != nil {
		t.Fatal(err)
	}
	notes, err := Assume(c, Given{GPU: "h100", NIC: NICs{Rate: unit.Gbps}}, true)
	if err != nil || len(notes) > 0 {
		t.Errorf("notes %q, error %v", notes, err)
	}
	if _, err := Assume(c, Given{GPU: "marble"}, false); err == nil {
		t.Error("a GPU that does not exist was taken")
	}
	pcie := bare(t, "dgx-a100")
	pcie.Types[0].Links = nil
	if _, err := Assume(pcie, Given{}, false); err == nil || !strings.Contains(err.Error(), "--gpu") {
		t.Errorf("no links and no name: error %v", err)
	}
}
