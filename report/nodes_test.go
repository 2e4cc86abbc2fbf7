package report

import (
	"bytes"
	"strings"
	"testing"

	"busbar.dev/fleet"
	"busbar.dev/query"
)

// TestNodesSlurm: what Slurm says of nodes is a column where somebody gave it.
func TestNodesSlurm(t *testing.T) {
	doc := &query.NodesDoc{
		Nodes: []fleet.NodeState{{Name: "dgx04"}, {Name: "dgx05"}},
		Slurm: []fleet.SlurmOut{{Node: "dgx05", State: "drained", Reason: "XID 79"}},
	}
	var b bytes.Buffer
	if err := Print(&b, TextOptions{}, Nodes, doc); err != nil || !strings.Contains(b.String(), "drained: XID 79\n") ||
		!strings.Contains(b.String(), "Slurm\n") {
		t.Errorf("%v\n%s", err, b.String())
	}
	b.Reset()
	doc.Slurm = nil
	if err := Print(&b, TextOptions{}, Nodes, doc); err != nil || strings.Contains(b.String(), "Slurm") {
		t.Errorf("%v\n%s", err, b.String())
	}
}
