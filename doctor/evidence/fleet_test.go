package evidence

import (
	"strings"
	"testing"
)

const (
	fleetFound = `{"findings": [{"id": "slow-host/gpu03", "kind": "slow-host", "severity": "error", "nodes": ["gpu03"], "since": "2026-01-01T00:00:00Z", "factor": 0.5,
 "confidence": 0.97, "evidence": ["50% of the others' bandwidth in 12 sweeps"], "text": "gpu03 became slow with all others", "fix": "look at its NIC"}], "past": []}`
)

func TestFleet(t *testing.T) {
	for _, c := range []struct {
		name, text string
		findings   int
	}{
		{"findings", fleetFound, 1},
		{"the doctor's own", `{"findings": [{"id": "nic-slow", "title": "x"}]}`, 0},
		{"none", `{"findings": []}`, 0},
		{"about a rail, and no node", strings.Replace(fleetFound, `["gpu03"]`, `[]`, 1), 1},
		{"cut", fleetFound[:90], 0},
		{"a healthy node", `[{"component": "a", "states": [{"health": "Healthy"}]}]`, 0},
		{"a health check cut", `[{"component": "a", "states": [{"health": "Unhealthy"}]}, {"component"`, 2},
		{"a health check with a long beginning", `[{"component": "` + strings.Repeat("a", 5000) +
			`", "states": [{"health": "Degraded"}]}]`, 1},
		{"absurd", strings.Replace(fleetFound, "0.97", "97", 1), 0},
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
			if len(s.Fleet) != c.findings {
				t.Errorf("%d findings, want %d", len(s.Fleet), c.findings)
			}
			if c.name == "a healthy node" && s.Blank() {
				t.Error("nothing is known")
			}
		})
	}
}

func FuzzFleet(f *testing.F) {
	f.Add(fleetFound)
	f.Fuzz(func(t *testing.T, text string) {
		r := &Reader{set: &Set{}, name: "f"}
		r.fleet([]byte(text))
	})
}
