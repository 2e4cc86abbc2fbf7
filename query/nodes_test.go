package query

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/result/pairs"
)

// oneSlowNode is a server whose fleet has one finding.
type oneSlowNode struct{ confidence float64 }

func (s oneSlowNode) Call(_ context.Context, _, path string, _, out any) error {
	var reply any = fleet.NodesReply{Nodes: []fleet.NodeState{{Name: "dgx03"}}}
	if strings.HasSuffix(path, "findings") {
		reply = fleet.FindingsReply{Findings: []finding.Finding{{
			Kind: pairs.SlowHost, Severity: finding.Error, Nodes: []string{"dgx03"}, Confidence: s.confidence,
			Text: "dgx03 is slow",
		}}}
	}
	data, err := json.Marshal(reply)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, out)
}

// TestNodesSeverity: a finding that is not sure enough to keep jobs off a node is a warning in the document, as it is
// in the text.
func TestNodesSeverity(t *testing.T) {
	for confidence, want := range map[float64]finding.Finding{
		0.503: {Severity: finding.Warn, Text: "dgx03 is slow (50% sure; unhealthy from 90% on)"},
		0.95:  {Severity: finding.Error, Text: "dgx03 is slow"},
	} {
		doc, err := Nodes{}.Run(t.Context(), Env{Fleet: oneSlowNode{confidence}})
		if err != nil {
			t.Fatal(err)
		}
		if f := doc.Findings[0]; f.Severity != want.Severity || f.Text != want.Text {
			t.Errorf("%v: %s %q, want %s %q", confidence, f.Severity, f.Text, want.Severity, want.Text)
		}
	}
}
