package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/doctor/rates"
	"busbar.dev/finding"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
)

// Jobs prints the rates of running jobs, who is late, and what is wrong.
func Jobs(w io.Writer, d *query.JobsDoc, o TextOptions) error {
	return write(w, o, func(s style) string { return jobsText(d, s, o) })
}

func jobsText(d *query.JobsDoc, s style, o TextOptions) string {
	var b strings.Builder
	for i := range d.Jobs {
		j := &d.Jobs[i]
		name := jobName(j)
		fmt.Fprintf(&b, "%s  %s of %d seen, %.1f s; the median rank waits %.1f%% of the time\n\n", s.bold("job "+name),
			words.Plural(len(j.Ranks), "rank"), j.World, j.Seconds, 100*j.Waiting)
		b.WriteString(jobRows(j, s, o))
		if o.Verbose || j.Late != nil {
			b.WriteString(jobRanks(j, s, o))
		}
	}
	if len(d.Jobs) == 0 {
		b.WriteString("no operations\n\n")
	}
	switch {
	case d.Predicted != "":
		b.WriteString(s.dim("expected: by predict on "+d.Predicted+", with its error bar"+judgedBy(d)) + "\n")
	case d.Unpredicted != "":
		for _, l := range texttab.Wrap("no expectation: "+d.Unpredicted, o.width()) {
			b.WriteString(s.dim(l) + "\n")
		}
	}
	if d.Lost > 0 {
		fmt.Fprintf(&b, "%s of communicators beyond the 256th of a process were not recorded\n",
			words.Plural(int(d.Lost), "operation"))
	}
	b.WriteString(jobFindings(d.Findings, s, o))
	if len(d.Findings) == 0 {
		b.WriteString("\nNo problems found.\n")
	}
	return b.String()
}

func jobName(j *rates.Job) string {
	if j.Name == "" {
		return fmt.Sprintf("of process %d on %s", j.Ranks[0].PID, j.Ranks[0].Host)
	}
	return j.Name
}

// jobFindings are paragraphs, each with what it rests on and what to do.
func jobFindings(list []finding.Finding, s style, o TextOptions) string {
	var b strings.Builder
	for _, f := range list {
		b.WriteString("\n" + severityMark(s, f.Severity) + " " + s.bold(f.ID) + "\n")
		hanging(&b, "  ", "  ", texttab.Wrap(f.Text, o.width()-2))
		for _, q := range f.Evidence {
			for _, l := range texttab.Wrap(q.String(), o.width()-4) {
				b.WriteString("  " + s.dim("  "+l) + "\n")
			}
		}
		hanging(&b, "  ", "  ", texttab.Wrap("fix: "+f.Fix, o.width()-2))
	}
	return b.String()
}

// maxJobRows are those that are printed of one job.
const maxJobRows = 40

func jobRows(j *rates.Job, s style, o TextOptions) string {
	t := texttab.New("communicator", ">ranks", "operation", ">size", ">calls", "algorithm", ">time", ">transfer", ">wait",
		">busbw", ">expected", "last", "verdict")
	t.Most, t.Title = maxJobRows, texttab.Clean(jobName(j))
	for i := range j.Rows {
		r := &j.Rows[i]
		expected := "-"
		if e := r.Expected; e != nil {
			expected = fmt.Sprintf("%s (%s–%s)", e.Time, e.Low, e.High)
		}
		verdict := string(r.Verdict)
		switch r.Verdict {
		case rates.AsExpected:
			verdict = s.green(verdict)
		case rates.SlowNetwork, rates.Both:
			verdict = s.red(verdict)
		case rates.Waits:
			verdict = s.yellow(verdict)
		}
		t.Add(r.Group, r.Ranks, r.Op, r.Bytes, r.Count, strings.TrimSpace(r.Algo+" "+r.Proto), r.Time,
			known(r.Transfer > 0, r.Transfer.String()), known(r.Transfer > 0, r.Wait.String()),
			known(r.BusBW > 0, r.BusBW.String()), expected,
			known(r.LateRank >= 0, fmt.Sprintf("%d (%.0f%%)", r.LateRank, 100*r.LateOf)), verdict)
	}
	text := s.fit(t, o.Width)
	if n := len(j.Rows) - maxJobRows; n > 0 {
		text += fmt.Sprintf("… and %s more (--json has all)\n", words.Plural(n, "row"))
	}
	return text + "\n"
}

func jobRanks(j *rates.Job, s style, o TextOptions) string {
	t := texttab.New(">rank", texttab.If(j.Ranks[0].Host != "", "host", ">process"), ">waits|%.1f%%", ">calls", "")
	t.Most, t.Title = 64, texttab.Clean(jobName(j))
	for i := range j.Ranks {
		r := &j.Ranks[i]
		mark := ""
		if j.Late != nil && j.Late.Host == r.Host && slices.Contains(j.Late.Ranks, r.Rank) {
			mark = s.yellow("last")
		}
		t.Add(r.Rank, r.Host, r.PID, 100*r.Wait, r.Calls, mark)
	}
	return s.fit(t, o.Width) + "\n"
}

// judgedBy says what transfers are called slow by.
func judgedBy(d *query.JobsDoc) string {
	var list []string
	for i := range d.Jobs {
		for k := range d.Jobs[i].Rows {
			if a := string(d.Jobs[i].Rows[k].Against); a != "" && !slices.Contains(list, a) {
				list = append(list, a)
			}
		}
	}
	if len(list) == 0 {
		return ""
	}
	slices.Sort(list)
	return "; slow is judged by the " + strings.Join(list, ", the ")
}
