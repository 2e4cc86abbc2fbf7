package launch

import (
	"cmp"

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
		whole := *j
		whole.Split.TP = 1
		for i := range j.Model.Blocks {
			b.Adapters += int64(whole.Trained(&j.Model.Blocks[i]))
		}
	}
	return b
}

// Elements is how many gradients a bucket has.
func (b Options) Elements() int64 { return int64(b.Bucket) / max(1, b.GradWidth) }

// deepspeedZero is the part of DeepSpeed's configuration about
// ZeRO.
type deepspeedZero struct {
	Stage     int      `json:"stage"`
	Bucket    int64    `json:"reduce_bucket_size,omitempty"` // in elements
	Overlap   bool     `json:"overlap_comm,omitempty"`
	Optimizer *cpuHeld `json:"offload_optimizer,omitempty"`
	Params    *cpuHeld `json:"offload_param,omitempty"`
	Gather    bool     `json:"stage3_gather_16bit_weights_on_model_save,omitempty"`
	Hybrid    int      `json:"zero_hpz_partition_size,omitempty"` // parameters are whole among so many ranks
}

type cpuHeld struct {
	Device string `json:"device"`
	Pin    bool   `json:"pin_memory"`
}

// deepspeed fills the part about ZeRO and gives back the type on the wire, or says what DeepSpeed
// does not have. Buckets are said even where they are PyTorch's: DeepSpeed's own are of 500 million
// gradients, and travel after the backward pass with ZeRO 1 and 2, which is not what was predicted.
func (b *Options) deepspeed(z *deepspeedZero, width float64) (wire, reason string) {
	if z.Stage == 1 || z.Stage == 2 { // ZeRO 3 reduces block by block, beside the backward pass unasked
		bucket := cmp.Or(b.Bucket, workload.DefaultBucket)
		z.Bucket, z.Overlap = int64(bucket)/int64(width), true
	}
	held := &cpuHeld{"cpu", true}
	switch workload.Offload(b.Offload) {
	case workload.OffloadOptimizer:
		z.Optimizer = held
	case workload.OffloadParams:
		z.Optimizer, z.Params = held, held
	}
	if workload.Wire(b.Compress) == workload.WireInt8 {
		return "", "compress int8 is a hook of PyTorch's DDP, not of DeepSpeed"
	}
	return b.Compress, ""
}
