package doctor

import (
	"fmt"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
)

// oddPlace is how many times as long the runs in place of a size take as those out of place, or these as those, where
// something came in between: they do the same work.
const oddPlace = 10

// inPlace finds the size whose two runs differ most, where that is more than the kind of run can do.
func inPlace(tables []evidence.Table) []finding.Finding {
	var worst finding.Finding
	most := float64(oddPlace)
	for i := range tables {
		for _, s := range tables[i].Sweeps {
			for _, p := range s.Points {
				if p.Out == nil || p.In == nil {
					continue
				}
				in, out := p.In.Time.Mean.Micros(), p.Out.Time.Mean.Micros()
				ratio := max(in/out, out/in)
				if !(ratio >= most) {
					continue
				}
				most = ratio
				worst = finding.Finding{
					ID: "one-run-slow", Severity: finding.Warn, Confidence: 0.6, Where: tables[i].File, Evidence: []finding.Quote{},
					Title: fmt.Sprintf("One run of %v took %.0f times as long as the other of the same size", p.Size, ratio),
					Cause: fmt.Sprintf("In place it took %.4g µs, out of place %.4g µs: the same work. Something held up one of "+
						"them: another job on the nodes or the network, a link that was retrained, clocks that went down.",
						in, out),
					Fix: "run this size again, with -n 100; where it comes back, busbar bench pairs finds the node",
				}
			}
		}
	}
	if worst.ID == "" {
		return nil
	}
	return []finding.Finding{worst}
}
