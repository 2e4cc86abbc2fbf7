package launch

import (
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Options is what a plan may have that is not usual.
type Options struct {
	// Context is how ranks that share sequences exchange: ring, gather or ulysses.
	Context string `json:"context,omitempty"`
	// Bucket is how many bytes of gradients travel at once, where that is not PyTorch's 25 MiB.
	Bucket unit.Bytes `json:"bucket_bytes,omitempty"`
	// GradWidth is the bytes of a gradient, which buckets are counted by in frameworks.
	GradWidth int64 `json:"grad_bytes,omitempty"`
	// Offload is what the host keeps: optimizer, parameters.
	Offload string `json:"offload,omitempty"`
	// Compress is how gradients travel: bf16, fp16, int8.
	Compress string `json:"compress,omitempty"`
	// LoRA are the adapters that are trained beside frozen weights, as --lora takes them, and Adapters the number of their
	// parameters.
	LoRA     string `json:"lora,omitempty"`
	Adapters int64  `json:"adapter_params,omitempty"`
}

// optionsOf is a job's.
func optionsOf(j *workload.Job) Options {
	b := Options{Context: string(j.Context)}
	if j.Bucket > 0 && j.Bucket != workload.DefaultBucket {
		b.Bucket, b.GradWidth = j.Bucket, int64(j.GradWidth())
	}
	if j.Offloads() {
		b.Offload = string(j.Offload)
	}
	if j.Compresses() {
		b.Compress = string(j.Compress)
	}
	if j.LoRA.Frozen() {
		b.LoRA = j.LoRA.String()
		b.Adapters = int64(j.Adapters())
	}
	return b
}

// Elements is how many gradients a bucket has.
func (b Options) Elements() int64 { return int64(b.Bucket) / max(1, b.GradWidth) }
