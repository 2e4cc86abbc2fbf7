package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"busbar.dev/doctor"
	"busbar.dev/finding"
	"busbar.dev/internal/texttab"
	"busbar.dev/query"
)

// Findings prints what an audit found: one paragraph each with a mark for how
// serious it is, where it is, what it does and how to fix it.
func Findings(w io.Writer, fs []finding.Finding, o TextOptions) error {
	return Audit(w, &query.AuditDoc{Audit: fs}, o)
}

// Audit prints findings, and what could not be looked at.
func Audit(w io.Writer, d *query.AuditDoc, o TextOptions) error {
	if taken, err := FindingsTable(d.Audit).Send(w); taken {
		return err
	}
	text := printed(o, func(s style) string { return findingsText(d.Audit, s, o.width()) })
	if len(d.Unchecked) > 0 {
		text += strings.Join(texttab.Wrap("Not checked, as no source says it: "+strings.Join(d.Unchecked, "; ")+".",
			o.width()), "\n") + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// Doctor prints what was examined and found.
func Doctor(w io.Writer, d *query.DoctorDoc, o TextOptions) error {
	return doctorReport(w, d.Report, o)
}

// doctorReport prints a report of the doctor.
func doctorReport(w io.Writer, r *doctor.Report, o TextOptions) error {
	if taken, err := FindingsTable(r.Findings).Send(w); taken {
		return err
	}
	return doctor.Text{Width: max(o.Width, 0), Paint: o.Color, All: o.Verbose}.Write(w, r)
}

// FindingsTable is findings for writers that take tables.
func FindingsTable(fs []finding.Finding) *texttab.Table {
	t := texttab.New("severity", "finding", "where", ">confidence (%)", "text", "fix")
	for _, f := range fs {
		t.Add(f.Severity, f.ID, f.Where, when(f.Confidence > 0, fmt.Sprintf("%.0f", 100*f.Confidence)),
			cmp.Or(f.Text, f.Title), f.Fix)
	}
	return t
}

func findingsText(fs []finding.Finding, s style, width int) string {
	var b strings.Builder
	b.WriteString(s.bold("Audit") + "  " + cmp.Or(finding.Count(fs).String(), "no problems found") + "\n")
	for _, f := range fs {
		b.WriteString("  " + severityMark(s, f.Severity) + " " + s.bold(f.ID) + "  " + f.Where + "\n")
		hanging(&b, "    ", "    ", texttab.Wrap(f.Text, width-4))
		if f.Fix != "" {
			hanging(&b, "    "+s.green("fix:")+" ", "         ", texttab.Wrap(f.Fix, width-9))
		}
	}
	return b.String()
}

// severityMark is one character wide.
func severityMark(s style, sev finding.Severity) string {
	switch sev {
	case finding.Error:
		return s.red("✗")
	case finding.Warn:
		return s.yellow("!")
	}
	return s.dim("·")
}
