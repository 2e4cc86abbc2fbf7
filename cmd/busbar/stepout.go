package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/internal/texttab"
	"busbar.dev/report"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// stepDoc is the document of --json.
type stepDoc struct {
	Cluster string      `json:"cluster"`
	Rows    []pricedDoc `json:"rows"`
}

type pricedDoc struct {
	Layout       string                `json:"layout"`
	GPUs         int                   `json:"gpus"`
	Model        string                `json:"model"`
	Parallel     string                `json:"parallel"`
	Schedule     string                `json:"schedule,omitempty"` // of a pipeline
	GlobalBatch  int64                 `json:"global_batch"`
	MicroBatch   int64                 `json:"micro_batch"`
	Seq          int64                 `json:"seq"`
	Step         unit.Span             `json:"step_s"`
	Compute      unit.Span             `json:"compute_s"`
	Comm         unit.Span             `json:"comm_s"`
	Exposed      unit.Span             `json:"exposed_comm_s"`
	Bubble       unit.Span             `json:"bubble_s"`
	Optimizer    unit.Span             `json:"optimizer_s"`
	Host         unit.Span             `json:"host_s"`
	MFU          float64               `json:"mfu"`
	HFU          float64               `json:"hfu"`
	TFLOPSPerGPU float64               `json:"tflops_per_gpu"`
	TokensPerS   float64               `json:"tokens_per_s"`
	Memory       map[string]unit.Bytes `json:"memory_bytes"`
	Has          unit.Bytes            `json:"gpu_memory_bytes"`
	Fits         bool                  `json:"fits"`
	Groups       []groupDoc            `json:"groups"`
	Traffic      []trafficDoc          `json:"traffic"`
	Bottleneck   bottleneckDoc         `json:"bottleneck"`
	Advice       []adviceDoc           `json:"advice"`
	*wholeDoc
}

type bottleneckDoc struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

type groupDoc struct {
	Group  string `json:"group"`
	Size   int    `json:"size"`
	Count  int    `json:"count"`
	Ranks  []int  `json:"ranks"` // of the first, 64 at most
	Nodes  int    `json:"nodes"` // that it is on
	Beside int    `json:"groups_on_a_node"`
}

// adviceDoc is one change that would help.
type adviceDoc struct {
	Text    string  `json:"text"`
	Setting string  `json:"setting"`
	Gain    float64 `json:"gain"` // of tokens a second
	Buy     bool    `json:"purchase,omitempty"`
}

type trafficDoc struct {
	Group   string      `json:"group"`
	What    string      `json:"what"`
	Bytes   unit.Volume `json:"bytes_per_call"`
	Calls   float64     `json:"calls"`
	Time    unit.Span   `json:"comm_s"`
	Exposed unit.Span   `json:"exposed_s"`
	Limit   string      `json:"limit"`
}

func stepDocument(name string, rows []pricedStep) stepDoc {
	d := stepDoc{Cluster: name, Rows: []pricedDoc{}}
	for _, r := range rows {
		limit := r.Limit(r.job, r.gpu.Memory)
		m := r.Memory
		x := pricedDoc{
			Layout: r.layout, GPUs: r.Ranks, Model: r.job.Model.Name, Parallel: r.job.Split.String(), GlobalBatch: r.job.GlobalBatch, MicroBatch: r.job.MicroBatch, Seq: r.job.Seq,
			Step: r.Step, Compute: r.Compute, Comm: r.Comm, Exposed: r.Exposed, Bubble: r.Bubble, Optimizer: r.Optimizer, Host: r.Host, MFU: r.MFU, HFU: r.HFU,
			TFLOPSPerGPU: r.Flops / r.Step.Seconds() / float64(r.Ranks) / 1e12, TokensPerS: r.TokensPerSecond(),
			Memory: map[string]unit.Bytes{"total": m.Total().Bytes(), "params": m.Params.Bytes(), "grads": m.Grads.Bytes(), "optimizer": m.Optimizer.Bytes(), "activations": m.Activations.Bytes(), "other": m.Other.Bytes(), "host": m.Host.Bytes()},
			Has:    r.gpu.Memory, Fits: m.Total() <= unit.Volume(r.gpu.Memory), Bottleneck: bottleneckDoc{limit.Kind, limit.Text}, Groups: []groupDoc{}, Traffic: []trafficDoc{}, wholeDoc: r.whole,
		}
		if shape := r.job.Pipeline(); shape.Ranks > 1 {
			x.Schedule = string(shape.Schedule)
		}
		for _, g := range r.fabric.Groups() {
			x.Groups = append(x.Groups, groupDoc{g.Group.String(), g.Size, g.Count, g.Ranks, g.Hosts, g.Beside})
		}
		for _, t := range r.Traffic {
			x.Traffic = append(x.Traffic, trafficDoc{t.Group.String(), t.What, t.Bytes, t.Calls, t.Time, t.Exposed, t.Limit})
		}
		x.Advice = []adviceDoc{}
		for _, a := range r.changes {
			x.Advice = append(x.Advice, adviceDoc{a.Text, a.Setting, a.Gain, a.Buy})
		}
		d.Rows = append(d.Rows, x)
	}
	return d
}

// printSteps writes the table, the traffic and what limits.
func printSteps(w io.Writer, name string, rows []pricedStep, groups bool) error {
	right := texttab.Right
	t := texttab.Table{Columns: []texttab.Column{
		{Head: "layout"},
		{Head: "step", Align: right},
		{Head: "compute", Align: right},
		{Head: "exposed", Align: right},
		{Head: "bubble", Align: right},
		{Head: "update", Align: right},
		{Head: "tokens/s", Align: right},
		{Head: "TFLOPS/GPU", Align: right},
		{Head: "MFU", Align: right},
		{Head: "memory", Align: right},
		{Head: "parallel"},
	}}
	for _, r := range rows {
		t.Row(r.layout, seconds(r.Step), seconds(r.Compute), seconds(r.Exposed), seconds(r.Bubble), seconds(r.Optimizer+r.Host), fmt.Sprintf("%.0f", r.TokensPerSecond()),
			fmt.Sprintf("%.1f", r.Flops/r.Step.Seconds()/float64(r.Ranks)/1e12), fmt.Sprintf("%.1f%%", 100*r.MFU), fmt.Sprintf("%.1f GB", r.Memory.Total().GB()), r.job.Split.String())
	}
	first := rows[0]
	fmt.Fprintf(w, "%s on %s (%s): %s parameters, sequences of %d tokens, %d a step, %d at once, %s, recompute %s, %s%s\n", first.job.Model.Name, name, first.gpu.Title,
		thousands(first.job.Model.Params()), first.job.Seq, first.job.GlobalBatch, first.job.MicroBatch, first.job.Precision, first.job.Recompute, first.job.Framework, extras(first.job))
	if err := t.Write(w); err != nil {
		return err
	}
	for _, r := range rows {
		fmt.Fprintf(w, "\n%s: %s\n", r.layout, r.Limit(r.job, r.gpu.Memory).Text)
		if groups {
			for _, g := range r.fabric.Groups() {
				fmt.Fprintf(w, "  %-9s %v\n", g.Group, g)
			}
		}
		if r.Memory.Host > 0 {
			fmt.Fprintf(w, "  %s\n", r.fabric.HostWords(r.Memory.Host))
		}
		for _, x := range r.Traffic {
			fmt.Fprintf(w, "  %-9s %s: %.0f calls of %v take %s, %s of it exposed\n", x.Group, x.What, x.Calls, x.Bytes, seconds(x.Time), seconds(x.Exposed))
		}
		for i, a := range r.changes {
			if i == 3 {
				break
			}
			fmt.Fprintf(w, "  would help: %.0f%% more tokens a second by %s: %s\n", 100*a.Gain, a.Setting, a.Text)
		}
		r.whole.print(w)
	}
	if len(rows) > 1 {
		fmt.Fprintf(w, "\n%s\n", fastest(rows))
	}
	return nil
}

// extras are the settings that differ from what is usual.
func extras(j *workload.Job) string {
	text := ""
	if shape := j.Pipeline(); shape.Ranks > 1 {
		text += fmt.Sprintf(", %s schedule", shape.Schedule)
	}
	if j.Split.Order != "" {
		text += fmt.Sprintf(", ranks %s", j.Split.Order)
	}
	if j.Context != "" {
		text += fmt.Sprintf(", context %s", j.Context)
	}
	if j.Offloads() {
		text += fmt.Sprintf(", %s offloaded", j.Offload)
	}
	if j.Compresses() {
		text += fmt.Sprintf(", gradients as %s", j.Compress)
	}
	return text
}

// drawStep writes the timeline of a step, as a picture or a trace.
func drawStep(e *env, file, name string, rows []pricedStep) error {
	file, trace, err := stepPicture(file)
	if err != nil {
		return err
	}
	if len(rows) != 1 {
		return fmt.Errorf("-o %s: a timeline is of one layout; give it with -l", file)
	}
	list, err := rows[0].bars()
	if err != nil {
		return err
	}
	title := fmt.Sprintf("one step of %s on %s %s, %s", rows[0].job.Model.Name, name, rows[0].layout, rows[0].job.Split) + extras(rows[0].job)
	var bars []report.Bar
	var spans []report.Span
	for _, b := range list {
		track := "compute"
		switch {
		case b.Host:
			track = "host"
		case b.Traffic:
			track = "traffic"
		}
		s := report.Span{Group: fmt.Sprintf("stage %d", b.Stage), Track: track, Name: b.Name, From: b.From.Time(), To: b.To.Time(), Bytes: b.Bytes.Bytes()}
		spans = append(spans, s)
		bars = append(bars, report.Bar{Span: s, Kind: b.Kind})
	}
	return e.writeFile(file, func(w io.Writer) error {
		if trace {
			return report.Spans(w, title, spans)
		}
		return report.Timeline(w, title, bars)
	})
}

// stepPicture reads a word of -o: a file by its end, or FORMAT=FILE.
func stepPicture(word string) (file string, trace bool, err error) {
	form, name, ok := strings.Cut(word, "=")
	lower := strings.ToLower(word)
	switch {
	case ok && (form == "svg" || form == "trace") && name != "":
		return name, form == "trace", nil
	case strings.HasSuffix(lower, ".trace.json"):
		return word, true, nil
	case strings.HasSuffix(lower, ".svg"):
		return word, false, nil
	}
	return "", false, fmt.Errorf("-o %s: expected a name that ends in .svg or .trace.json, or FORMAT=FILE (svg, trace)", word)
}

// seconds prints a time of parts of a step.
func seconds(s unit.Span) string {
	if s == 0 {
		return "0"
	}
	return s.Time().String()
}

// fastest says which layout is fastest, by tokens a second, and how far behind the others are.
// One whose memory is too small cannot win.
func fastest(rows []pricedStep) string {
	rate := func(r pricedStep) float64 { return r.TokensPerSecond() }
	var order []pricedStep
	var small []string
	for _, r := range rows {
		if r.Memory.Total() > unit.Volume(r.gpu.Memory) {
			small = append(small, r.layout)
			continue
		}
		order = append(order, r)
	}
	without := ""
	if len(small) > 0 {
		without = "; left out, since it does not fit: " + strings.Join(small, ", ")
	}
	switch len(order) {
	case 0:
		return "none of them fits the GPUs' memory"
	case 1:
		return fmt.Sprintf("only %s fits the GPUs' memory", order[0].layout)
	}
	slices.SortStableFunc(order, func(a, b pricedStep) int { return cmp.Compare(rate(b), rate(a)) })
	best := order[0]
	var others []string
	for _, r := range order[1:] {
		others = append(others, fmt.Sprintf("%s takes %.1f times as long", r.layout, rate(best)/rate(r)))
	}
	return fmt.Sprintf("%s is fastest; for as many tokens %s%s", best.layout, strings.Join(others, ", "), without)
}
