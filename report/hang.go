package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"busbar.dev/doctor/hang"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
)

// Hang prints who holds a job up, by what that is known, and what to do.
func Hang(w io.Writer, d *query.HangDoc, o TextOptions) error {
	if taken, err := hangTable(d).Send(w); taken {
		return err
	}
	_, err := io.WriteString(w, printed(o, func(s style) string { return hangText(d, s, o.width()) }))
	return err
}

// hangTable is the verdict with a row for each culprit, for writers that take tables.
func hangTable(d *query.HangDoc) *texttab.Table {
	t := texttab.New("verdict", "kind", ">confidence (%)|%.0f", ">rank", "host", ">GPU", ">process", "communicator",
		"operation", ">sequence", "text")
	group, number := "", func(n int) string { return known(n > 0, fmt.Sprint(n)) }
	if d.Communicator != nil {
		group = d.Communicator.Name
	}
	row := func(rank, host, gpu, pid string) {
		t.Add(d.State, d.Kind, 100*d.Confidence, rank, host, gpu, pid, group, d.Op, number(int(d.Sequence)), d.Text)
	}
	for _, r := range d.Ranks {
		gpu := "-"
		if r.GPU != nil {
			gpu = fmt.Sprint(*r.GPU)
		}
		row(fmt.Sprint(r.Rank), r.Host, gpu, number(r.PID))
	}
	if len(d.Ranks) == 0 {
		row("-", "", "-", "-")
	}
	return t
}

func hangText(d *query.HangDoc, s style, width int) string {
	var b strings.Builder
	mark := severityMark(s, d.Severity())
	if d.State == "healthy" {
		mark = s.green("✓")
	}
	title := d.Title()
	if d.Confidence > 0 {
		title += fmt.Sprintf(" (%.0f%% sure)", 100*d.Confidence)
	}
	b.WriteString(mark + " " + s.bold(title) + "\n")
	for _, l := range texttab.Wrap(d.Text, width-2) {
		b.WriteString("  " + l + "\n")
	}
	for i, r := range d.Ranks {
		if i == 8 {
			fmt.Fprintf(&b, "             and %d more\n", len(d.Ranks)-8)
			break
		}
		lead := "  culprit    "
		if d.Kind == hang.NoReport {
			lead = "  unknown    "
		}
		if i > 0 {
			lead = "             "
		}
		b.WriteString(lead + hangPlace(r.Rank, r.Host, r.PID, r.GPU) + "\n")
	}
	if c := d.Communicator; c != nil {
		op := cmp.Or(d.Op, "a collective")
		if d.Sequence > 0 {
			op += fmt.Sprintf(" #%d", d.Sequence)
		}
		text := op + " on " + c.Name + ", a communicator of " + words.Plural(len(c.Ranks), "rank")
		if n := len(d.Waiting); n > 0 {
			text += fmt.Sprintf("; %s of the job %s", words.Plural(n, "rank"),
				map[bool]string{true: "waits", false: "wait"}[n == 1])
		}
		b.WriteString("  waits in   " + text + "\n")
	}
	if d.Stack != "" {
		b.WriteString("  doing      " + d.Stack + "\n")
	}
	hangList(&b, s, "evidence", width, len(d.Evidence), func(i int) string { return d.Evidence[i].String() })
	hangList(&b, s, "next", width, len(d.Next), func(i int) string { return d.Next[i] })
	hangList(&b, s, "notes", width, len(d.Notes), func(i int) string { return d.Notes[i] })
	if len(d.Signals) > 0 {
		b.WriteString("\n" + s.dim("evidence from: "+strings.Join(d.Signals, ", ")) + "\n")
	}
	return b.String()
}

func hangPlace(rank int, host string, pid int, gpu *int) string {
	text := fmt.Sprintf("rank %d", rank)
	if host != "" {
		text += " on " + host
	}
	if gpu != nil {
		text += fmt.Sprintf(", GPU %d", *gpu)
	}
	if pid > 0 {
		text += fmt.Sprintf(", process %d", pid)
	}
	return text
}

// hangList prints a list below its heading, a dozen lines of it.
func hangList(b *strings.Builder, s style, head string, width, n int, text func(int) string) {
	if n == 0 {
		return
	}
	b.WriteString("\n" + s.bold(head) + "\n")
	for i := range min(n, 12) {
		for k, l := range texttab.Wrap(text(i), width-4) {
			lead := "  - "
			if k > 0 {
				lead = "    "
			}
			b.WriteString(lead + l + "\n")
		}
	}
	if n > 12 {
		fmt.Fprintf(b, "  … and %d more\n", n-12)
	}
}
