package report

import (
	"fmt"
	"time"

	"busbar.dev/fleet/health"
	"busbar.dev/internal/stats"
	"busbar.dev/internal/words"
	"busbar.dev/query"
)

// Link prints what a fleet measured between two nodes: the rate of each direction.
func Link(p *Page, doc *query.LinkDoc) {
	for _, d := range []struct {
		from, to string
		samples  []health.Point
	}{{doc.From, doc.To, doc.There}, {doc.To, doc.From, doc.Back}} {
		who := d.from + " to " + d.to
		if len(d.samples) == 0 {
			p.printf("%s: never measured\n", who)
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
		p.printf("%s: %s from %s to %s%s%s\n", who, words.Plural(len(d.samples), "sample"),
			linkTime(d.samples[0].Time), linkTime(d.samples[len(d.samples)-1].Time),
			when(len(rates) > 0, fmt.Sprintf(", median %.3g GB/s", stats.Median(rates)/1e9)),
			when(failed > 0, fmt.Sprintf(", %d failed", failed)))
	}
}

func linkTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04Z") }
