package report

import (
	"strings"

	"busbar.dev/internal/texttab"
	"busbar.dev/query"
	"busbar.dev/workload"
)

// Envelope prints the table of a case, with notes below it.
func Envelope(p *Page, d *query.EnvelopeDoc) {
	for _, c := range d.Cases {
		p.lines(c.Title)
		t := texttab.New("", ">", "", "numbers", "formula")
		for _, l := range c.Lines {
			t.Row("  "+l.Name, workload.Figure(l.Value), l.Unit, "= "+l.Worked, l.Formula)
		}
		p.table(t)
		for _, l := range c.Lines {
			if l.Note != "" {
				p.para("  ", strings.TrimSpace(l.Name)+": "+l.Note)
			}
		}
	}
}
