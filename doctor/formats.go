package doctor

import (
	"fmt"
	"io"
	"strings"
)

// Markdown writes a report to paste into a ticket.
func Markdown(w io.Writer, r *Report) error {
	var b strings.Builder
	b.WriteString("### busbar doctor\n\n" + r.summary() + "\n")
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "\n#### %s: %s\n\n", f.Severity, inline(f.Title))
		fmt.Fprintf(&b, "`%s`, %.0f%% sure", f.ID, 100*f.Confidence)
		if f.ExplainedBy != "" {
			fmt.Fprintf(&b, ", follows from `%s`", f.ExplainedBy)
		}
		b.WriteString("\n\n")
		for _, p := range [][2]string{{"", f.Cause}, {"Where: ", f.Where}, {"Cost: ", f.Cost}, {"**Fix:** ", f.Fix}} {
			if p[1] != "" {
				b.WriteString(p[0] + inline(p[1]) + "\n\n")
			}
		}
		if f.Reference != "" {
			b.WriteString("See " + f.Reference + "\n\n")
		}
		for _, q := range f.Evidence { // four blanks make it code, whatever is in it
			b.WriteString("    " + q.String() + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// inline keeps Markdown from reading a sentence as markup. Pairs of back quotes
// stay: they are code, and nothing in them is markup.
func inline(s string) string {
	s = oneLine(s)
	escape := strings.NewReplacer("\\", "\\\\", "&", "&amp;", "<", "&lt;", "*", "\\*", "_", "\\_", "[", "\\[", "`", "\\`")
	parts := strings.Split(s, "`")
	if len(parts)%2 == 0 || strings.Contains(s, "``") {
		return escape.Replace(s)
	}
	for i := 0; i < len(parts); i += 2 {
		parts[i] = escape.Replace(parts[i])
	}
	return strings.Join(parts, "`")
}
