package main

import (
	"fmt"

	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
	"busbar.dev/workload"
)

type modelsCmd struct {
	common
	Model string `arg:"" optional:"" help:"One model: its tensors."`
}

// Help ends with examples.
func (modelsCmd) Help() string {
	return "Lists the models that are known by name, with their dimensions and exact numbers of parameters; -v adds the sources. With a name, its tensors in the order in which a framework registers them.\n\n" +
		"Examples:\n  busbar models\n  busbar models gpt2-large\n  busbar models llama3-8b --json"
}

// Run lists models, or the tensors of one.
func (c modelsCmd) Run(e *env) error {
	if c.Model != "" {
		return c.one(e)
	}
	all := workload.Models()
	if c.JSON {
		list := []modelDoc{}
		for i := range all {
			list = append(list, newModelDoc(&all[i], false))
		}
		return writeIndented(e.stdout, map[string]any{"models": list})
	}
	right := texttab.Right
	t := texttab.Table{Columns: []texttab.Column{
		{Head: "name"},
		{Head: "title"},
		{Head: "parameters", Align: right},
		{Head: "layers", Align: right},
		{Head: "hidden", Align: right},
		{Head: "heads", Align: right},
		{Head: "FFN", Align: right},
		{Head: "experts", Align: right},
		{Head: "vocab", Align: right},
		{Head: "tokens", Align: right},
		{Head: "forward", Align: right},
	}}
	for i := range all {
		m := &all[i]
		d := m.Dims
		heads := fmt.Sprint(d.Heads)
		if d.KVHeads != d.Heads {
			heads += fmt.Sprintf("/%d", d.KVHeads)
		}
		experts := ""
		if d.Experts > 0 {
			experts = fmt.Sprintf("%d/%d", d.TopK, d.Experts)
		}
		if d.Heads == 0 {
			heads = ""
		}
		t.Row(m.Name, m.Title, words.Thousands(m.Params()), some(d.Layers), some(d.Hidden), heads, some(d.FFN), experts, some(d.Vocab), fmt.Sprint(m.Seq), fmt.Sprintf("%.4g TFLOP", m.Forward(m.Seq)/1e12))
		cite(&t, c.Verbose, m.Source)
		cite(&t, c.Verbose, fmt.Sprintf("%s parameters: %s", words.Thousands(m.Published), m.PublishedSource))
		if m.Note != "" && c.Verbose {
			t.Row("  note: " + m.Note)
		}
		if m.Unpriced != "" && c.Verbose {
			t.Row("  no steps: " + m.Unpriced)
		}
	}
	if err := t.Write(e.stdout); err != nil {
		return err
	}
	fmt.Fprintln(e.stdout, "\nheads: of queries, and of keys and values where those are fewer. experts: that a token passes, of all. forward: operations of a forward pass over one sequence. Sources: -v or --json.")
	return nil
}

// one lists the tensors of a model.
func (c modelsCmd) one(e *env) error {
	m, err := query.LoadModel(e.query(c.common), c.Model)
	if err != nil {
		return err
	}
	if c.JSON {
		return writeIndented(e.stdout, newModelDoc(m, true))
	}
	t := texttab.Table{Columns: []texttab.Column{{Head: "tensor"}, {Head: "shape"}, {Head: "parameters", Align: texttab.Right}}}
	for _, x := range m.Tensors() {
		t.Row(x.Name, fmt.Sprint(x.Shape), words.Thousands(x.Count()))
	}
	t.Row("all", "", words.Thousands(m.Params()))
	return t.Write(e.stdout)
}

// modelDoc is a model in JSON.
type modelDoc struct {
	Name      string `json:"name"`
	Title     string `json:"title"`
	Params    int64  `json:"params"`
	Active    int64  `json:"active_params"`
	Published int64  `json:"published_params"`
	workload.Dims
	Seq             int64             `json:"seq"`
	Forward         float64           `json:"forward_flop"`
	Source          string            `json:"source"`
	PublishedSource string            `json:"published_source"`
	Note            string            `json:"note,omitempty"`
	Unpriced        string            `json:"steps_not_priced,omitempty"`
	Tensors         []workload.Tensor `json:"tensors,omitempty"`
}

func newModelDoc(m *workload.Model, tensors bool) modelDoc {
	d := modelDoc{Name: m.Name, Title: m.Title, Params: m.Params(), Active: m.Active(), Published: m.Published, Dims: m.Dims, Seq: m.Seq, Forward: m.Forward(m.Seq), Source: m.Source, PublishedSource: m.PublishedSource, Note: m.Note, Unpriced: m.Unpriced}
	if tensors {
		d.Tensors = m.Tensors()
	}
	return d
}

// some is a number, or nothing where there is none.
func some(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
