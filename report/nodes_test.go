package report

import (
	"bytes"
	"strings"
	"testing"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/query"
	"busbar.dev/result/pairs"
)

// TestNodesSaySure: a finding that nodes --bad does not act on is a warning that says how sure it is.
func TestNodesSaySure(t *testing.T) {
	for confidence, want := range map[float64]string{
		0.503: "\nwarn: dgx03 is slow (50% sure; --bad names it from 90% on)\n",
		0.95:  "\nerror: dgx03 is slow\n",
	} {
		doc := &query.NodesDoc{
			Nodes:    []fleet.NodeState{{}},
			Findings: []finding.Finding{{Kind: pairs.SlowHost, Severity: finding.Error, Nodes: []string{"dgx03"}, Confidence: confidence, Text: "dgx03 is slow"}},
		}
		var b bytes.Buffer
		if err := Nodes(&b, doc); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%v: %v %s", confidence, err, b.String())
		}
	}
}
