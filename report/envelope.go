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
			var note strings.Builder
			paragraph(&note, "  ", strings.TrimSpace(l.Name)+": "+l.Note, 100)
			fmt.Fprint(w, when(l.Note != "", note.String()))
		}
	}
	return nil
}
