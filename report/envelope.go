package report

import (
	"fmt"
	"io"
	"strings"

	"busbar.dev/internal/texttab"
	"busbar.dev/query"
	"busbar.dev/workload"
)

// Envelope prints the table of a case, with notes below it.
func Envelope(w io.Writer, d *query.EnvelopeDoc) error {
	for _, c := range d.Cases {
		fmt.Fprintln(w, c.Title)
		t := texttab.New("", ">", "", "numbers", "formula")
		for _, l := range c.Lines {
			t.Row("  "+l.Name, workload.Figure(l.Value), l.Unit, "= "+l.Worked, l.Formula)
		}
		if err := t.Write(w); err != nil {
			return err
		}
		for _, l := range c.Lines {
			if l.Note == "" {
				continue
			}
			for k, text := range texttab.Wrap(strings.TrimSpace(l.Name)+": "+l.Note, 96) {
				if k > 0 {
					text = "  " + text
				}
				fmt.Fprintln(w, "  "+text)
			}
		}
	}
	return nil
}
