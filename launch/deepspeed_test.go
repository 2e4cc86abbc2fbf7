package launch_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"busbar.dev/launch"
	"busbar.dev/nccl"
	"busbar.dev/workload"
)

// TestDeepSpeedReads lets DeepSpeed itself read its file of several plans.
func TestDeepSpeedReads(t *testing.T) {
	if out, err := exec.Command("python3", "-c", "import deepspeed").CombinedOutput(); err != nil {
		t.Skipf("python3 has no DeepSpeed (pip install deepspeed): %v\n%.300s", err, out)
	}
	c, l, m := placed(t, "dgx-h100", 2, 8, "llama2-7b")
	args := []string{"frameworks/deepspeed_read.py"}
	for name, set := range map[string]func(j *workload.Job){
		"zero0":      func(j *workload.Job) { j.Split.ZeRO = 0 },
		"zero1":      func(*workload.Job) {},
		"zero2":      func(j *workload.Job) { j.Split.ZeRO, j.MicroBatch = 2, 4 },
		"zero3":      func(j *workload.Job) { j.Split.ZeRO, j.GlobalBatch = 3, 16 },
		"fp16":       func(j *workload.Job) { j.Precision = workload.FP16 },
		"bucket":     func(j *workload.Job) { j.Bucket = 100 << 20 },
		"compress":   func(j *workload.Job) { j.Precision, j.Compress = workload.AMP, workload.WireBF16 },
		"optimizer":  func(j *workload.Job) { j.Split.ZeRO, j.Offload = 2, workload.OffloadOptimizer },
		"parameters": func(j *workload.Job) { j.Split.ZeRO, j.Offload = 3, workload.OffloadParams },
	} {
		split, err := (workload.Split{ZeRO: 1}).On(16)
		if err != nil {
			t.Fatal(err)
		}
		j := &workload.Job{
			Model: m, Split: split, Seq: 4096, MicroBatch: 1, GlobalBatch: 64, Precision: workload.BF16,
			Recompute: workload.None, Kernels: workload.Fused,
		}
		set(j)
		if err := j.Check(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		args = append(args, emitted(t, name,
			func() (*launch.Plan, error) { return launch.New(c, l, nccl.Newest, j, nil, true) }))
	}
	cmd := exec.Command("python3", args...)
	cmd.Env = append(os.Environ(), "DS_ACCELERATOR=cpu")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// emitted writes the files of a plan into a folder of its own.
func emitted(t *testing.T, name string, plan func() (*launch.Plan, error)) string {
	t.Helper()
	p, err := plan()
	if err != nil {
		t.Fatal(err)
	}
	files, _, err := p.Files("/run")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(folder, f.Name), []byte(f.Text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}
