package report

import (
	"fmt"
	"io"
	"strings"

	"busbar.dev/doctor/audit"
	"busbar.dev/internal/texttab"
)

// Findings prints what an audit found: one paragraph each with a mark for how
// serious it is, where it is, what it does and how to fix it.
func Findings(w io.Writer, fs []audit.Finding, o TextOptions) error {
	_, err := io.WriteString(w, printed(o, func(s style) string { return findingsText(fs, s, o.width()) }))
	return err
}

func findingsText(fs []audit.Finding, s style, width int) string {
	var b strings.Builder
	count := make(map[audit.Severity]int)
	for _, f := range fs {
		count[f.Severity]++
	}
	b.WriteString(s.bold("Audit") + "  " + findingCounts(count) + "\n")
	for _, f := range fs {
		b.WriteString("  " + severityMark(s, f.Severity) + " " + s.bold(f.ID) + "  " + f.Where + "\n")
		for _, l := range texttab.Wrap(f.Text, width-4) {
			b.WriteString("    " + l + "\n")
		}
		if f.Fix == "" {
			continue
		}
		for i, l := range texttab.Wrap(f.Fix, width-9) {
			lead := "         "
			if i == 0 {
				lead = "    " + s.green("fix:") + " "
			}
			b.WriteString(lead + l + "\n")
		}
	}
	return b.String()
}

func findingCounts(count map[audit.Severity]int) string {
	var parts []string
	for _, k := range []struct {
		sev  audit.Severity
		noun string
	}{{audit.Error, "error"}, {audit.Warn, "warning"}, {audit.Note, "note"}} {
		if n := count[k.sev]; n > 0 {
			parts = append(parts, plural(n, k.noun))
		}
	}
	if len(parts) == 0 {
		return "nothing found"
	}
	return strings.Join(parts, ", ")
}

// severityMark is one character wide.
func severityMark(s style, sev audit.Severity) string {
	switch sev {
	case audit.Error:
		return s.red("✗")
	case audit.Warn:
		return s.yellow("!")
	case audit.Note:
		return s.dim("·")
	}
	return fmt.Sprintf("%.1s", string(sev)+"?")
}
