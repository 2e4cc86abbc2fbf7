package query

import (
	"context"

	"busbar.dev/hardware"
	"busbar.dev/workload"
)

// Presets asks for the clusters that are known by name.
type Presets struct{}

// PresetsDoc is the answer to Presets.
type PresetsDoc struct {
	Presets []hardware.PresetInfo `json:"presets"`
}

// Run lists the presets.
func (q Presets) Run(context.Context, Env) (*PresetsDoc, error) {
	return &PresetsDoc{Presets: hardware.Presets()}, nil
}

// Hardware asks for the catalogue of links, accelerators, network cards and switches.
type Hardware struct {
	Table string `arg:"" optional:"" enum:"all,links,gpu,nic,switch" default:"all" help:"all, links, gpu, nic or switch (default all)."`
}

// HardwareDoc is the answer to Hardware: the tables that were asked for.
type HardwareDoc struct {
	GPUs     []hardware.GPUModel     `json:"gpus,omitempty"`
	Links    []hardware.Interconnect `json:"links,omitempty"`
	NICs     []hardware.NICModel     `json:"nics,omitempty"`
	Switches []hardware.SwitchModel  `json:"switches,omitempty"`
}

// Run lists the catalogue.
func (q Hardware) Run(context.Context, Env) (*HardwareDoc, error) {
	if err := prepare(&q); err != nil {
		return nil, err
	}
	d := &HardwareDoc{}
	want := func(name string) bool { return q.Table == "all" || q.Table == name }
	if want("links") {
		d.Links = hardware.Interconnects()
	}
	if want("gpu") {
		d.GPUs = hardware.GPUs()
	}
	if want("nic") {
		d.NICs = hardware.NICs()
	}
	if want("switch") {
		d.Switches = hardware.Switches()
	}
	return d, nil
}

// Models asks for the models that are known by name, or for the tensors of one model.
type Models struct {
	Model string `arg:"" optional:"" names:"model" help:"A model whose tensors to list."`
}

// ModelsDoc is the answer to Models: a list, or one model, whose fields are the document's own.
type ModelsDoc struct {
	Models []ModelDoc `json:"models,omitempty"`
	*ModelDoc
}

// ModelDoc is a model.
type ModelDoc struct {
	Name      string `json:"name"`
	Title     string `json:"title"`
	Params    int64  `json:"params"`
	Active    int64  `json:"active_params"` // that a token passes
	Published int64  `json:"published_params"`
	workload.Dims
	Seq             int64             `json:"seq"`
	Forward         float64           `json:"forward_flop"` // of one sequence of Seq tokens
	Source          string            `json:"source"`
	PublishedSource string            `json:"published_source"`
	Note            string            `json:"note,omitempty"`
	Unpriced        string            `json:"steps_not_priced,omitempty"`
	Tensors         []workload.Tensor `json:"tensors,omitempty"` // of one model, in the order in which a framework registers them
}

// Run lists the models, or the tensors of one.
func (q Models) Run(_ context.Context, env Env) (doc *ModelsDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if q.Model != "" {
		m, err := LoadModel(env, q.Model)
		if err != nil {
			return nil, err
		}
		d := modelDoc(m)
		d.Tensors = m.Tensors()
		return &ModelsDoc{ModelDoc: &d}, nil
	}
	d := &ModelsDoc{}
	for _, m := range workload.Models() {
		d.Models = append(d.Models, modelDoc(&m))
	}
	return d, nil
}

func modelDoc(m *workload.Model) ModelDoc {
	return ModelDoc{
		Name: m.Name, Title: m.Title, Params: m.Params(), Active: m.Active(), Published: m.Published, Dims: m.Dims,
		Seq: m.Seq, Forward: m.Forward(m.Seq),
		Source: m.Source, PublishedSource: m.PublishedSource, Note: m.Note, Unpriced: m.Unpriced,
	}
}
