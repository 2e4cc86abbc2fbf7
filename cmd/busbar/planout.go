package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/internal/texttab"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// planDoc is the document of --json; what --set asks for is under variants.
type planDoc struct {
	Cluster    string       `json:"cluster"`
	Set        string       `json:"set,omitempty"`
	Model      string       `json:"model"`
	GPUs       int          `json:"gpus"`
	Considered int64        `json:"considered"`
	Bounded    int64        `json:"bounded"`
	Cut        int64        `json:"cut"`
	Priced     int64        `json:"priced"`
	Failed     int64        `json:"failed"`
	Seconds    float64      `json:"search_s"`
	Complete   bool         `json:"complete"`
	Objective  string       `json:"objective"`
	Bound      float64      `json:"bound"`
	Gap        float64      `json:"gap"`
	Holds      string       `json:"sensitivity,omitempty"`
	Hosts      *orderDoc    `json:"hosts,omitempty"`
	Plans      []planRowDoc `json:"plans"`
	Variants   []planDoc    `json:"variants,omitempty"`
	Emitted    *emittedDoc  `json:"emitted,omitempty"`
}

type planRowDoc struct {
	Rank      int            `json:"rank"`
	Parallel  workload.Split `json:"parallel"`
	Micro     int64          `json:"micro_batch"`
	Recompute string         `json:"recompute"`
	Schedule  string         `json:"schedule,omitempty"`
	Context   string         `json:"context,omitempty"`
	Bucket    unit.Bytes     `json:"bucket_bytes,omitempty"`
	Offload   string         `json:"offload,omitempty"`
	Compress  string         `json:"compress,omitempty"`
	GPUs      int            `json:"gpus"`
	Value     float64        `json:"value"`
	Step      unit.Span      `json:"step_s"`
	MFU       float64        `json:"mfu"`
	Why       string         `json:"why"`
	NCCL      *tunedDoc      `json:"nccl,omitempty"`
	Command   string         `json:"command"`
	Row       pricedDoc      `json:"row"`
}

func planDocument(list []*planned) planDoc {
	var docs []planDoc
	for _, p := range list {
		a := p.answer
		d := planDoc{
			Cluster: p.query.Cluster.Name, Set: p.name, Model: p.query.Spaces[0].Base.Model.Name, GPUs: p.query.Spaces[0].Ranks,
			Considered: a.Considered, Bounded: a.Bounded, Cut: a.Cut, Priced: a.Priced, Failed: a.Failed, Seconds: p.took.Seconds(), Complete: a.Whole, Objective: p.goal.name, Bound: a.Bound, Gap: p.gap(), Holds: p.holds, Plans: []planRowDoc{},
		}
		if p.order != nil {
			d.Hosts = &p.order.doc
		}
		rows := stepDocument(p.query.Cluster.Name, p.rows).Rows
		for i := range p.rows {
			j := p.rows[i].job
			d.Plans = append(d.Plans, planRowDoc{
				i + 1, j.Split, j.MicroBatch, string(j.Recompute), rows[i].Schedule, string(j.Context), j.Bucket, string(j.Offload), string(j.Compress), j.Split.Ranks(), a.Plans[i].Value,
				p.rows[i].Step, p.rows[i].MFU, p.why(i), nil, p.command(i), rows[i],
			})
		}
		d.Plans[0].NCCL = p.tunedDoc()
		docs = append(docs, d)
	}
	if len(docs) == 0 {
		return planDoc{Plans: []planRowDoc{}}
	}
	docs[0].Variants = docs[1:]
	return docs[0]
}

// why says what limits the best plan, and what the others lose against it.
func (p *planned) why(i int) string {
	if i > 0 {
		return p.query.Against(p.answer.Plans[0], p.answer.Plans[i], p.goal.worse())
	}
	r := &p.rows[0]
	return r.Limit(r.job, r.gpu.Memory).Text
}

// command is busbar step for a plan.
func (p *planned) command(i int) string {
	j := p.rows[i].job
	text := "busbar step -c " + p.asked.Cluster
	if p.rows[i].layout != "all" {
		text += " -l " + p.rows[i].layout
	}
	text += fmt.Sprintf(" -m %s --parallel %s --global-batch %d --micro-batch %d --seq %d --precision %s --recompute %s --framework %s",
		p.asked.Model, j.Split, j.GlobalBatch, j.MicroBatch, j.Seq, j.Precision, j.Recompute, j.Framework)
	if j.Split.PP > 1 {
		text += " --schedule " + string(j.Schedule)
		if j.Split.Order != workload.TensorDataPipeline {
			text += " --order " + string(j.Split.Order)
		}
	}
	if j.Bucket != workload.DefaultBucket {
		text += " --bucket " + strings.ReplaceAll(j.Bucket.String(), " ", "")
	}
	for _, x := range []struct{ flag, value string }{
		{"--context", string(j.Context)},
		{"--offload", string(j.Offload)},
		{"--compress", string(j.Compress)},
		{"--nccl", p.asked.NCCL},
		{"--gpu", p.asked.GPU},
		{"--nic", p.asked.NIC},
	} {
		if x.value != "" && x.value != "none" {
			text += " " + x.flag + " " + x.value
		}
	}
	return text
}

// beside is what a plan has beyond the columns.
func (p *planned) beside(j *workload.Job) string {
	var list []string
	if j.Bucket != workload.DefaultBucket {
		list = append(list, "buckets of "+j.Bucket.String())
	}
	if j.Context != "" {
		list = append(list, string(j.Context))
	}
	if j.Offloads() {
		list = append(list, "offload "+string(j.Offload))
	}
	if j.Compresses() {
		list = append(list, "gradients as "+string(j.Compress))
	}
	return cmp.Or(strings.Join(list, ", "), "-")
}

// printPlans writes the tables, side by side where there are several clusters.
func printPlans(w io.Writer, list []*planned) error {
	for i, p := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := p.print(w); err != nil {
			return err
		}
	}
	if len(list) < 2 {
		return nil
	}
	base := list[0].rows[0]
	fmt.Fprintln(w)
	for _, p := range list[1:] {
		r := p.rows[0]
		fmt.Fprintf(w, "with %s the best plan takes %s instead of %s (%+.1f%% tokens a second%s): %s\n", p.name, seconds(r.Step), seconds(base.Step), float64(100*(base.Step/r.Step-1)), p.against(list[0]), r.job.Split)
	}
	return nil
}

// against is what a million tokens need, beside another cluster's, where that is the objective.
func (p *planned) against(o *planned) string {
	if p.goal.head == "" {
		return ""
	}
	return fmt.Sprintf(", %.4g %s for a million instead of %.4g", p.goal.each(&p.answer.Plans[0]), p.goal.unit, o.goal.each(&o.answer.Plans[0]))
}

func (p *planned) print(w io.Writer) error {
	p.printHead(w)
	if err := p.table().Write(w); err != nil {
		return err
	}
	p.printWhy(w)
	p.printTuned(w)
	if p.holds != "" {
		fmt.Fprintln(w, p.holds)
	}
	switch {
	case p.order != nil: // busbar step has the cluster's own order
		p.order.print(w)
	case p.nearby:
		fmt.Fprintln(w, "ranks follow the network: hosts of one leaf switch are neighbours, which the cluster's own order has not")
	default:
		fmt.Fprintf(w, "look at the first: %s\n", p.command(0))
	}
	return nil
}

// printHead says what was asked, and how much of it was looked at.
func (p *planned) printHead(w io.Writer) {
	a, base := p.answer, &p.query.Spaces[0].Base
	name := p.query.Cluster.Name
	if p.name != "" {
		name += " with " + p.name
	}
	upTo := ""
	if len(p.query.Spaces) > 1 {
		upTo = "up to "
	}
	fmt.Fprintf(w, "%s on %s, %s%s (%s): %s parameters, %s of %d tokens a step, %s, %s\n", base.Model.Name, name, upTo, counted(p.query.Spaces[0].Ranks, "GPU"), p.query.GPU.Model.Title, thousands(base.Model.Params()), counted(int(base.GlobalBatch), "sequence"), base.Seq, base.Precision, base.Framework)
	if p.mixed != "" {
		fmt.Fprintln(w, p.mixed)
	}
	fmt.Fprintf(w, "%s settings considered: %s cut in groups, %s bounded one by one, %s priced", thousands(a.Considered), thousands(a.Cut), thousands(a.Bounded), thousands(a.Priced))
	if a.Whole {
		fmt.Fprintf(w, "; none of the others is %s\n", p.goal.better())
	} else {
		fmt.Fprintf(w, "; stopped early: the others could be up to %.0f%% %s\n", 100*p.gap(), p.goal.better())
	}
	if a.Failed > 0 {
		fmt.Fprintf(w, "%s of them, or groups of them, could not be priced and are left out: %v\n", thousands(a.Failed), a.Err)
	}
}

// table is the plans, best first. What is the same in all rows is in none.
func (p *planned) table() *texttab.Table {
	right := texttab.Right
	t := &texttab.Table{Columns: []texttab.Column{
		{Head: "", Align: right},
		{Head: p.goal.head, Align: right},
		{Head: "GPUs", Align: right},
		{Head: "step", Align: right},
		{Head: "tokens/s", Align: right},
		{Head: "MFU", Align: right},
		{Head: "memory", Align: right},
		{Head: "parallel"},
		{Head: "micro-batch", Align: right},
		{Head: "recompute"},
		{Head: "schedule"},
		{Head: "order"},
		{Head: "beside"},
	}}
	hidden := map[int]bool{1: p.goal.head == "", 2: len(p.query.Spaces) == 1, 12: !slices.ContainsFunc(p.rows, func(r pricedStep) bool { return p.beside(r.job) != "-" })}
	for i := len(t.Columns) - 1; i >= 0; i-- {
		if hidden[i] {
			t.Columns = slices.Delete(t.Columns, i, i+1)
		}
	}
	for i, r := range p.rows {
		schedule, order := "-", "-"
		if r.job.Split.PP > 1 {
			schedule, order = string(r.job.Schedule), string(r.job.Split.Order)
		}
		cells := []string{
			fmt.Sprint(i + 1), fmt.Sprintf("%.4g", p.goal.each(&p.answer.Plans[i])), fmt.Sprint(r.job.Split.Ranks()), seconds(r.Step), fmt.Sprintf("%.0f", r.TokensPerSecond()), fmt.Sprintf("%.1f%%", 100*r.MFU), fmt.Sprintf("%.1f GB", r.Memory.Total().GB()), r.job.Split.String(), fmt.Sprint(r.job.MicroBatch), string(r.job.Recompute), schedule, order, p.beside(r.job),
		}
		var row []string
		for k, text := range cells {
			if !hidden[k] {
				row = append(row, text)
			}
		}
		t.Row(row...)
	}
	return t
}

// printWhy says what limits the first plans, and what would help.
func (p *planned) printWhy(w io.Writer) {
	fmt.Fprintf(w, "1: %s\n", p.why(0))
	if i := slices.IndexFunc(p.rows, func(r pricedStep) bool { return r.job.Offloads() }); i >= 0 {
		fmt.Fprintf(w, "%d: of a node's own memory %.0f GB, of %.0f GB (%s)\n", i+1, (p.rows[i].Memory.Host * unit.Volume(min(p.query.Spaces[0].Node, p.rows[i].Ranks))).GB(), unit.Volume(p.query.HostMemory).GB(), p.host)
	}
	if len(p.rows) > 1 {
		fmt.Fprintf(w, "2: %s\n", p.why(1))
	}
	for _, c := range p.rows[0].changes {
		fmt.Fprintf(w, "would help the first: %.1f%% more tokens a second by %s: %s\n", 100*c.Gain, c.Setting, c.Text)
	}
	if len(p.rows[0].changes) == 0 && p.tuned != nil {
		fmt.Fprintf(w, "nothing else that was tried gains the first %.1f%%: NCCL's settings, faster links of every kind, twice the memory\n", 100*leastHelp)
	}
	if p.goal.note != "" {
		fmt.Fprintln(w, p.goal.note)
	}
}
