package health

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"busbar.dev/unit"
)

// TestLab judges ten sweeps over five nodes that the fleet of TestFleetLab (cmd/busbar) measured in its lab: six
// healthy ones raise no alarm, and node3, whose NIC then has half of its rate, is named within two.
func TestLab(t *testing.T) {
	data, err := os.ReadFile("testdata/lab.json")
	if err != nil {
		t.Fatal(err)
	}
	var sweeps []struct {
		Rate    [][]float64 `json:"rate_GBps"`
		Latency [][]float64 `json:"latency_us"`
	}
	if err := json.Unmarshal(data, &sweeps); err != nil {
		t.Fatal(err)
	}
	const healthy, patience = 6, 2
	h := New(0)
	for k, s := range sweeps {
		for a := range s.Rate {
			for b := range s.Rate {
				if a != b {
					h.Add(Sample{
						Sweep: fmt.Sprint(k), Time: at(k), From: name(a), To: name(b), Rate: unit.Rate(s.Rate[a][b] * 1e9),
						Latency: unit.Micros(s.Latency[a][b]),
					})
				}
			}
		}
		found, bad := h.Findings(at(k)), h.Unhealthy(at(k))
		switch {
		case k < healthy && len(found) > 0:
			t.Errorf("a false alarm after healthy sweep %d: %v", k+1, found)
		case k >= healthy+patience-1 && (len(bad) != 1 || bad[0] != "node3"):
			t.Errorf("%d sweeps with half the rate of node3: bad %v", k+1-healthy, bad)
		}
	}
}
