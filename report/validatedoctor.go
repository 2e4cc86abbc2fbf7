package report

import (
	"fmt"
	"io"
	"strings"

	"busbar.dev/internal/texttab"
	"busbar.dev/query"
)

// ValidateDoctor prints how often the doctor found the cause, and the cases in which it did not; all adds the others.
func ValidateDoctor(w io.Writer, d *query.ValidateDoctorDoc, all bool) error {
	fmt.Fprintf(w, "%d cases, %d decidable from their evidence; the cause is among the first two findings in %d (%.0f%%)\n", d.Cases, d.Decidable, d.Hits, 100*d.Share)
	t := &texttab.Table{}
	t.Row("", "case", "category", "first findings", "")
	for _, o := range d.Outcomes {
		mark := "miss"
		note := ""
		switch {
		case o.Undecidable != "" && o.Hit:
			mark, note = "(hit)", "not counted: "+o.Undecidable
		case o.Undecidable != "":
			mark, note = "open", o.Undecidable
		case o.Hit:
			mark = "hit"
		case o.Place > 0:
			note = fmt.Sprintf("the cause is finding %d", o.Place)
		}
		if all || mark == "miss" || mark == "open" {
			t.Row(mark, o.Trial.ID, o.Trial.Category, strings.Join(o.Said[:min(len(o.Said), 3)], " "), note)
		}
	}
	if t.Len() > 1 {
		fmt.Fprintln(w)
		return t.Write(w)
	}
	return nil
}
