package report

import (
	"fmt"
	"io"
	"time"

	"busbar.dev/fleet/health"
	"busbar.dev/internal/stats"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
)

// Link prints what a fleet measured between two nodes: each direction's rate, when it changed, and at which hours it is
// low.
func Link(w io.Writer, doc *query.LinkDoc) error {
	for _, d := range []struct {
		from, to string
		samples  []query.LinkSample
		changes  []health.Change
		daily    []health.Daily
	}{
		{doc.From, doc.To, doc.There, doc.ThereChanges, doc.ThereDaily},
		{doc.To, doc.From, doc.Back, doc.BackChanges, doc.BackDaily},
	} {
		who := texttab.Clean(d.from + " to " + d.to)
		if len(d.samples) == 0 {
			fmt.Fprintf(w, "%s: never measured\n", who)
			continue
		}
		var rates []float64
		failed := 0
		for _, s := range d.samples {
			if s.Failed {
				failed++
			} else if s.Rate > 0 {
				rates = append(rates, float64(s.Rate))
			}
		}
		fmt.Fprintf(w, "%s: %s from %s to %s", who, words.Plural(len(d.samples), "sample"), linkTime(d.samples[0].At),
			linkTime(d.samples[len(d.samples)-1].At))
		if len(rates) > 0 {
			fmt.Fprintf(w, ", median %.3g GB/s", stats.Median(rates)/1e9)
		}
		if failed > 0 {
			fmt.Fprintf(w, ", %d failed", failed)
		}
		fmt.Fprintln(w)
		for _, c := range d.changes {
			fmt.Fprintf(w, "  %s: from %v to %v\n", linkTime(c.Time), c.Before, c.After)
		}
		for _, x := range d.daily {
			fmt.Fprintf(w, "  %s, since %s\n", x, x.Since.UTC().Format(time.DateOnly))
		}
	}
	return nil
}

func linkTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04Z") }
