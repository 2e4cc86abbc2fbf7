package doctor

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"busbar.dev/finding"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
)

// Text is how a report is written for a terminal.
type Text struct {
	Width int  // of lines; 0: 100
	Paint bool // with colours
	All   bool // every finding in full, every quoted line, and lines that were not understood
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

// An answer is short: what is known, on which lines it rests, the fix, the command that confirms it.
const (
	answerLines = 12
	shownQuotes = 3
)

// Write prints a report.
func (t Text) Write(w io.Writer, r *Report) error {
	t.Width = cmp.Or(t.Width, 100)
	list := []string{r.summary()}
	if len(r.Findings) == 0 && len(r.Judged) > 0 && len(r.Unjudged) > 0 {
		list = append(list, texttab.Wrap("Not judged, as no input says it: "+strings.Join(r.Unjudged, "; ")+".", t.Width)...)
	}
	switch {
	case t.All:
		for i := range r.Findings {
			list = append(list, "")
			list = append(list, t.finding(&r.Findings[i], 0)...)
		}
	case r.Undecided:
		list = append(list, t.collect(r.Findings)...)
	default:
		list = t.answer(list, r.Findings)
	}
	if (t.All || r.Unread > 0 && len(r.Findings) == 0) && len(r.Samples) > 0 {
		list = append(list, "", "Not understood, among others:")
		for _, q := range r.Samples {
			list = append(list, "  "+q.Place()+"  "+q.Text)
		}
	}
	_, err := io.WriteString(w, strings.Join(list, "\n")+"\n")
	return err
}

// answer adds the first finding, and of the others as many titles as there is room for.
func (t Text) answer(list []string, found []finding.Finding) []string {
	if len(found) == 0 {
		return list
	}
	room := 2
	if len(found) == 1 {
		room = 5
	}
	list = append(list, t.finding(&found[0], room)...)
	others := found[1:]
	for i := range others {
		if room := answerLines - len(list); room == 1 && len(others)-i > 1 {
			return append(list, t.paint(dim, words.Plural(len(others)-i, "more finding")+": busbar doctor -v"))
		}
		list = append(list, t.head(&others[i]))
	}
	return list
}

// happened says what lines show where no cause is known: the symptom.
func happened(found []finding.Finding) string {
	var list []string
	for i := range found {
		if f := &found[i]; f.Severity != finding.Note {
			list = append(list, strings.TrimSuffix(f.Title+", "+f.Where, ", "))
		}
	}
	if len(list) == 0 {
		return ""
	}
	return " It shows: " + strings.Join(first(list, leading), "; ") + "."
}

// collect says what to find out: the leading causes, each with what decides it.
func (t Text) collect(found []finding.Finding) (list []string) {
	n := 0
	for i := range found {
		f := &found[i]
		if f.Severity != finding.Note || n == leading || f.Confidence < 0.01 {
			continue
		}
		n++
		list = append(list, fmt.Sprintf("%d. %s  %s", n, t.paint(bold, f.Title), t.paint(dim, said(f))))
		list = append(list, t.part("run: ", f.Confirm, 1)...)
		list = append(list, t.part("fix: ", f.Fix, 1)...)
	}
	return list
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
	switch {
	case r.Lines == 0 && len(r.Findings) == 0:
		return read + ". There was no line in it, so nothing is known."
	case r.Traces > 0 && !r.Examined():
		return words.Plural(r.Traces, "trace") +
			" of a profiler given, which busbar doctor reads; nothing was examined for faults."
	case r.Blank && len(r.Findings) == 0 && r.Named != "":
		return read + ". Nothing was examined for faults: this is " + r.Named + "."
	case r.Blank && len(r.Findings) == 0:
		return read + ". Nothing in it was recognised, so nothing is known; expected a job's log, or the output of a tool " +
			"such as nvidia-smi, ibstat, nccl-tests or dmesg."
	case r.Undecided:
		return read + "." + happened(r.Findings) + " The cause is not known; collect these, in this order:"
	case count.Serious() > 0:
		return read + ". " + count.String() + "; the likeliest cause first."
	}
	return read + ". " + r.onlyNotes(count[finding.Note])
}

// onlyNotes says what there is where nothing is above a note.
func (r *Report) onlyNotes(n int) string {
	s := "No problems found."
	switch {
	case r.Unread > 0:
		s = "No known problem, but " + words.Plural(r.Unread, "warning") + " of NCCL that is not known (-v shows them)."
	case n > 0 && r.Guessed:
		s = "No verdict, as the machine was guessed, or nobody has published measurements of one like it: " +
			words.Plural(n, "note") + "."
	case n > 0:
		s = "No errors or warnings. " + words.Plural(n, "note") + "."
	}
	switch {
	case len(r.Judged) == 0:
	case r.Judged[0] != wordsOnly:
		s += " Judged: " + strings.Join(r.Judged, ", ") + "."
	case n == 0 && r.Unread == 0:
		s = "No known fault is named in it. Nothing else was judged."
	}
	if len(r.Tests) > 0 {
		s += " How fast this nccl-tests sweep should be is another question: busbar doctor " +
			strings.ReplaceAll(r.Tests[0], "standard input", "-") + " -c CLUSTER."
	}
	return s
}

func said(f *finding.Finding) string {
	s := fmt.Sprintf("[%s, %.0f%% sure]", f.ID, 100*f.Confidence)
	if f.ExplainedBy != "" {
		s += " follows from " + f.ExplainedBy
	}
	return s
}

// head is the line of a finding that names it.
func (t Text) head(f *finding.Finding) string {
	mark := t.paint(dim, "·")
	switch f.Severity {
	case finding.Error:
		mark = t.paint(red, "✗")
	case finding.Warn:
		mark = t.paint(yellow, "!")
	}
	return fmt.Sprintf("%s %s  %s", mark, t.paint(bold, f.Title), t.paint(dim, said(f)))
}

// finding is a finding in full, or in as many lines as an answer has beside its first, with so many lines of cause.
func (t Text) finding(f *finding.Finding, lines int) []string {
	list := []string{t.head(f)}
	if f.Cause != f.Title {
		list = append(list, t.part("", f.Cause, lines)...)
	}
	list = append(list, t.part("where: ", f.Where, 1)...)
	shown := first(f.Evidence, shownQuotes)
	if t.All {
		shown = f.Evidence
	}
	for _, q := range shown {
		place := q.Place()
		list = append(list, "    "+t.paint(dim, place)+"  "+cut(q.Text, t.Width-6-len(place)))
	}
	check := t.part("check: ", f.Confirm, 1)
	list = append(list, t.part("fix:   ", f.Fix, answerLines-1-len(list)-len(check))...)
	list = append(list, check...)
	if t.All {
		list = append(list, t.part("cost:  ", f.Cost, 1)...)
		list = append(list, t.part("see:   ", f.Reference, 1)...)
	}
	return list
}

// part is a labelled paragraph, of some lines where not all is asked for; nothing when there is no text.
func (t Text) part(label, text string, lines int) (list []string) {
	if text == "" {
		return nil
	}
	wrapped := texttab.Wrap(text, t.Width-4-len(label))
	if !t.All && len(wrapped) > lines {
		wrapped = wrapped[:lines]
		wrapped[lines-1] += " …"
	}
	for _, l := range wrapped {
		list = append(list, "    "+label+l)
		label = strings.Repeat(" ", len(label))
	}
	return list
}

// cut shortens a quoted line for a terminal. Its end often says why: DUE TO TIME LIMIT.
func cut(s string, width int) string {
	r := []rune(texttab.Clean(s))
	if width = max(width, 40); len(r) > width {
		return string(r[:width/2]) + " … " + string(r[len(r)-width/2:])
	}
	return string(r)
}
