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

// TestNodesSlurm: what Slurm says of nodes is a column where somebody gave it.
func TestNodesSlurm(t *testing.T) {
	doc := &query.NodesDoc{Nodes: []fleet.NodeState{{Name: "dgx04"}, {Name: "dgx05"}}, Slurm: []query.SlurmOut{{Node: "dgx05", State: "drained", Reason: "XID 79"}}}
	var b bytes.Buffer
	if err := Nodes(&b, doc); err != nil || !strings.Contains(b.String(), "drained: XID 79\n") || !strings.Contains(b.String(), "Slurm\n") {
		t.Errorf("%v\n%s", err, b.String())
	}
	b.Reset()
	doc.Slurm = nil
	if err := Nodes(&b, doc); err != nil || strings.Contains(b.String(), "Slurm") {
		t.Errorf("%v\n%s", err, b.String())
	}
}
