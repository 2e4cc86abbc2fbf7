package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/plan"
	"busbar.dev/query"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Plan prints the plans for one cluster: the job, the first plan, what limits it and what would help, then the table,
// and what was written. How the search went and what else was looked at follow where more is asked for.
func Plan(p *Page, d *query.PlanDoc) {
	if len(d.Plans) == 0 {
		return
	}
	base, first := &d.Job, &d.Plans[0]
	p.printf("%s on %s, %s%s (%s): %s parameters, %s per step%s, %s, %s\n", base.Model, d.Cluster,
		when(d.Spaces > 1, "up to "), words.Plural(d.GPUs, "GPU"), d.GPU,
		words.Thousands(base.Params), batchOf(base), when(d.BatchRule != "", " (default)"), base.Precision, runBy(base))
	p.printf("plan 1: %s per step (%s expected), %s; %s\n", first.Step, spanRange(first.Low, first.High), first.Parallel,
		first.Reason)
	if first.Beyond != "" {
		p.printf("plan 1 promises %s\n", first.Beyond)
	}
	p.printf("limit: %s\n", first.Why)
	help := first.Row.Advice
	helps(p, "would help", help[:min(1, len(help))], 1, base)
	p.table(plansTable(d))
	if !d.Complete {
		p.printf("stopped early: the others could be up to %.0f%% %s\n", 100*d.Gap, d.Goal.Better())
	}
	for _, o := range d.Others {
		p.printf("with --framework %s: %s, %.1f%% %s, by %s\n", o.Framework, o.Step, 100*o.Gain, d.Goal.Better(),
			o.Settings)
	}
	if p.Verbose {
		planMore(p, d)
	}
	switch {
	case d.Hosts != nil: // busbar step has the cluster's own order
		planHosts(p, d.Hosts)
	case d.Nearby:
		p.printf("ranks follow the network: hosts of one leaf switch are neighbours, unlike in the cluster's order\n")
	default:
		p.printf("details of plan 1: %s\n", first.Command)
	}
	if d.Emitted != nil {
		planFiles(p, d.Emitted)
	}
}

// planMore says how much was looked at, what else would help, and what the order rests on.
func planMore(p *Page, d *query.PlanDoc) {
	if d.BatchRule != "" {
		p.printf("global batch %d by default: %s; --global-batch names another\n", d.Batch, d.BatchRule)
	}
	p.lines(d.Mixed)
	p.printf("%s settings: %s priced in full, %s ruled out one by one, %s in groups\n", words.Thousands(d.Considered),
		words.Thousands(d.Priced), words.Thousands(d.Bounded), words.Thousands(d.Cut))
	if d.Failed > 0 {
		p.printf("%s of them, or groups of them, could not be priced and are left out: %v\n", words.Thousands(d.Failed),
			d.Error)
	}
	planWhy(p, d)
	planTuned(p, d)
	p.lines(when(d.Holds != "", "assumed: "+d.Holds))
}

// runBy is the framework of a job with its kernels: frameworks differ in them, and a comparison of two is one of those
// too.
func runBy(j *workload.Summary) string {
	return j.Framework + " with " + j.Kernels + " kernels" + when(j.Reason != "", " ("+j.Reason+")")
}

// batchOf is a global batch in words.
func batchOf(j *workload.Summary) string {
	if j.Seq == 1 {
		return words.Plural(int(j.Global), "sample")
	}
	return fmt.Sprintf("%s of %d tokens", words.Plural(int(j.Global), "sequence"), j.Seq)
}

// passed is what a rate counts: a picture is a sequence of one token.
func passed(j *workload.Summary) string { return counted(j.Seq == 1) }

// plansTable is the plans, best first. Columns that say the same in all rows are left out.
func plansTable(d *query.PlanDoc) *texttab.Table {
	options := slices.ContainsFunc(d.Plans, func(p query.PlanRow) bool { return len(p.Options) > 0 })
	t := texttab.New(">", texttab.If(d.Goal.Head != "", ">"+d.Goal.Head+"|%.4g"), texttab.If(d.Spaces > 1, ">GPUs"),
		">step", ">expected", ">"+passed(&d.Job)+"/s/GPU|%.0f", ">MFU|%.1f%%", ">memory", "why", "parallel", ">micro-batch",
		"recompute", "schedule", "order", texttab.If(options, "options"))
	for _, p := range d.Plans {
		piped := p.Parallel.PP > 1
		t.Add(p.Rank, p.Million, p.GPUs, p.Step, spanRange(p.Low, p.High), p.PerGPU,
			100*p.MFU, memoryOf(p.Row.Memory["total"], p.Row.Has)+when(p.Tight, " tight"), p.Reason, p.Parallel, p.Micro,
			p.Recompute, known(piped, p.Schedule), known(piped, string(p.Parallel.Order)),
			cmp.Or(strings.Join(p.Options, ", "), "-"))
	}
	return t
}

// spanRange is two times, with one unit where they have the same.
func spanRange(low, high unit.Span) string {
	a, b := low.Short(), high.Short()
	if x, of, ok := strings.Cut(a, " "); ok && strings.HasSuffix(b, " "+of) {
		a = x
	}
	return a + "–" + b
}

// memoryOf is what a GPU needs of what it has.
func memoryOf(needs, has unit.Bytes) string {
	return fmt.Sprintf("%.1f of %.0f GiB", unit.Volume(needs).GiB(), unit.Volume(has).GiB())
}

// planWhy says what the plans after the first lose against it, what the host holds, and what else would help.
func planWhy(p *Page, d *query.PlanDoc) {
	if i := slices.IndexFunc(d.Plans, func(p query.PlanRow) bool { return p.Row.HostMemory != "" }); i >= 0 {
		p.printf("%d: %s; it has %.0f GB (%s)\n", i+1, d.Plans[i].Row.HostMemory, unit.Volume(d.Memory).GB(), d.MemFrom)
	}
	for i := range d.Plans[1:] {
		p.printf("%d: %s\n", i+2, d.Plans[i+1].Why)
	}
	help := d.Plans[0].Row.Advice
	helps(p, "would help plan 1", help[min(1, len(help)):], 1, &d.Job)
}

// planTuned says what a tuner would choose otherwise than NCCL most of all, and what that brings.
func planTuned(p *Page, d *query.PlanDoc) {
	first := &d.Plans[0]
	if first.NCCL == nil || first.Row.Comm == 0 {
		return
	}
	if len(first.NCCL.Choices) == 0 {
		p.printf("NCCL's choices of algorithm and protocol are within 5%% of the best for plan 1\n")
		return
	}
	c := first.NCCL.Choices[0]
	what := "with busbar's tuner plugin (--emit with --files tuner writes it) plan 1 would take " + first.NCCL.Step.Short()
	if d.Tuner {
		what = "chosen by the tuner plugin (--emit writes it) for plan 1"
	}
	p.printf("%s: %s of %v among %s ranks by %s %s instead of %s %s (%.2f times as fast)\n", what, c.Kind, c.Bytes,
		c.Group,
		c.Algo, c.Proto, c.Own, c.OwnProto, c.Gain)
}

// planHosts says in which order ranks are put on the hosts.
func planHosts(p *Page, d *plan.RankOrder) {
	switch {
	case d.Kept:
		p.printf("rank order: as given (--keep-order): %s\n", d.Order)
	case d.Given == d.Order && d.Tried < 2:
		p.printf("rank order: as given, %s\n", d.Order)
	case d.Given == d.Order:
		p.printf("rank order: as given, %s; also tried: %s, not faster\n", d.Order, words.Plural(d.Tried-1, "other"))
	default:
		p.printf("rank order: %s; step time %s, in the given order (%s) %s, %.2f times as long; %s tried\n", d.Order,
			d.Step, d.Given, d.Was, float64(d.Was/d.Step), words.Plural(d.Tried, "order"))
	}
}

// planFiles lists what was written.
func planFiles(p *Page, d *query.PlanFiles) {
	p.printf("\nplan %d is in %s: %s\n", d.Plan, d.Dir, strings.Join(d.Files, ", "))
	for _, s := range d.Settings {
		p.printf("  %s=%s: %s\n", s.Name, s.Value, s.Reason)
	}
	if len(d.Settings) == 0 {
		p.printf("  no NCCL setting for all ranks: none makes the step 1%% faster\n")
	}
	for _, l := range d.Left {
		p.printf("  no %s: %s\n", l.Name, l.Reason)
	}
	if d.Placeholders {
		p.printf("  host names are placeholders; --hosts gives real ones\n")
	}
}
