package report

import (
	"cmp"
	"fmt"
	"strings"

	"busbar.dev/doctor"
	"busbar.dev/finding"
	"busbar.dev/internal/texttab"
	"busbar.dev/query"
)

// Findings prints what an audit found: one paragraph each with a mark for how
// serious it is, where it is, what it does and how to fix it.
func Findings(p *Page, fs []finding.Finding) {
	p.send(findingsTable(fs))
	p.printf("%s  %s\n", p.bold("Audit"), cmp.Or(finding.Count(fs).String(), "no problems found"))
	for _, f := range fs {
		p.printf("  %s %s  %s\n", p.mark(f.Severity), p.bold(f.ID), f.Where)
		p.wrapped("    ", "    ", f.Text)
		if f.Fix != "" {
			p.wrapped("    "+p.green("fix:")+" ", "         ", f.Fix)
		}
	}
}

// Audit prints findings, and what could not be looked at.
func Audit(p *Page, d *query.AuditDoc) {
	Findings(p, d.Audit)
	if len(d.Unchecked) > 0 {
		p.wrapped("", "", "Not checked, as no source says it: "+strings.Join(d.Unchecked, "; ")+".")
	}
}

// Doctor prints what was examined and found.
func Doctor(p *Page, d *query.DoctorDoc) {
	p.send(findingsTable(d.Report.Findings))
	doctorText(p, d.Report)
}

// doctorText prints a report of the doctor.
func doctorText(p *Page, r *doctor.Report) {
	p.err = doctor.Text{Width: max(p.Width, 0), Paint: p.on, All: p.Verbose}.Write(&p.text, r)
}

// findingsTable is findings for writers that take tables.
func findingsTable(fs []finding.Finding) *texttab.Table {
	t := texttab.New("severity", "finding", "where", ">confidence (%)", "text", "fix")
	for _, f := range fs {
		t.Add(f.Severity, f.ID, f.Where, when(f.Confidence > 0, fmt.Sprintf("%.0f", 100*f.Confidence)),
			cmp.Or(f.Text, f.Title), f.Fix)
	}
	return t
}

// mark is one character wide.
func (s style) mark(sev finding.Severity) string {
	switch sev {
	case finding.Error:
		return s.red("✗")
	case finding.Warn:
		return s.yellow("!")
	}
	return s.dim("·")
}
