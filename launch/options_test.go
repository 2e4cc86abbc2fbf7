package launch_test

import (
	"strings"
	"testing"

	"busbar.dev/launch"
	"busbar.dev/nccl"
	"busbar.dev/workload"
)

// What a plan has beyond what is usual is in the files of frameworks that have it, and leaves out
// the files of those that have not.
func TestBeside(t *testing.T) {
	c, l, m := placed(t, "dgx-h100", 1, 8, "llama2-7b")
	for _, x := range []struct {
		name  string
		set   func(j *workload.Job)
		file  string
		want  []string
		left  string // the reason of a file that is not there
		never string
	}{
		{
			"usual", func(j *workload.Job) { j.Bucket = 25 << 20 }, "deepspeed.json",
			[]string{`"stage": 1`, `"reduce_bucket_size": 13107200`, `"overlap_comm": true`},
			"", "",
		},
		{
			"none", func(j *workload.Job) { j.Split.ZeRO = 0 }, "deepspeed.json",
			[]string{`"stage": 0`},
			"",
			"reduce_bucket_size",
		},
		{
			"bucket", func(j *workload.Job) { j.Bucket = 100 << 20 }, "deepspeed.json",
			[]string{`"reduce_bucket_size": 52428800`, `"overlap_comm": true`},
			"", "",
		},
		{
			"bucket", func(j *workload.Job) { j.Bucket = 100 << 20 }, "megatron.args",
			[]string{"--ddp-bucket-size 52428800", "--overlap-grad-reduce"},
			"", "",
		},
		{
			"offload", func(j *workload.Job) { j.Offload = workload.OffloadOptimizer }, "megatron.args",
			[]string{"--optimizer-cpu-offload"},
			"", "",
		},
		{
			"offload", func(j *workload.Job) { j.Split.ZeRO, j.Offload = 3, workload.OffloadParams }, "deepspeed.json",
			[]string{`"offload_param"`, `"offload_optimizer"`, `"device": "cpu"`},
			"", "",
		},
		{
			"compress", func(j *workload.Job) { j.Precision, j.Compress = workload.AMP, workload.WireBF16 }, "deepspeed.json",
			[]string{`"communication_data_type": "bf16"`},
			"", "",
		},
		{
			"compress", func(j *workload.Job) { j.Precision, j.Compress = workload.AMP, workload.WireBF16 }, "megatron.args",
			[]string{"--grad-reduce-in-bf16"},
			"", "",
		},
		{"compress", func(j *workload.Job) {
			j.Precision, j.Compress, j.Split.ZeRO = workload.AMP, workload.WireInt8, 0
		}, "megatron.args", nil, "compress int8", ""},
		{"context", func(j *workload.Job) {
			j.Split.DP, j.Split.CP, j.Context = 4, 2, workload.Ulysses
		}, "megatron.args", []string{"--cp-comm-type a2a"}, "", ""},
	} {
		split, err := (workload.Split{ZeRO: 1}).On(8)
		if err != nil {
			t.Fatal(err)
		}
		j := &workload.Job{
			Model: m, Split: split, Seq: 4096, MicroBatch: 1, GlobalBatch: 64, Precision: workload.BF16,
			Recompute: workload.None, Kernels: workload.Fused,
		}
		x.set(j)
		if err := j.Check(); err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		p, err := launch.New(c, l, nccl.Newest, j, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		files, left, err := p.Files("/run")
		if err != nil {
			t.Fatal(err)
		}
		text, reason := "", ""
		for _, f := range files {
			if f.Name == x.file {
				text = f.Text
			}
		}
		for _, f := range left {
			if f.Name == x.file {
				reason = f.Reason
			}
		}
		for _, w := range x.want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: %s has no %s:\n%s%s", x.name, x.file, w, text, reason)
			}
		}
		if !strings.Contains(reason, x.left) || x.never != "" && strings.Contains(text, x.never) {
			t.Errorf("%s: %s: %q\n%s", x.name, x.file, reason, text)
		}
	}
}
