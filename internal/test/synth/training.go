package synth

import (
	"fmt"

	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/workload"
)

// Run is a training run in the written form of published ones: one line of JSON.
type Run struct {
	ID        string `json:"id"`
	Synthetic bool   `json:"synthetic"`
	Source    string `json:"source"`
	Cluster   string `json:"cluster"`
	Class     string `json:"hw_class"`
	Grade     string `json:"grade"`
	Framework string `json:"framework"`
	Model     struct {
		Name   string  `json:"name"`
		Params float64 `json:"params"`
		Layers int64   `json:"layers"`
		Hidden int64   `json:"hidden"`
		FFN    int64   `json:"ffn"`
		Heads  int64   `json:"heads"`
		Seq    int64   `json:"seq"`
		Vocab  int64   `json:"vocab"`
	} `json:"model"`
	Hardware struct {
		GPU     string   `json:"gpu"`
		GPUs    int      `json:"gpus"`
		Nodes   int      `json:"nodes"`
		PerNode int      `json:"gpus_per_node"`
		Intra   string   `json:"intra"`
		NICs    *int     `json:"nics_per_node"`
		Gbps    *float64 `json:"nic_gbps"`
		Fabric  string   `json:"fabric"`
	} `json:"hardware"`
	Parallel struct {
		DP          int    `json:"dp"`
		TP          int    `json:"tp"`
		PP          int    `json:"pp"`
		ZeRO        int    `json:"zero"`
		MicroBatch  int64  `json:"micro_batch"`
		GlobalBatch int64  `json:"global_batch"`
		Recompute   string `json:"recompute"`
		Precision   string `json:"precision"`
	} `json:"parallel"`
	Measured struct {
		Step float64 `json:"step_time_s"`
	} `json:"measured"`
}

// Dims is a model of the synthetic runs, of Llama's kind.
type Dims struct{ Layers, Hidden, Heads, Seq int64 }

// Way is how a job is split.
type Way struct {
	TP, PP, ZeRO int
	Micro        int64
	Recompute    workload.Recompute
}

// trainedWith is the release that readers assume of runs, for none states its own.
var trainedWith = nccl.Version{Major: 2, Minor: 23, Patch: 4}

// Run trains a model on the machine one way; the step takes what figures say, times a factor.
func (m *Machine) Run(id string, d Dims, w Way, global int64, f *step.Figures, factor float64) (Run, error) {
	c, l, err := m.Cluster()
	if err != nil {
		return Run{}, err
	}
	gpus := m.Nodes * m.PerNode
	dims := workload.Dims{
		Layers: d.Layers, Hidden: d.Hidden, Heads: d.Heads, KVHeads: d.Heads, FFN: 4 * d.Hidden, Vocab: 32000, Context: d.Seq,
	}
	j := &workload.Job{
		Model: &workload.Model{
			Name: "synthetic llama", Dims: dims, Seq: d.Seq, Blocks: workload.Blocks("llama gated", dims),
		},
		Seq:        d.Seq,
		MicroBatch: w.Micro, GlobalBatch: global,
		Precision: workload.BF16, Recompute: w.Recompute, Kernels: workload.Fused,
	}
	s := workload.Split{DP: gpus / w.TP / w.PP, TP: w.TP, PP: w.PP, ZeRO: w.ZeRO}
	if j.Split, err = s.On(gpus); err != nil {
		return Run{}, err
	}
	if err := j.Check(); err != nil {
		return Run{}, err
	}
	model, ok := hardware.GPUByName(m.Spec.GPU)
	if !ok {
		return Run{}, fmt.Errorf("GPU %q is not in the catalogue", m.Spec.GPU)
	}
	g, err := step.NewGPU(model, f)
	if err != nil {
		return Run{}, err
	}
	res, err := step.Step(j, g, step.NewFabric(c, l, j.Split, trainedWith))
	if err != nil {
		return Run{}, err
	}
	r := Run{
		ID: m.Name + "-" + id, Synthetic: true, Source: Source, Cluster: "synthetic " + m.Name,
		Class: "synthetic " + m.Spec.GPU, Grade: "A", Framework: string(workload.Fused),
	}
	r.Model.Name, r.Model.Layers, r.Model.Hidden, r.Model.FFN, r.Model.Heads, r.Model.Seq, r.Model.
		Vocab = "synthetic llama", d.Layers, d.Hidden, 4*d.Hidden, d.Heads, d.Seq, 32000
	r.Hardware.GPU, r.Hardware.GPUs, r.Hardware.Nodes, r.Hardware.PerNode, r.Hardware.Intra, r.Hardware.Fabric = m.Spec.
		GPU, gpus, m.Nodes, m.PerNode, m.Intra, m.Fabric
	if m.Spec.NICs > 0 {
		gbps := m.gbps()
		r.Hardware.NICs, r.Hardware.Gbps = &m.Spec.NICs, &gbps
	}
	r.Parallel.DP, r.Parallel.TP, r.Parallel.PP, r.Parallel.ZeRO, r.Parallel.MicroBatch, r.Parallel.GlobalBatch = s.DP,
		s.TP, s.PP, s.ZeRO, w.Micro, global
	r.Parallel.Recompute, r.Parallel.Precision = string(w.Recompute), "bf16"
	r.Measured.Step = res.Step.Seconds() * factor
	return r, nil
}

// Runs are runs of several models, machines and splits, with noise of the given spread; each job runs in several ways.
func Runs(f *step.Figures, spread float64) ([]Run, error) {
	off := noise(7, spread)
	var list []Run
	for _, m := range Machines()[:4] {
		for i, d := range []Dims{{16, 2048, 16, 2048}, {32, 4096, 32, 4096}} {
			for k, w := range []Way{
				{1, 1, 1, 1, workload.None}, {2, 1, 0, 1, workload.None}, {1, 1, 3, 1, workload.Full}, {4, 2, 1, 1, workload.None},
			} {
				r, err := m.Run(fmt.Sprintf("model%d-way%d", i, k), d, w, int64(8*m.Nodes*m.PerNode), f, off())
				if err != nil {
					return nil, fmt.Errorf("%s, model %d, way %d: %w", m.Name, i, k, err)
				}
				list = append(list, r)
			}
		}
	}
	return list, nil
}
