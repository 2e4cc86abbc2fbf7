package report

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/doctor/rates"
	"busbar.dev/finding"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
)

// Jobs prints the rates of running jobs, who is late, and what is wrong.
func Jobs(p *Page, d *query.JobsDoc) {
	for _, j := range d.Jobs {
		p.printf("%s  %s of %d seen, %.1f s; the median rank waits %.1f%% of the time\n\n", p.bold("job "+jobName(&j)),
			words.Plural(len(j.Ranks), "rank"), j.World, j.Seconds, 100*j.Waiting)
		jobRows(p, &j)
		if p.Verbose || j.Late != nil {
			jobRanks(p, &j)
		}
	}
	if len(d.Jobs) == 0 {
		p.printf("no operations\n\n")
	}
	switch {
	case d.Predicted != "":
		p.lines(p.dim("expected: by predict on " + d.Predicted + ", with its error bar" + judgedBy(d)))
	case d.Unpredicted != "":
		p.wrapped("", "", p.dim("no expectation: "+d.Unpredicted))
	}
	if d.Lost > 0 {
		p.printf("%s of communicators beyond the 256th of a process were not recorded\n",
			words.Plural(int(d.Lost), "operation"))
	}
	jobFindings(p, d.Findings)
	if len(d.Findings) == 0 {
		p.printf("\nNo problems found.\n")
	}
}

func jobName(j *rates.Job) string {
	if j.Name == "" {
		return fmt.Sprintf("of process %d on %s", j.Ranks[0].PID, j.Ranks[0].Host)
	}
	return j.Name
}

// jobFindings are paragraphs, each with what it rests on and what to do.
func jobFindings(p *Page, list []finding.Finding) {
	for _, f := range list {
		p.printf("\n%s %s\n", p.mark(f.Severity), p.bold(f.ID))
		p.wrapped("  ", "  ", f.Text)
		for _, q := range f.Evidence {
			p.wrapped("    ", "    ", p.dim(q.String()))
		}
		p.wrapped("  ", "  ", "fix: "+f.Fix)
	}
}

// maxJobRows are those that are printed of one job.
const maxJobRows = 40

func jobRows(p *Page, j *rates.Job) {
	t := texttab.New("communicator", ">ranks", "operation", ">size", ">calls", "algorithm", ">time", ">transfer", ">wait",
		">busbw", ">expected", "last", "verdict")
	t.Title = jobName(j)
	for _, r := range j.Rows {
		expected := "-"
		if e := r.Expected; e != nil {
			expected = fmt.Sprintf("%s (%s–%s)", e.Time, e.Low, e.High)
		}
		verdict := string(r.Verdict)
		switch r.Verdict {
		case rates.AsExpected:
			verdict = p.green(verdict)
		case rates.SlowNetwork, rates.Both:
			verdict = p.red(verdict)
		case rates.Waits:
			verdict = p.yellow(verdict)
		}
		t.Add(r.Group, r.Ranks, r.Op, r.Bytes, r.Count, strings.TrimSpace(r.Algo+" "+r.Proto), r.Time,
			orDash(r.Transfer), known(r.Transfer > 0, r.Wait.String()),
			orDash(r.BusBW), expected,
			known(r.LateRank >= 0, fmt.Sprintf("%d (%.0f%%)", r.LateRank, 100*r.LateOf)), verdict)
	}
	p.first(t, maxJobRows, ": --json")
	p.printf("\n")
}

func jobRanks(p *Page, j *rates.Job) {
	t := texttab.New(">rank", texttab.If(j.Ranks[0].Host != "", "host", ">process"), ">waits|%.1f%%", ">calls", "")
	t.Title = jobName(j)
	for _, r := range j.Ranks {
		late := j.Late != nil && j.Late.Host == r.Host && slices.Contains(j.Late.Ranks, r.Rank)
		t.Add(r.Rank, r.Host, r.PID, 100*r.Wait, r.Calls, when(late, p.yellow("last")))
	}
	p.first(t, 64, ": --json")
	p.printf("\n")
}

// judgedBy says what transfers are called slow by.
func judgedBy(d *query.JobsDoc) string {
	var list []string
	for _, j := range d.Jobs {
		for _, r := range j.Rows {
			if a := string(r.Against); a != "" && !slices.Contains(list, a) {
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
