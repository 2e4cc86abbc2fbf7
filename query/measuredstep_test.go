package query

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/fstest"
)

// A measured step is kept with the cluster: jobs of its kind are predicted by it, and what is too far off to be the job
// that was described is refused.
func TestMeasuredStep(t *testing.T) {
	job := Job{Cluster: "dgx-h100:2", Model: "llama3-8b", Parallel: "zero=3", Framework: "fsdp"}
	plain, err := Step{Job: job}.Run(t.Context(), Env{})
	if err != nil {
		t.Fatal(err)
	}
	was := plain.Rows[0]
	d, err := Step{Job: job, Took: (was.Step * 1.2).String()}.Run(t.Context(), Env{})
	if err != nil {
		t.Fatal(err)
	}
	m := d.Measured
	if m == nil || d.Described == nil || d.Described.Calibration == nil || !strings.Contains(m.Kind, "fsdp") {
		t.Fatalf("measured %+v", m)
	}
	cl, err := d.Described.Cluster()
	if err != nil {
		t.Fatal(err)
	}
	figure := cl.Calibration.Figures[0]
	if math.Abs(figure.Value-1.2) > 1e-3 || !strings.Contains(figure.Source, "llama3-8b") {
		t.Errorf("kept is %+v", figure)
	}
	file := "site.yaml"
	described := "nodes: [{count: 2, type: dgx-h100}]\ncalibration: {figures: [{name: \"" + figure.Name +
		"\", value: 1.2}]}\n"
	site := Env{Files: fstest.MapFS{file: {Data: []byte(described)}}}
	job.Cluster = file
	now, err := Step{Job: job}.Run(t.Context(), site)
	if err != nil {
		t.Fatal(err)
	}
	if r := now.Rows[0]; r.Step <= was.Step || r.Margin >= was.Margin || !strings.Contains(r.MarginFrom, m.Kind) {
		t.Errorf("%v ×%.2f from %s, was %v ×%.2f", r.Step, r.Margin, r.MarginFrom, was.Step, was.Margin)
	}
	if !strings.Contains(strings.Join(now.Notes, "\n"), "1 measured step of "+m.Kind+": 1.") {
		t.Errorf("nothing says what the measured step changes: %q", now.Notes)
	}
	job.Framework, job.Parallel = "deepspeed", ""
	if now, err = (Step{Job: job}).Run(t.Context(), site); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(now.Notes, "\n"), "do not apply to deepspeed") {
		t.Errorf("nothing says that the measured step is of another kind: %q", now.Notes)
	}
	job.Framework, job.Parallel = "fsdp", "zero=3"
	job.Cluster = "dgx-h100:2"
	// A log is as good as a time, where it is of the job that is described.
	want := 1.1 * was.Step.Seconds()
	text := ""
	for i := range 12 {
		rate := float64(was.Job.Global) * float64(was.Job.Seq) / want
		text += fmt.Sprintf("step %d: loss 10.58, %.3f s, %.0f tokens/s, 34.2 GB\n", i+1, want, rate)
	}
	log := Env{Files: fstest.MapFS{"train.log": {Data: []byte(text)}}}
	if d, err = (Step{Job: job, Took: "train.log"}).Run(t.Context(), log); err != nil {
		t.Fatal(err)
	}
	if got := d.Measured.Step.Seconds(); math.Abs(got/want-1) > 1e-2 {
		t.Errorf("by its log a step took %g s, want %g", got, want)
	}
	// What a log says of its job is what was asked; samples/s are a step's time where the batch is known.
	said := "llama3-8b on NVIDIA H100 80GB HBM3: world size 16, tensor parallel size 1, num_layers 32, hidden_size 4096\n"
	rates := strings.Repeat(fmt.Sprintf("step: loss 1.5, %.4f samples/s\n", float64(was.Job.Global)/want), 5)
	for _, c := range [][2]string{
		{text + said},
		{rates},
		{"no training\n", "how fast a training went"},
		{text + strings.Replace(said, "16", "8", 1), "the log says gpus=8, the job has 16"},
		{text + strings.Replace(said, "size 1,", "size 4,", 1), "the log says tp=4, the job has 1"},
		{text + strings.Replace(said, "32", "80", 1), "the log says layers=80, the job has 32"},
		{text + strings.Replace(said, "H100", "A100-SXM4", 1), "has h100"},
		{text + strings.Replace(said, "llama3-8b", "qwen3-8b", 1), "the log is of qwen3-8b, the job of llama3-8b"},
		{text + "num_experts ........ 8\n", "the log says experts=8, the job has 1"},
		{text + "num_experts ........ None\n"},
		{text + "expert_model_parallel_size ....... 4\n", "the log says ep=4, the job has 1"},
		{text + "micro_batch_size ........ 7\n", "the log says micro_batch=7"},
		{text + "Model llama3 8B size: 8,030,261,248 total parameters\n"},
		{text + "Model llama3 70B size: 70,553,706,496 total parameters\n", "the log says parameters=70553706496"},
		{text + "[titan] Building 2-D device mesh with ['dp_shard', 'tp'], [4, 2]\n", "the log says tp=2, the job has 1"},
		{text + "Building device mesh with parallelism: pp=4, dp_shard=4, cp=1, tp=1, ep=1\n", "says pp=4"},
		{text + "local batch size 1, global batch size 9999, sequence length 3\n", "seq=3"},
		{text + "global_batch_size: 3, world size 16\n", "the log says global_batch=3, the job has "},
	} {
		log, refused := c[0], c[1]
		env := Env{Files: fstest.MapFS{"train.log": {Data: []byte(log)}}}
		d, err := (Step{Job: job, Took: "train.log"}).Run(t.Context(), env)
		switch {
		case refused != "" && (err == nil || !strings.Contains(err.Error(), refused)):
			t.Errorf("%v; expected %s", err, refused)
		case refused == "" && err != nil:
			t.Error(err)
		case refused == "" && math.Abs(d.Measured.Step.Seconds()/want-1) > 1e-2:
			t.Errorf("a step took %v, want %g s", d.Measured.Step, want)
		}
	}
	// What was calibrated before moves no bound: three times as long and then three times again is another job.
	site.Files.(fstest.MapFS)[file].Data = []byte(strings.Replace(described, "1.2", "3", 1))
	job.Cluster = file
	_, err = (Step{Job: job, Took: (was.Step * 3).String()}).Run(t.Context(), site)
	if err != nil {
		t.Error(err)
	}
	if _, err = (Step{Job: job, Took: (was.Step * 6).String()}).Run(t.Context(), site); err == nil {
		t.Error("six times the uncalibrated prediction is kept")
	}
	job.Cluster = "dgx-h100:2"
	for _, took := range []string{"50us", "1h", "0s", "fast", "6", "nosuch.log"} {
		if _, err := (Step{Job: job, Took: took}).Run(t.Context(), Env{}); err == nil ||
			!strings.Contains(err.Error(), "--step") {
			t.Errorf("a step of %s: %v", took, err)
		}
	}
}

// TestMeasuredAlike: a step that one framework's jobs were measured by does not choose another framework, and whose
// figures are only predicted is said.
func TestMeasuredAlike(t *testing.T) {
	figure := "step.measured fsdp, compiled kernels, dense llama, bf16, 2% exposed"
	for _, q := range []Plan{{Model: "llama3-8b"}, {Model: "llama3-8b", Framework: "fsdp"}} {
		var plans []*PlanDoc
		for _, times := range []string{"1", "2"} {
			q.Cluster = "site.yaml"
			d, err := q.Run(t.Context(), Env{Files: fstest.MapFS{q.Cluster: {
				Data: []byte(
					"nodes: [{count: 2, type: dgx-h100}]\ncalibration: {figures: [{name: \"" + figure + "\", value: " + times +
						"}]}\n"),
			}}})
			if err != nil {
				t.Fatal(err)
			}
			plans = append(plans, d)
		}
		plain, slow := plans[0], plans[1]
		if plain.Framework != slow.Framework || !strings.HasPrefix(slow.Framework, "fsdp@") {
			t.Errorf("%s, and %s where steps by fsdp took longer than predicted", plain.Framework, slow.Framework)
		}
		if times := float64(slow.Plans[0].Step / plain.Plans[0].Step); times < 1.5 {
			t.Errorf("the first plan takes %.2f times as long where steps took twice as long", times)
		}
		for _, o := range slow.Others {
			if !strings.HasSuffix(o.Settings, "as predicted; fsdp's "+slow.Plans[0].Step.String()+" is by measured steps") {
				t.Errorf("%s beside a measured step is said to be by %s", o.Framework, o.Settings)
			}
		}
	}
}
