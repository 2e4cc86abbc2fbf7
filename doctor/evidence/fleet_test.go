package evidence

import (
	"strings"
	"testing"
)

const (
	fleetFound = `{"findings": [{"id": "slow-host/gpu03", "kind": "slow-host", "severity": "error", "nodes": ["gpu03"], "since": "2026-01-01T00:00:00Z", "factor": 0.5,
 "confidence": 0.97, "evidence": ["50% of the others' bandwidth in 12 sweeps"], "text": "gpu03 became slow with all others", "fix": "look at its NIC"}], "past": []}`
	fleetTable = `{"figure": "rate", "unit": "GB/s", "names": ["a", "b", "c"], "values": [[null, 3, 1], [3, null, 1], [1, 1, null]], "median": 1}`
)

func TestFleet(t *testing.T) {
	for _, c := range []struct {
		name, text     string
		findings, rows int
	}{
		{"findings", fleetFound, 1, 0},
		{"pairs", fleetTable, 0, 6},
		{
			"latency is another figure", strings.Replace(strings.Replace(fleetTable, "rate", "latency", 1), "GB/s", "µs", 1), 0,
			0,
		},
		{"the doctor's own", `{"findings": [{"id": "nic-slow", "title": "x"}]}`, 0, 0},
		{"none", `{"findings": []}`, 0, 0},
		{"about a rail, and no node", strings.Replace(fleetFound, `["gpu03"]`, `[]`, 1), 1, 0},
		{"cut", fleetFound[:90], 0, 0},
		{"uneven", `{"figure": "rate", "unit": "GB/s", "names": ["a", "b"], "values": [[null, 3, 1]]}`, 0, 0},
		{"absurd", strings.Replace(fleetFound, "0.97", "97", 1), 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader()
			if err := r.Read("f.json", strings.NewReader(c.text)); err != nil {
				t.Fatal(err)
			}
			s, err := r.Set()
			if err != nil {
				t.Fatal(err)
			}
			rows := 0
			for _, p := range s.Pairs {
				rows += len(p.Cells)
			}
			if len(s.Fleet) != c.findings || rows != c.rows {
				t.Errorf("%d findings, %d rows; want %d and %d", len(s.Fleet), rows, c.findings, c.rows)
			}
		})
	}
}

func FuzzFleet(f *testing.F) {
	f.Add(fleetFound)
	f.Add(fleetTable)
	f.Fuzz(func(t *testing.T, text string) {
		r := &Reader{set: &Set{}, name: "f"}
		if r.fleet([]byte(text)) {
			for i := range r.set.Pairs {
				r.set.Pairs[i].Findings()
			}
		}
	})
}
