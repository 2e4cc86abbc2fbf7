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
	Models []workload.ModelSummary `json:"models,omitempty"`
	*workload.ModelSummary
}

// Run lists the models, or the tensors of one.
func (q Models) Run(_ context.Context, env Env) (doc *ModelsDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if q.Model != "" {
		m, err := LoadModel(env, q.Model)
		if err != nil {
			return nil, err
		}
		d := m.Summary()
		d.Tensors = m.Tensors()
		return &ModelsDoc{ModelSummary: &d}, nil
	}
	d := &ModelsDoc{}
	for _, m := range workload.Models() {
		d.Models = append(d.Models, m.Summary())
	}
	return d, nil
}
