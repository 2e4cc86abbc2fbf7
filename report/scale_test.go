package report_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"busbar.dev/query"
	"busbar.dev/report"
	"busbar.dev/workload"
)

// The picture is well-formed, marks the knee and names every number of nodes.
func TestScaling(t *testing.T) {
	s := &query.ScaleDoc{
		Job: workload.Summary{Model: "a & b"}, Knee: 2, Rows: []query.ScaleRow{
			{Nodes: 1, Efficiency: 1}, {Nodes: 2, Efficiency: 0.9}, {Nodes: 4, Efficiency: 0.5, Tokens: 2000},
		},
	}
	var b bytes.Buffer
	p, err := report.ScaleCurve(s)
	if err == nil {
		err = p.SVG(&b)
	}
	if err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"knee: 2 nodes", "a &amp; b", "50%", "4 nodes: 50.0%, 2e+03 tokens/s"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	if _, err := report.ScaleCurve(&query.ScaleDoc{}); err == nil {
		t.Error("nothing was drawn")
	}
	if _, err := report.ScaleCurve(&query.ScaleDoc{Rows: s.Rows[:1]}); err != nil {
		t.Error(err)
	}
}
