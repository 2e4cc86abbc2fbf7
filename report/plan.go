package report

import (
	"cmp"
	"fmt"
	"io"
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
func Plan(w io.Writer, d *query.PlanDoc) error {
	if len(d.Plans) == 0 {
		return nil
	}
	if err := planOf(w, d); err != nil {
		return err
	}
	for i := range d.Variants {
		fmt.Fprintln(w)
		if err := planOf(w, &d.Variants[i]); err != nil {
			return err
		}
	}
	fmt.Fprint(w, when(len(d.Variants) > 0, "\n"))
	base := &d.Plans[0]
	for i := range d.Variants {
		v := &d.Variants[i]
		r := &v.Plans[0]
		against := when(v.Goal.Head != "",
			fmt.Sprintf(", %.4g %s for a million instead of %.4g", r.Million, v.Goal.Unit, base.Million))
		fmt.Fprintf(w, "with %s the best plan takes %s instead of %s (%+.1f%% %s/s%s): %s\n", v.Set, r.Step.Short(),
			base.Step.Short(), float64(100*(base.Step/r.Step-1)), passed(&d.Job), against, r.Parallel)
	}
	if d.Emitted != nil {
		planFiles(w, d.Emitted)
	}
	return nil
}

// planOf prints the plans for one cluster.
func planOf(w io.Writer, d *query.PlanDoc) error {
	planHead(w, d)
	if err := plansTable(d).Write(w); err != nil {
		return err
	}
	planTie(w, d)
	planTight(w, d)
	planWhy(w, d)
	planTuned(w, d)
	if d.Holds != "" {
		fmt.Fprintln(w, d.Holds)
	}
	switch {
	case d.Hosts != nil: // busbar step has the cluster's own order
		planHosts(w, d.Hosts)
	case d.Nearby:
		fmt.Fprintln(w, "ranks follow the network: hosts of one leaf switch are neighbours, unlike in the cluster's order")
	default:
		fmt.Fprintf(w, "details of plan 1: %s\n", d.Plans[0].Command)
	}
	return nil
}

// planHead says what was asked, and how much of it was looked at.
func planHead(w io.Writer, d *query.PlanDoc) {
	base := &d.Job
	fmt.Fprintf(w, "%s on %s%s, %s%s (%s): %s parameters, %s per step, %s, %s\n", d.Model, d.Cluster,
		when(d.Set != "", " with "+d.Set), when(d.Spaces > 1, "up to "), words.Plural(d.GPUs, "GPU"), d.GPU,
		words.Thousands(base.Params), batchOf(base), base.Precision, runBy(base))
	if d.BatchRule != "" {
		fmt.Fprintf(w, "global batch %d by default: %s; --global-batch names another\n", d.Batch, d.BatchRule)
	}
	if d.Chosen != "" {
		fmt.Fprintf(w, "planned for %s (%s); --framework names another\n", base.Framework, d.Chosen)
	}
	if d.Mixed != "" {
		fmt.Fprintln(w, d.Mixed)
	}
	rest := fmt.Sprintf("stopped early: the others could be up to %.0f%% %s", 100*d.Gap, d.Goal.Better())
	if d.Complete {
		rest = fmt.Sprintf("%s ruled out one by one, %s in groups; no other setting is %s", words.Thousands(d.Bounded),
			words.Thousands(d.Cut), d.Goal.Better())
	}
	fmt.Fprintf(w, "%s settings: %s priced in full, %s\n", words.Thousands(d.Considered), words.Thousands(d.Priced), rest)
	if d.Failed > 0 {
		fmt.Fprintf(w, "%s of them, or groups of them, could not be priced and are left out: %v\n", words.Thousands(d.Failed),
			d.Error)
	}
}

// runBy is the framework of a job with its kernels: frameworks differ in them, and a comparison of two is one of those
// too.
func runBy(j *workload.Summary) string {
	return cmp.Or(when(j.Framework != "", j.Framework+" with "+j.Kernels+" kernels"), j.Kernels)
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
func planTight(w io.Writer, d *query.PlanDoc) {
	if slices.ContainsFunc(d.Plans, func(p query.PlanRow) bool { return p.Tight }) {
		fmt.Fprintf(w, "tight: measured memory was up to %.0f%% above predictions, which these plans do not have left; "+
			"--reserve 0.1 plans with room\n", 100*(step.MemoryMargin-1))
	}
}

// planTie says which plans cannot be told from the first, and what else speaks for some of them.
func planTie(w io.Writer, d *query.PlanDoc) {
	t := d.Tie
	if t == nil {
		return
	}
	to := "to"
	if len(t.Plans) == 2 {
		to = "and"
	}
	fmt.Fprintf(w, "plans 1 %s %d cannot be told apart: they are within %.0f%% of each other\n", to,
		t.Plans[len(t.Plans)-1], 100*(t.Margin-1))
	fmt.Fprintf(w, "order: %s\n", t.Order)
	for _, f := range t.For {
		fmt.Fprintf(w, "for plan %d: %s%s\n", f.Rank, f.Reason,
			when(f.Rank > 1, fmt.Sprintf(" (--pick %d writes its files)", f.Rank)))
	}
}

// planWhy says what limits the first plans, and what would help.
func planWhy(w io.Writer, d *query.PlanDoc) {
	fmt.Fprintf(w, "1: %s\n", d.Plans[0].Why)
	if i := slices.IndexFunc(d.Plans, func(p query.PlanRow) bool { return p.Row.HostMemory != "" }); i >= 0 {
		r := &d.Plans[i].Row
		need := unit.Volume(r.Memory["host"]) * unit.Volume(min(d.PerNode, r.Ranks))
		fmt.Fprintf(w, "%d: host memory per node %.0f GB of %.0f GB (%s)\n", i+1, need.GB(), unit.Volume(d.Memory).GB(),
			d.MemFrom)
	}
	if len(d.Plans) > 1 {
		fmt.Fprintf(w, "2: %s\n", d.Plans[1].Why)
	}
	help := d.Plans[0].Row.Advice
	for _, c := range help {
		fmt.Fprintf(w, "would help plan 1: %s with %s: %s\n", moreTokens(c.Gain, 1, passed(&d.Job)), c.Setting, c.Text)
	}
	for _, o := range d.Others {
		fmt.Fprintf(w, "with --framework %s: %s, %.1f%% %s%s, by %s\n%s", o.Framework, o.Step.Short(), 100*o.Gain,
			d.Goal.Better(), when(o.Tied, ", too little to tell"), o.Settings,
			when(o.Difference != "", "  "+o.Difference+"\n"))
	}
	if len(help) == 0 && d.Plans[0].NCCL != nil {
		fmt.Fprintf(w, "no other change tried speeds plan 1 up by %.1f%%: NCCL settings, faster links of every kind, twice "+
			"the memory\n", 100*query.LeastHelp)
	}
	if d.Goal.Note != "" {
		fmt.Fprintln(w, d.Goal.Note)
	}
}

// mostChoices is how many choices of a tuner are printed.
const mostChoices = 3

// planTuned says what a tuner would choose otherwise than NCCL, and what that brings.
func planTuned(w io.Writer, d *query.PlanDoc) {
	first := &d.Plans[0]
	if first.NCCL == nil || first.Row.Comm == 0 {
		return
	}
	list := first.NCCL.Choices
	if len(list) == 0 {
		fmt.Fprintln(w, "NCCL's choices of algorithm and protocol are within 5% of the best for plan 1")
		return
	}
	var choices []string
	for i, c := range list {
		if k := i - 1; k >= 0 && list[k].Group == c.Group && list[k].Kind == c.Kind && list[k].Algo == c.Algo &&
			list[k].Proto == c.Proto {
			continue // sizes beside each other
		}
		if len(choices) == mostChoices {
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
	fmt.Fprintf(w, "%s: %s\n", what, strings.Join(choices, "; "))
}

// planHosts says in which order ranks are put on the hosts.
func planHosts(w io.Writer, d *plan.RankOrder) {
	switch {
	case d.Kept:
		fmt.Fprintf(w, "rank order: as given (--keep-order): %s\n", d.Order)
	case d.Given == d.Order && d.Tried < 2:
		fmt.Fprintf(w, "rank order: as given, %s\n", d.Order)
	case d.Given == d.Order:
		fmt.Fprintf(w, "rank order: as given, %s; also tried: %s, not faster\n", d.Order, words.Plural(d.Tried-1, "other"))
	default:
		fmt.Fprintf(w, "rank order: %s; step time %s, in the given order (%s) %s, %.2f times as long; %s tried\n", d.Order,
			d.Step.Short(), d.Given, d.Was.Short(), float64(d.Was/d.Step), words.Plural(d.Tried, "order"))
	}
}

// planFiles lists what was written.
func planFiles(w io.Writer, d *query.PlanFiles) {
	fmt.Fprintf(w, "\nplan %d is in %s: %s\n", d.Plan, d.Dir, strings.Join(d.Files, ", "))
	for _, s := range d.Settings {
		fmt.Fprintf(w, "  %s=%s: %s\n", s.Name, s.Value, s.Reason)
	}
	if len(d.Settings) == 0 {
		fmt.Fprintln(w, "  no NCCL setting for all ranks: none makes the step 1% faster")
	}
	for _, l := range d.Left {
		fmt.Fprintf(w, "  no %s: %s\n", l.Name, l.Reason)
	}
	if d.Placeholders {
		fmt.Fprintln(w, "  host names are placeholders; --hosts gives real ones")
	}
}
