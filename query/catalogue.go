package query

import (
	"context"

	"busbar.dev/hardware"
	"busbar.dev/schedule"
	"busbar.dev/workload"
)

// ListDoc is the answer to Presets, Hardware, Models and Algorithms: what was asked for. One model's fields are the
// document's own.
type ListDoc struct {
	Presets    []hardware.PresetInfo   `json:"presets,omitempty"`
	GPUs       []hardware.GPUModel     `json:"gpus,omitempty"`
	Links      []hardware.Interconnect `json:"links,omitempty"`
	NICs       []hardware.NICModel     `json:"nics,omitempty"`
	Switches   []hardware.SwitchModel  `json:"switches,omitempty"`
	Models     []workload.ModelSummary `json:"models,omitempty"`
	Algorithms []schedule.Builder      `json:"algorithms,omitempty"` // of schedules
	*workload.ModelSummary
}

// Presets asks for the clusters that are known by name.
type Presets struct{}

// Run lists the presets.
func (q Presets) Run(context.Context, Env) (*ListDoc, error) {
	return &ListDoc{Presets: hardware.Presets()}, nil
}

// Hardware asks for the catalogue of links, accelerators, network cards and switches.
type Hardware struct {
	Table string `arg:"" optional:"" enum:"all,links,gpu,nic,switch" default:"all" help:"all, links, gpu, nic or switch (default all)."`
}

// Run lists the catalogue.
func (q Hardware) Run(context.Context, Env) (*ListDoc, error) {
	if err := prepare(&q); err != nil {
		return nil, err
	}
	d := &ListDoc{}
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

// Run lists the models, or the tensors of one.
func (q Models) Run(_ context.Context, env Env) (doc *ListDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if q.Model != "" {
		m, err := LoadModel(env, q.Model)
		if err != nil {
			return nil, err
		}
		d := m.Summary()
		d.Tensors = m.Tensors()
		return &ListDoc{ModelSummary: &d}, nil
	}
	d := &ListDoc{}
	for _, m := range workload.Models() {
		d.Models = append(d.Models, m.Summary())
	}
	return d, nil
}

// Algorithms asks which algorithms schedules can be built by.
type Algorithms struct{}

// Run lists them.
func (Algorithms) Run(context.Context, Env) (*ListDoc, error) {
	d := &ListDoc{}
	for _, b := range schedule.Builders() {
		// Those that compute in a switch need one.
		s, err := b.Build(b.Kinds[0], schedule.Params{Ranks: 4, Groups: [][]int{{0, 1}, {2, 3}}})
		if err == nil && len(s.Switches) > 0 {
			if b.Needs != "" {
				b.Needs += ", "
			}
			b.Needs += "a switch that computes (" + s.Switches[0].Kind.String() + ")"
		}
		d.Algorithms = append(d.Algorithms, b)
	}
	return d, nil
}
