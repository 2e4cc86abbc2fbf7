package main

import (
	"fmt"
	"io"

	"busbar/internal/texttab"
	"busbar/plan"
	"busbar/workload"
)

// planDoc is the document of --json; what --set asks for is under variants.
type planDoc struct {
	Cluster    string       `json:"cluster"`
	Set        string       `json:"set,omitempty"`
	Model      string       `json:"model"`
	GPUs       int          `json:"gpus"`
	Considered int64        `json:"considered"`
	Fit        int64        `json:"fit"`
	Priced     int64        `json:"priced"`
	Seconds    float64      `json:"search_s"`
	Complete   bool         `json:"complete"`
	Bound      float64      `json:"bound_s"`
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
	Step      float64        `json:"step_s"`
	MFU       float64        `json:"mfu"`
	Why       string         `json:"why"`
	Command   string         `json:"command"`
	Row       pricedDoc      `json:"row"`
}

func planDocument(list []*planned) planDoc {
	var docs []planDoc
	for _, p := range list {
		a := p.answer
		d := planDoc{
			Cluster: p.query.Cluster.Name, Set: p.name, Model: p.query.Space.Base.Model.Name, GPUs: p.query.Space.Ranks,
			Considered: a.Considered, Fit: a.Fit, Priced: a.Priced, Seconds: p.took.Seconds(), Complete: a.Whole, Bound: a.Bound, Holds: p.holds, Plans: []planRowDoc{},
		}
		if p.order != nil {
			d.Hosts = &p.order.doc
		}
		rows := stepDocument(p.query.Cluster.Name, p.rows).Rows
		for i := range p.rows {
			j := p.rows[i].job
			d.Plans = append(d.Plans, planRowDoc{i + 1, j.Split, j.MicroBatch, string(j.Recompute), rows[i].Schedule, p.rows[i].Step, p.rows[i].MFU, p.why(i), p.command(i), rows[i]})
		}
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
		return plan.Against(p.answer.Plans[0], p.answer.Plans[i])
	}
	r := &p.rows[0]
	return r.Limit(r.job, float64(r.gpu.Memory)).Text
}

// command is busbar step for a plan.
func (p *planned) command(i int) string {
	j := p.rows[i].job
	text := fmt.Sprintf("busbar step -c %s -l %s -m %s --parallel %s --global-batch %d --micro-batch %d --seq %d --precision %s --recompute %s --framework %s",
		p.query.Cluster.Name, p.rows[i].layout, j.Model.Name, j.Split, j.GlobalBatch, j.MicroBatch, j.Seq, j.Precision, j.Recompute, j.Framework)
	if j.Split.PP > 1 {
		text += " --schedule " + string(j.Schedule)
		if j.Split.Order != workload.TensorDataPipeline {
			text += " --order " + string(j.Split.Order)
		}
	}
	return text
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
		fmt.Fprintf(w, "with %s the best plan takes %s instead of %s (%+.1f%% tokens a second): %s\n", p.name, seconds(r.Step), seconds(base.Step), 100*(base.Step/r.Step-1), r.job.Split)
	}
	return nil
}

func (p *planned) print(w io.Writer) error {
	a, base := p.answer, &p.query.Space.Base
	name := p.query.Cluster.Name
	if p.name != "" {
		name += " with " + p.name
	}
	fmt.Fprintf(w, "%s on %s, %s (%s): %s parameters, %d sequences of %d tokens a step, %s, %s\n", base.Model.Name, name, counted(p.query.Space.Ranks, "GPU"), p.query.GPU.Model.Title, thousands(base.Model.Params()), base.GlobalBatch, base.Seq, base.Precision, base.Framework)
	// How many had to be priced depends on which processor was first.
	fmt.Fprintf(w, "%s settings considered, %s fit", thousands(a.Considered), thousands(a.Fit))
	if a.Whole {
		fmt.Fprintln(w, "; none of the others is faster")
	} else {
		fmt.Fprintf(w, "; stopped early: the others could be up to %.0f%% faster\n", 100*(a.Plans[0].Result.Step/a.Bound-1))
	}
	right := texttab.Right
	t := texttab.Table{Columns: []texttab.Column{
		{Head: "", Align: right},
		{Head: "step", Align: right},
		{Head: "tokens/s", Align: right},
		{Head: "MFU", Align: right},
		{Head: "memory", Align: right},
		{Head: "parallel"},
		{Head: "micro-batch", Align: right},
		{Head: "recompute"},
		{Head: "schedule"},
		{Head: "order"},
	}}
	for i, r := range p.rows {
		schedule, order := "-", "-"
		if r.job.Split.PP > 1 {
			schedule, order = string(r.job.Schedule), string(r.job.Split.Order)
		}
		t.Row(fmt.Sprint(i+1), seconds(r.Step), fmt.Sprintf("%.0f", r.Tokens/r.Step), fmt.Sprintf("%.1f%%", 100*r.MFU), fmt.Sprintf("%.1f GB", r.Memory.Total()/1e9), r.job.Split.String(), fmt.Sprint(r.job.MicroBatch), string(r.job.Recompute), schedule, order)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "1: %s\n", p.why(0))
	if len(p.rows) > 1 {
		fmt.Fprintf(w, "2: %s\n", p.why(1))
	}
	for i, c := range p.rows[0].changes {
		if i == 3 {
			break
		}
		fmt.Fprintf(w, "would help the first: %.0f%% more tokens a second by %s: %s\n", 100*c.Gain, c.Setting, c.Text)
	}
	if p.holds != "" {
		fmt.Fprintln(w, p.holds)
	}
	if p.order != nil {
		p.order.print(w)
		return nil // busbar step has the cluster's own order
	}
	fmt.Fprintf(w, "look at the first: %s\n", p.command(0))
	return nil
}
