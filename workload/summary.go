package workload

import (
	"fmt"

	"busbar.dev/workload/pipeline"
)

// Summary is a job as it was resolved.
type Summary struct {
	Model     string    `json:"model"`
	Params    int64     `json:"parameters"`
	Parallel  Split     `json:"parallel"`
	Seq       int64     `json:"seq"`
	Global    int64     `json:"global_batch"`
	Micro     int64     `json:"micro_batch"`
	Precision Precision `json:"precision"`
	Recompute string    `json:"recompute"`
	Framework string    `json:"framework,omitempty"`
	Reason    string    `json:"framework_reason,omitempty"` // why that one, where nobody named it
	Kernels   string    `json:"kernels"`
	Settings  []string  `json:"settings,omitempty"` // that differ from the usual ones
}

// Summary is the job as documents have it.
func (j *Job) Summary() Summary {
	d := Summary{
		Model: j.Model.Name, Params: j.Model.Params(), Parallel: j.Split, Seq: j.Seq, Global: j.GlobalBatch,
		Micro: j.MicroBatch, Precision: j.Precision, Recompute: string(j.Recompute), Kernels: string(j.Kernels),
	}
	if f := j.Framework; f != nil {
		d.Framework = f.Title
	}
	var shape pipeline.Shape
	if j.Split.PP > 1 {
		shape = j.Pipeline()
	}
	for _, x := range []struct {
		so   bool
		text string
	}{
		{shape.Ranks > 1, fmt.Sprintf("%s schedule", shape.Schedule)},
		{j.Split.Order == TensorPipelineData, fmt.Sprintf("ranks %s", j.Split.Order)},
		{j.Framework != nil && j.Bucket != 0 && j.Bucket != DefaultBucket &&
			j.Bucket != j.Framework.bucket(j.Framework.Bucket, j.Split) &&
			j.Split.DP > 1, fmt.Sprintf("buckets of %s", j.Bucket)},
		{j.Context != "", fmt.Sprintf("context %s", j.Context)},
		{j.Offloads(), fmt.Sprintf("%s offloaded", j.Offload)},
		{j.Compresses(), fmt.Sprintf("gradients as %s", j.Compress)},
		{j.LoRA.Frozen(), fmt.Sprintf("adapters %s", j.LoRA)},
		{j.Packed > 0, fmt.Sprintf("packed documents of %d tokens", j.Packed)},
		{j.Reference, "with a reference model"},
	} {
		if x.so {
			d.Settings = append(d.Settings, x.text)
		}
	}
	return d
}

// ModelSummary is a model as documents have it.
type ModelSummary struct {
	Name      string `json:"name"`
	Title     string `json:"title"`
	Params    int64  `json:"params"`
	Active    int64  `json:"active_params"` // that a token passes
	Published int64  `json:"published_params"`
	Dims
	Seq             int64    `json:"seq"`
	Forward         float64  `json:"forward_flop"` // of one sequence of Seq tokens
	Source          string   `json:"source"`
	PublishedSource string   `json:"published_source"`
	Note            string   `json:"note,omitempty"`
	Unpriced        string   `json:"steps_not_priced,omitempty"`
	Tensors         []Tensor `json:"tensors,omitempty"` // of one model, in the order in which a framework registers them
}

// Summary is the model as documents have it, without its tensors.
func (m *Model) Summary() ModelSummary {
	return ModelSummary{
		Name: m.Name, Title: m.Title, Params: m.Params(), Active: m.Active(), Published: m.Published, Dims: m.Dims,
		Seq: m.Seq, Forward: m.Forward(m.Seq),
		Source: m.Source, PublishedSource: m.PublishedSource, Note: m.Note, Unpriced: m.Unpriced,
	}
}
