package doctor

import (
	"strings"
	"testing"

	"busbar.dev/finding"
)

// What the fleet found is a finding of the doctor, the worst first.
func TestFleetFault(t *testing.T) {
	const text = `{"nodes": [], "findings": [
 {"id": "slow-pair/a/b", "kind": "slow-pair", "severity": "warn", "nodes": ["a", "b"],
  "since": "2026-01-01T00:00:00Z", "factor": 0.7, "confidence": 0.8, "evidence": ["x"],
  "text": "a and b are slow with each other", "fix": "y"},
 {"id": "slow-host/gpu03", "kind": "slow-host", "severity": "error", "nodes": ["gpu03"],
  "since": "2026-01-01T00:00:00Z", "factor": 0.5, "confidence": 0.97, "evidence": ["50% in 12 sweeps"],
  "text": "gpu03 became slow with all others", "fix": "look at its NIC"}]}`
	r := vocabulary().NewReader()
	if err := r.Read("fleet.json", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	set, err := r.Set()
	if err != nil {
		t.Fatal(err)
	}
	found := Examine(set).Findings
	if len(found) != 2 || found[0].Severity != finding.Error || found[0].Where != "gpu03" ||
		!strings.Contains(found[0].Title, "became slow") || !strings.Contains(found[0].Fix, "NIC") ||
		len(found[0].Evidence) != 1 || found[1].Where != "[a-b]" && found[1].Where != "a,b" {
		t.Errorf("%+v", found)
	}
}

// What agents ran into is quoted in a fleet's answer; it is no fault of the job. Nodes with the same
// fault are all named.
func TestFleetAnswerIsNoLog(t *testing.T) {
	silent := func(node string) string {
		return `{"id": "silent:` + node + `", "kind": "silent", "severity": "error", "nodes": ["` + node +
			`"], "confidence": 0.99, "text": "` + node + ` is silent", "fix": "look"}`
	}
	const nodes = `"nodes": [{"name": "n1", "last_failure": "listen tcp 127.0.0.1:7643: bind: address already in use"}]`
	for _, x := range []struct{ name, text, where, title string }{
		{"nothing wrong", `{` + nodes + `, "findings": []}`, "", ""},
		{
			"two are silent", `{` + nodes + `, "findings": [` + silent("n3") + `, ` + silent("n4") + `]}`, "n[3-4]",
			"n3 is silent",
		},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := vocabulary().NewReader()
			if err := r.Read("-", strings.NewReader(x.text)); err != nil {
				t.Fatal(err)
			}
			set, err := r.Set()
			if err != nil {
				t.Fatal(err)
			}
			found := Examine(set).Findings
			if x.title == "" {
				if len(found) != 0 {
					t.Errorf("%+v", found)
				}
				return
			}
			if len(found) != 1 || found[0].Where != x.where || found[0].Title != x.title {
				t.Errorf("%+v", found)
			}
		})
	}
}
