package report

import (
	"fmt"
	"io"
	"strings"

	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
)

// mostRDMA is how many directions are listed one by one.
const mostRDMA = 64

// BenchRDMA prints rails, pairs where there are few, and what stands out.
func BenchRDMA(w io.Writer, d *query.BenchRDMADoc) error {
	fmt.Fprintf(w, "%s, %s, %s by %s of %v, %v; %s in %.1f s\n\n", words.Plural(len(d.Hosts), "host"),
		words.Plural(len(d.Rails), "rail"), words.Plural(len(d.Pairs), "direction"),
		strings.Join(d.Programs, " and "), d.SizeBytes, d.SmallBytes, words.Plural(d.Rounds, "round"),
		d.Seconds)
	t := texttab.New(">rail", ">ports", ">link GB/s", ">median GB/s", ">both GB/s", ">latency µs")
	for _, r := range d.Rails {
		t.Row(fmt.Sprint(r.Rail), fmt.Sprint(len(r.Ports)), threeDigits(r.Link.GBps()), threeDigits(r.Rate),
			threeDigits(r.Both),
			threeDigits(r.Latency))
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	t = texttab.New(">rail", "from", "to", ">GB/s", ">both GB/s", ">latency µs", "failed")
	for _, p := range d.Pairs {
		t.Row(fmt.Sprint(p.Rail), texttab.Clean(p.From), texttab.Clean(p.To), threeDigits(p.Rate.GBps()),
			threeDigits(p.Both.GBps()),
			threeDigits(p.Latency.Micros()), texttab.Clean(p.Failed))
	}
	if taken, err := t.Send(w); taken {
		return err
	}
	if len(d.Pairs) <= mostRDMA {
		if err := t.Write(w); err != nil {
			return err
		}
		fmt.Fprintln(w)
	} else {
		fmt.Fprintf(w, "--json lists all %d directions\n\n", len(d.Pairs))
	}
	if len(d.Findings) == 0 {
		fmt.Fprintln(w, "no outliers")
	}
	for _, f := range d.Findings {
		fmt.Fprintf(w, "%s: %s\n", f.Severity, texttab.Clean(f.Text))
	}
	for _, n := range d.Notes {
		if _, err := fmt.Fprintf(w, "note: %s\n", texttab.Clean(n)); err != nil {
			return err
		}
	}
	return nil
}
