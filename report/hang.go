package report

import (
	"cmp"
	"fmt"
	"strings"

	"busbar.dev/doctor/hang"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
)

// Hang prints who holds a job up, by what that is known, and what to do.
func Hang(p *Page, d *query.HangDoc) {
	p.send(hangTable(d))
	p.printf("%s %s\n", either(d.State == "healthy", p.green("✓"), p.mark(d.Severity())),
		p.bold(d.Title()+when(d.Confidence > 0, fmt.Sprintf(" (%.0f%% sure)", 100*d.Confidence))))
	p.wrapped("  ", "  ", d.Text)
	var culprits []string
	for _, r := range d.Ranks {
		text := fmt.Sprintf("rank %d", r.Rank) + when(r.Host != "", " on "+r.Host)
		if r.GPU != nil {
			text += fmt.Sprintf(", GPU %d", *r.GPU)
		}
		culprits = append(culprits, text+when(r.PID > 0, fmt.Sprintf(", process %d", r.PID)))
	}
	p.hanging(either(d.Kind == hang.NoReport, "  unknown    ", "  culprit    "), "             ",
		firstOf(culprits, 8, ""))
	if c := d.Communicator; c != nil {
		n := len(d.Waiting)
		p.printf("  waits in   %s%s on %s, a communicator of %s%s\n", cmp.Or(d.Op, "a collective"),
			when(d.Sequence > 0, fmt.Sprintf(" #%d", d.Sequence)), c.Name,
			when(c.Least, "at least ")+words.Plural(len(c.Ranks), "rank"),
			when(n > 0, fmt.Sprintf("; %s of the job %s", words.Plural(n, "rank"), either(n == 1, "waits", "wait"))))
	}
	p.lines(when(d.Stack != "", "  doing      "+d.Stack))
	var evidence []string
	for _, q := range d.Evidence {
		evidence = append(evidence, q.String())
	}
	p.marked("evidence", "-", evidence, 12)
	p.marked("next", "-", d.Next, 12)
	p.marked("notes", "-", d.Notes, 12)
	if len(d.Signals) > 0 {
		p.printf("\n%s\n", p.dim("evidence from: "+strings.Join(d.Signals, ", ")))
	}
}

// hangTable is the verdict with a row for each culprit, for writers that take tables.
func hangTable(d *query.HangDoc) *texttab.Table {
	t := texttab.New("verdict", "kind", ">confidence (%)|%.0f", ">rank", "host", ">GPU", ">process", "communicator",
		"operation", ">sequence", "text")
	group := ""
	if d.Communicator != nil {
		group = d.Communicator.Name
	}
	row := func(rank, host, gpu, pid string) {
		t.Add(d.State, d.Kind, 100*d.Confidence, rank, host, gpu, pid, group, d.Op, orDash(d.Sequence), d.Text)
	}
	for _, r := range d.Ranks {
		gpu := "-"
		if r.GPU != nil {
			gpu = fmt.Sprint(*r.GPU)
		}
		row(fmt.Sprint(r.Rank), r.Host, gpu, orDash(r.PID))
	}
	if len(d.Ranks) == 0 {
		row("-", "", "-", "-")
	}
	return t
}
