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
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Plan prints plans, side by side where there are several clusters, and what was written.
func Plan(p *Page, d *query.PlanDoc) {
	if len(d.Plans) == 0 {
		return
	}
	planOf(p, d)
	for i := range d.Variants {
		p.printf("\n")
		planOf(p, &d.Variants[i])
	}
	if len(d.Variants) > 0 {
		p.printf("\n")
	}
	base := &d.Plans[0]
	for i := range d.Variants {
		v := &d.Variants[i]
		r := &v.Plans[0]
		against := when(v.Goal.Head != "",
			fmt.Sprintf(", %.4g %s for a million instead of %.4g", r.Million, v.Goal.Unit, base.Million))
		p.printf("with %s the best plan takes %s instead of %s (%+.1f%% %s/s%s): %s\n", v.Set, r.Step, base.Step,
			float64(100*(base.Step/r.Step-1)), passed(&d.Job), against, r.Parallel)
	}
	if d.Emitted != nil {
		planFiles(p, d.Emitted)
	}
}

// planOf prints the plans for one cluster.
func planOf(p *Page, d *query.PlanDoc) {
	planHead(p, d)
	p.table(plansTable(d))
	planTie(p, d)
	planTight(p, d)
	planWhy(p, d)
	planTuned(p, d)
	p.lines(d.Holds)
	switch {
	case d.Hosts != nil: // busbar step has the cluster's own order
		planHosts(p, d.Hosts)
	case d.Nearby:
		p.printf("ranks follow the network: hosts of one leaf switch are neighbours, unlike in the cluster's order\n")
	default:
		p.printf("details of plan 1: %s\n", d.Plans[0].Command)
	}
}

// planHead says what was asked, and how much of it was looked at.
func planHead(p *Page, d *query.PlanDoc) {
	base := &d.Job
	p.printf("%s on %s%s, %s%s (%s): %s parameters, %s per step, %s, %s\n", d.Model, d.Cluster,
		when(d.Set != "", " with "+d.Set), when(d.Spaces > 1, "up to "), words.Plural(d.GPUs, "GPU"), d.GPU,
		words.Thousands(base.Params), batchOf(base), base.Precision, runBy(base))
	if d.BatchRule != "" {
		p.printf("global batch %d by default: %s; --global-batch names another\n", d.Batch, d.BatchRule)
	}
	p.lines(d.Mixed)
	rest := fmt.Sprintf("stopped early: the others could be up to %.0f%% %s", 100*d.Gap, d.Goal.Better())
	if d.Complete {
		rest = fmt.Sprintf("%s ruled out one by one, %s in groups; no other setting is %s", words.Thousands(d.Bounded),
			words.Thousands(d.Cut), d.Goal.Better())
	}
	p.printf("%s settings: %s priced in full, %s\n", words.Thousands(d.Considered), words.Thousands(d.Priced), rest)
	if d.Failed > 0 {
		p.printf("%s of them, or groups of them, could not be priced and are left out: %v\n", words.Thousands(d.Failed),
			d.Error)
	}
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
	t := texttab.New(">", texttab.If(d.Goal.Head != "", ">"+d.Goal.Head+"|%.4g"), texttab.If(d.Spaces > 1, ">GPUs"),
		">step", ">expected", ">"+passed(&d.Job)+"/s/GPU|%.0f", ">MFU|%.1f%%", ">memory", "parallel", ">micro-batch",
		"recompute", "schedule", "order", texttab.If(slices.ContainsFunc(d.Plans, hasOptions), "options"))
	for i := range d.Plans {
		p := &d.Plans[i]
		piped := p.Parallel.PP > 1
		t.Add(fmt.Sprint(p.Rank)+when(p.Tied, "="), p.Million, p.GPUs, p.Step, spanRange(p.Low, p.High), p.PerGPU,
			100*p.MFU, memoryOf(p.Row.Memory["total"], p.Row.Has)+when(p.Tight, " tight"), p.Parallel, p.Micro,
			p.Recompute, known(piped, p.Schedule), known(piped, string(p.Parallel.Order)),
			cmp.Or(strings.Join(p.Options, ", "), "-"))
	}
	return t
}

func hasOptions(p query.PlanRow) bool { return len(p.Options) > 0 }

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

// planTight says what tight means.
func planTight(p *Page, d *query.PlanDoc) {
	if slices.ContainsFunc(d.Plans, func(p query.PlanRow) bool { return p.Tight }) {
		p.printf("tight: measured memory was up to %.0f%% above predictions, which these plans do not have left; "+
			"--reserve 0.1 plans with room\n", 100*(step.MemoryMargin-1))
	}
}

// planTie says which plans cannot be told from the first, and what else speaks for some of them.
func planTie(p *Page, d *query.PlanDoc) {
	t := d.Tie
	if t == nil {
		return
	}
	p.printf("plans 1 %s %d cannot be told apart: they are within %.0f%% of each other\n",
		either(len(t.Plans) == 2, "and", "to"), t.Plans[len(t.Plans)-1], 100*(t.Margin-1))
	p.printf("order: %s\n", t.Order)
	for _, f := range t.For {
		p.printf("for plan %d: %s%s\n", f.Rank, f.Reason,
			when(f.Rank > 1, fmt.Sprintf(" (--pick %d writes its files)", f.Rank)))
	}
}

// planWhy says what limits the first plans, and what would help.
func planWhy(p *Page, d *query.PlanDoc) {
	p.printf("1: %s\n", d.Plans[0].Why)
	if i := slices.IndexFunc(d.Plans, func(p query.PlanRow) bool { return p.Row.HostMemory != "" }); i >= 0 {
		r := &d.Plans[i].Row
		need := unit.Volume(r.Memory["host"]) * unit.Volume(min(d.PerNode, r.Ranks))
		p.printf("%d: host memory per node %.0f GB of %.0f GB (%s)\n", i+1, need.GB(), unit.Volume(d.Memory).GB(),
			d.MemFrom)
	}
	if len(d.Plans) > 1 {
		p.printf("2: %s\n", d.Plans[1].Why)
	}
	help := d.Plans[0].Row.Advice
	for _, c := range help {
		p.printf("would help plan 1: %s with %s: %s\n", moreTokens(c.Gain, 1, passed(&d.Job)), c.Setting, c.Text)
	}
	for _, o := range d.Others {
		p.printf("with --framework %s: %s, %.1f%% %s%s, by %s\n%s", o.Framework, o.Step, 100*o.Gain,
			d.Goal.Better(), when(o.Tied, ", too little to tell"), o.Settings,
			when(o.Difference != "", "  "+o.Difference+"\n"))
	}
	if len(help) == 0 && d.Plans[0].NCCL != nil {
		p.printf("no other change tried speeds plan 1 up by %.1f%%: NCCL settings, faster links of every kind, twice "+
			"the memory\n", 100*query.LeastHelp)
	}
	p.lines(d.Goal.Note)
}

// mostChoices is how many choices of a tuner are printed.
const mostChoices = 3

// planTuned says what a tuner would choose otherwise than NCCL, and what that brings.
func planTuned(p *Page, d *query.PlanDoc) {
	first := &d.Plans[0]
	if first.NCCL == nil || first.Row.Comm == 0 {
		return
	}
	list := first.NCCL.Choices
	if len(list) == 0 {
		p.printf("NCCL's choices of algorithm and protocol are within 5%% of the best for plan 1\n")
		return
	}
	var choices []string
	last := ""
	for _, c := range list {
		of := fmt.Sprint(c.Group, c.Kind, c.Algo, c.Proto)
		if of == last {
			continue // sizes beside each other
		}
		if last = of; len(choices) == mostChoices {
			choices = append(choices, "and others")
			break
		}
		choices = append(choices,
			fmt.Sprintf("%s of %v among %s ranks by %s %s instead of %s %s (%.2f times as fast)", c.Kind, c.Bytes,
				c.Group, c.Algo, c.Proto, c.Own, c.OwnProto, c.Gain))
	}
	what := "with busbar's tuner plugin (--emit with --files tuner writes it) plan 1 would take " + first.NCCL.Step.Short()
	if d.Tuner {
		what = "chosen by the tuner plugin (--emit writes it) for plan 1"
	} else if gain := float64(first.Step/first.NCCL.Step) - 1; gain >= 0.001 {
		what += ", " + moreTokens(gain, 1, passed(&d.Job))
	} else {
		what += ", which is no gain: they are overlapped with compute"
	}
	p.printf("%s: %s\n", what, strings.Join(choices, "; "))
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
