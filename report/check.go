package report

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/finding"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/measure"
)

// Check prints the verdict on every node that is not healthy, and how many are.
func Check(p *Page, d *measure.Check) {
	p.send(checkTable(d))
	healthy, incomplete, gpus, loaded, ports := 0, 0, 0, 0, 0
	for _, n := range d.Nodes {
		gpus, loaded, ports = gpus+n.GPUs, loaded+n.Loaded, ports+n.Ports
		if n.Verdict == "healthy" {
			healthy++
			continue
		}
		p.printf("%s: %s\n", n.Host, n.Verdict)
		p.hanging("  ", "  ", n.Reasons)
		if n.Passed() {
			incomplete++
			p.hanging("  not tested: ", "  not tested: ", n.Untested)
		}
	}
	looked := words.Plural(gpus, "GPU") + " checked"
	switch {
	case gpus == 0:
		looked = "no GPUs checked"
	case loaded == 0:
		looked += " by their state only, without a load test"
	case loaded < gpus:
		looked += fmt.Sprintf(", %d of them under load", loaded)
	}
	if ports > 0 {
		looked += ", " + words.Plural(ports, "RDMA port")
	}
	how := fmt.Sprintf("pairs by %s%s in %s", d.By, when(d.ByWhy != "", " ("+d.ByWhy+")"), words.Plural(d.Rounds, "round"))
	switch {
	case d.Rounds == 0:
		how = "no pairs"
	case d.Partners < len(d.Nodes)-1:
		how += fmt.Sprintf(" (each node with at least %d of %d others)", d.Partners, len(d.Nodes)-1)
	}
	p.printf("%s healthy%s of %d; %s; %s, %.1f s; compared with %s\n", words.Plural(healthy, "node"),
		when(incomplete > 0, fmt.Sprintf(", %d incomplete", incomplete)), len(d.Nodes),
		looked, how, d.Seconds, d.Expected)
	if d.Hostlist != "" {
		p.printf("unhealthy: %s\n", d.Hostlist)
	}
	for _, f := range d.Findings {
		if f.Severity == finding.Note {
			p.printf("note: %s\n", f.Text)
		}
	}
	p.notes(d.Notes)
}

// checkTable is the verdict on every node, for writers that take tables.
func checkTable(d *measure.Check) *texttab.Table {
	t := texttab.New("node", "verdict", ">GPUs", "reasons")
	for _, n := range d.Nodes {
		t.Add(n.Host, n.Verdict, n.GPUs, strings.Join(append(slices.Clone(n.Reasons), n.Untested...), "; "))
	}
	return t
}

// CheckJUnit is the verdict as JUnit XML: a case per node, which fails for its reasons.
func CheckJUnit(d *measure.Check) ([]byte, error) {
	s := finding.Suite{Name: "busbar check", Time: fmt.Sprintf("%.3f", d.Seconds)}
	for _, n := range d.Nodes {
		c := finding.Case{Name: n.Host, Class: "busbar.check." + d.By}
		switch {
		case n.Verdict == "incomplete":
			c.Skipped = &finding.Skipped{Message: "not tested: " + strings.Join(n.Untested, "; ")}
		case !n.Passed():
			c.Failure = &finding.Failure{Message: n.Verdict, Text: strings.Join(n.Reasons, "\n")}
		}
		s.Cases = append(s.Cases, c)
	}
	return s.XML()
}
