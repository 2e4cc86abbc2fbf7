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
	if d.Threads != nil {
		return validateThreads(w, d, all)
	}
	fmt.Fprintf(w, "%d cases, %d decidable from their evidence; the cause is first in %d (%.0f%%), among the first "+
		"three in %d (%.0f%%)\n", d.Cases, d.Decidable, d.First, percentOf(d.First, d.Decidable), d.Three,
		percentOf(d.Three, d.Decidable))
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

func percentOf(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }

// validateThreads prints how often the cause was named, how sure that was, and every miss.
func validateThreads(w io.Writer, d *query.ValidateDoctorDoc, all bool) error {
	t := d.Threads
	fmt.Fprintf(w, "%d threads: the cause is first in %d (%.0f%%), among the first three in %d (%.0f%%); wrong with a "+
		"confidence of 50%% or more in %d (%.0f%%); unknown in %d (%.0f%%)\n",
		d.Cases, d.First, percentOf(d.First, d.Cases), d.Three, percentOf(d.Three, d.Cases), t.Wrong,
		percentOf(t.Wrong, d.Cases), t.Unknown, percentOf(t.Unknown, d.Cases))
	fmt.Fprintf(w, "Before the diagnosis: first %.0f%%, first three %.0f%%, wrong and sure %.0f%%. No cause of the "+
		"program is that of %d.\n\n", percentOf(t.EarlyFirst, d.Cases), percentOf(t.EarlyThree, d.Cases),
		percentOf(t.EarlyWrong, d.Cases), t.Nameless)
	tab := &texttab.Table{}
	tab.Row("confidence", "answers", "right")
	for _, r := range t.Reliability {
		tab.Row(fmt.Sprintf("%.0f%%", 100*r.Confidence), fmt.Sprint(r.Said), fmt.Sprintf("%.0f%%", 100*r.Right))
	}
	if err := tab.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	tab = &texttab.Table{}
	tab.Row("", "thread", "cause", "said", "")
	for _, o := range t.Outcomes {
		mark, note := "miss", fmt.Sprintf("%.0f%% sure", 100*o.Confidence)
		switch {
		case o.Place == 1:
			mark = "hit"
		case len(o.Wanted) == 0:
			note += ", no such cause here"
		case o.Place > 0:
			note += fmt.Sprintf(", the cause is number %d", o.Place)
		}
		if all || mark == "miss" {
			tab.Row(mark, o.Thread.ID, o.Thread.CauseKey, strings.Join(o.Said[:min(len(o.Said), 3)], " "), note)
		}
	}
	return tab.Write(w)
}
