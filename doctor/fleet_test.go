package doctor

import (
	"strings"
	"testing"

	"busbar/evidence"
)

// What the fleet found is a finding of the doctor, the worst first.
func TestFleetFault(t *testing.T) {
	const text = `{"nodes": [], "findings": [
 {"id": "slow-pair/a/b", "kind": "slow-pair", "severity": "warn", "nodes": ["a", "b"], "since": "2026-01-01T00:00:00Z", "factor": 0.7, "confidence": 0.8, "evidence": ["x"], "text": "a and b are slow with each other", "fix": "y"},
 {"id": "slow-host/gpu03", "kind": "slow-host", "severity": "error", "nodes": ["gpu03"], "since": "2026-01-01T00:00:00Z", "factor": 0.5, "confidence": 0.97, "evidence": ["50% in 12 sweeps"], "text": "gpu03 became slow with everybody", "fix": "look at its NIC"}]}`
	r := evidence.NewReader()
	if err := r.Read("fleet.json", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	set, err := r.Set()
	if err != nil {
		t.Fatal(err)
	}
	found := Examine(set).Findings
	if len(found) != 1 || found[0].Severity != Error || found[0].Where != "gpu03" || !strings.Contains(found[0].Title, "became slow") || !strings.Contains(found[0].Fix, "NIC") || len(found[0].Evidence) != 2 {
		t.Errorf("%+v", found)
	}
}
