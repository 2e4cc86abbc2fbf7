package report

import (
	"fmt"
	"io"
	"strings"

	"busbar.dev/internal/texttab"
	"busbar.dev/query"
	"busbar.dev/workload"
)

// endRows is how many rows of a long table stand at its beginning and its end where not all are wanted.
const endRows = 2

// Envelope prints a table for every case, with notes below it; verbose prints long tables entirely.
func Envelope(w io.Writer, d *query.EnvelopeDoc, verbose bool) error {
	document := ""
	for i, c := range d.Cases {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if c.Document != document {
			fmt.Fprintf(w, "%s\n\n", c.Document)
			document = c.Document
		}
		fmt.Fprintln(w, c.Title)
		if err := envelopeTable(c, verbose).Write(w); err != nil {
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

// envelopeTable is the lines of a case. Only those of documents have a column of what is printed there.
func envelopeTable(c workload.Case, verbose bool) *texttab.Table {
	t := texttab.New("", ">", "", ">printed", "numbers", "formula")
	t.Columns[3].Hidden = c.Document == ""
	for k, l := range c.Lines {
		if c.Long && !verbose && k >= endRows && k < len(c.Lines)-endRows {
			if k == endRows {
				t.Row(fmt.Sprintf("  … %d more: -v", len(c.Lines)-2*endRows))
			}
			continue
		}
		t.Row("  "+l.Name, workload.Figure(l.Value), l.Unit, l.Printed, "= "+l.Worked, l.Formula)
	}
	return t
}
