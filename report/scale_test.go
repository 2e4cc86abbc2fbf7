package report_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"busbar.dev/report"
)

// The picture is well-formed, marks the knee and names every number of nodes.
func TestScaling(t *testing.T) {
	s := report.ScaleCurve{Title: "a & b", Knee: 2, Points: []report.ScalePoint{{1, 1, "x"}, {2, 0.9, "y"}, {4, 0.5, "z"}}}
	var b bytes.Buffer
	if err := report.Scaling(&b, s); err != nil {
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
	for _, want := range []string{"knee: 2 nodes", "a &amp; b", "50 %", "4 nodes: 50.0 %, z"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	if report.Scaling(&b, report.ScaleCurve{}) == nil {
		t.Error("nothing was drawn")
	}
	if err := report.Scaling(&b, report.ScaleCurve{Points: s.Points[:1]}); err != nil {
		t.Error(err)
	}
}
