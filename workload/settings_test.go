package workload_test

import (
	"strings"
	"testing"

	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// What cannot be is refused with what would do.
func TestSettingsAreChecked(t *testing.T) {
	m, err := workload.Find("llama2-70b")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		split  string
		change func(*workload.Job)
		want   string
	}{
		{"", func(j *workload.Job) { j.Schedule = pipeline.GPipe }, "without a pipeline; give pp=2 or more"},
		{"pp=4", func(j *workload.Job) { j.Schedule = pipeline.Interleaved }, "vpp=2 or more"},
		{"pp=4,vpp=2", func(j *workload.Job) { j.Schedule = pipeline.ZeroBubble }, "vpp=2 is for the interleaved schedule"},
		{"pp=4,vpp=2", func(j *workload.Job) { j.GlobalBatch = 12 }, "6 are not a multiple of it"},
		{"pp=4", func(j *workload.Job) { j.Schedule = "dualpipe" }, "expected one of gpipe, 1f1b"},
		{"pp=4", func(j *workload.Job) { j.Schedule = pipeline.ZeroBubbleV }, ""},
		{"", func(j *workload.Job) { j.Offload = workload.OffloadOptimizer }, "zero=1 or more"},
		{"zero=1", func(j *workload.Job) { j.Offload = workload.OffloadParams }, "divided with zero=3"},
		{
			"zero=2", func(j *workload.Job) { j.Offload, j.Precision = workload.OffloadOptimizer, workload.AMP },
			"expected bf16, fp16 or fp8",
		},
		{"zero=2", func(j *workload.Job) { j.Offload = "nvme" }, "expected none, optimizer or parameters"},
		{"zero=2", func(j *workload.Job) { j.Offload = workload.OffloadOptimizer }, ""},
		{"", func(j *workload.Job) { j.Compress = workload.WireBF16 }, "2 bytes already"},
		{"zero=1", func(j *workload.Job) { j.Compress, j.Precision = workload.WireInt8, workload.FP32 }, "(zero=0)"},
		{"tp=8", func(j *workload.Job) { j.Compress, j.Precision = workload.WireInt8, workload.FP32 }, "one replica"},
		{"", func(j *workload.Job) { j.Compress = "zfp" }, "expected none, fp16, bf16 or int8"},
		{"", func(j *workload.Job) { j.Compress, j.Precision = workload.WireInt8, workload.FP32 }, ""},
		{"", func(j *workload.Job) { j.Context = workload.Gather }, "give cp=2 or more"},
		{"cp=4,tp=4", func(j *workload.Job) { j.Context = workload.Ulysses }, "8 of keys and values"},
		{"cp=4", func(j *workload.Job) { j.Context = "star" }, "expected ring, gather or ulysses"},
		{"cp=4,zero=1,shard=8", func(j *workload.Job) {
			j.Split.Shard, j.Split.Order, j.Split.CP, j.Split.DP = 2, workload.TensorPipelineData, 4, 2
		}, ""},
		{"", func(j *workload.Job) { j.Split.Order = "dp-tp" }, "expected tp-cp-dp-pp or tp-cp-pp-dp"},
		{"", func(j *workload.Job) { j.Bucket = -1 }, "buckets of -1 bytes"},
		{"sp=1", func(*workload.Job) {}, "give tp=2 or more"},
		{"cp=4,tp=2,sp=1", func(j *workload.Job) { j.Context = workload.Ulysses }, ""},
	} {
		s, err := workload.ParseSplit(x.split)
		if err != nil {
			t.Fatal(err)
		}
		ranks := 8
		if s.CP*s.TP == 16 {
			ranks = 16
		}
		j := &workload.Job{
			Model: m, Seq: 4096, MicroBatch: 1, GlobalBatch: 64, Precision: workload.BF16, Kernels: workload.Fused,
		}
		if j.Split, err = s.On(ranks); err != nil {
			t.Fatal(err)
		}
		x.change(j)
		err = j.Check()
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q: %v; expected %q", x.split, err, x.want)
		}
	}
}

// Layers that are alike count as often as they come.
func TestOutline(t *testing.T) {
	m, err := workload.Find("deepseek-v3")
	if err != nil {
		t.Fatal(err)
	}
	o := m.Outline()
	n := 0.0
	for _, k := range o.Kinds {
		n += k.Count
	}
	if o.Layers() != 61 || len(o.Order) != len(m.Blocks) || int(n) != len(m.Blocks) || len(o.Kinds) != 4 {
		t.Errorf("%d layers, %d kinds of %g blocks", o.Layers(), len(o.Kinds), n)
	}
}
