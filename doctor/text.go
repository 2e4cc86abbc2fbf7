package doctor

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"busbar.dev/doctor/cause"
	"busbar.dev/finding"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
)

// Text is how a report is written for a terminal.
type Text struct {
	Width int  // of lines; 0: 100
	Paint bool // with colours
	All   bool // every quoted line, and lines that were not understood
}

// colours of the terminal by what they mark.
const (
	red, yellow, dim, bold, plain = "\x1b[31m", "\x1b[33m", "\x1b[2m", "\x1b[1m", "\x1b[0m"
)

func (t Text) paint(code, s string) string {
	if !t.Paint {
		return s
	}
	return code + s + plain
}

// Write prints a report.
func (t Text) Write(w io.Writer, r *Report) error {
	t.Width = cmp.Or(t.Width, 100)
	var b strings.Builder
	b.WriteString(r.summary() + "\n")
	if r.Undecided {
		t.questions(&b, r.Questions)
	}
	for i := range r.Findings {
		b.WriteString("\n")
		t.finding(&b, &r.Findings[i])
	}
	if (t.All || r.Unread > 0 && len(r.Findings) == 0) && len(r.Samples) > 0 {
		b.WriteString("\nNot understood, among others:\n")
		for _, q := range r.Samples {
			b.WriteString("  " + q.Place() + "  " + q.Text + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// summary says what was read and how much is wrong.
func (r *Report) summary() string {
	count := finding.Count(r.Findings)
	read := fmt.Sprintf("%s in %s read", words.Plural(r.Lines, "line"), words.Plural(len(r.Sources), "input"))
	if r.Unknown > 0 {
		read += fmt.Sprintf(", %d not understood", r.Unknown)
	}
	if n := len(r.Dropped); n > 0 {
		read += ", more than is kept of " + strings.Join(slices.Sorted(maps.Keys(r.Dropped))[:min(n, 4)], ", ")
	}
	serious := count.Serious() > 0
	switch {
	case r.Lines == 0 && len(r.Findings) == 0:
		return read + ". There was no line in it, so nothing is known."
	case r.Traces > 0 && !r.Examined():
		return words.Plural(r.Traces, "trace") +
			" of a profiler given, which busbar doctor reads; nothing was examined for faults."
	case r.Blank && len(r.Findings) == 0:
		return read + ". Nothing in it was recognised, so nothing is known; expected a job's log, or the output of a tool " +
			"such as nvidia-smi, ibstat, nccl-tests or dmesg."
	case !serious && r.Undecided && !r.Asked:
		return read + ". No certain problem found, " + words.Plural(len(r.Findings), "possible cause") +
			". The answers to these questions would tell them apart."
	case !serious && !r.Undecided:
		return read + ". " + r.onlyNotes(count[finding.Note])
	case !r.Undecided:
		return read + ". " + count.String() + "; the likeliest cause first."
	case serious && r.Findings[0].Confidence >= cause.Threshold: // by its own line in the log
		read += ". What failed is known, and its cause is not"
	default:
		read += ". The cause is unknown"
	}
	return read + ". The answers to these questions would tell the leading causes, listed below, apart."
}

// onlyNotes says what there is where nothing is above a note: a job may be slow by what a note says, and that is what
// was asked.
func (r *Report) onlyNotes(n int) string {
	s := "No problems found."
	switch {
	case r.Unread > 0:
		s = "No known problem, but " + words.Plural(r.Unread, "warning") + " of NCCL that is not known (-v shows them)."
	case r.Slowing:
		s = "No errors or warnings. " + words.Plural(n, "note") + " on what can slow the job."
	case n > 0:
		s += " " + words.Plural(n, "note") + "."
	}
	if len(r.Tests) > 0 {
		s += " How fast this nccl-tests sweep should be is another question: busbar doctor " +
			strings.ReplaceAll(r.Tests[0], "standard input", "-") + " -c CLUSTER."
	}
	return s
}

// questions writes what to find out next.
func (t Text) questions(b *strings.Builder, list []cause.Question) {
	for i, q := range list {
		fmt.Fprintf(b, "\n%d. %s\n", i+1, t.paint(bold, q.Ask))
		t.part(b, "run:   ", q.Command)
		if len(q.Tells) > 0 {
			t.part(b, "yes:   ", "points to "+strings.Join(q.Tells, ", "))
		}
	}
}

func (t Text) finding(b *strings.Builder, f *finding.Finding) {
	mark := t.paint(dim, "·")
	switch f.Severity {
	case finding.Error:
		mark = t.paint(red, "✗")
	case finding.Warn:
		mark = t.paint(yellow, "!")
	}
	fmt.Fprintf(b, "%s %s  %s\n", mark, t.paint(bold, f.Title),
		t.paint(dim, fmt.Sprintf("[%s, %.0f%% sure]", f.ID, 100*f.Confidence)))
	t.part(b, "follows from ", f.ExplainedBy)
	if f.Cause != f.Title {
		t.part(b, "", f.Cause)
	}
	t.part(b, "where: ", f.Where)
	t.part(b, "cost:  ", f.Cost)
	t.part(b, "fix:   ", f.Fix)
	t.part(b, "see:   ", f.Reference)
	n := 3
	if t.All {
		n = len(f.Evidence)
	}
	for _, q := range first(f.Evidence, n) {
		b.WriteString("    " + t.paint(dim, q.Place()) + "  " + cut(q.Text, t.Width) + "\n")
	}
}

// part writes a labelled paragraph; nothing when there is no text.
func (t Text) part(b *strings.Builder, label, text string) {
	if text == "" {
		return
	}
	lead := label
	for _, l := range texttab.Wrap(text, t.Width-4-len(label)) {
		b.WriteString("    " + lead + l + "\n")
		lead = strings.Repeat(" ", len(label))
	}
}

// cut shortens a quoted line for a terminal.
func cut(s string, width int) string {
	s = texttab.Clean(s)
	if r := []rune(s); len(r) > 2*width {
		return string(r[:2*width]) + " …"
	}
	return s
}
