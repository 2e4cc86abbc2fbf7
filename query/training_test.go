package query

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"busbar.dev/finding"
)

// trainingLog is what a program prints at steps of so many tokens/s.
func trainingLog(rate float64) *fstest.MapFile {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "step %d loss 2.3 tok/s %.1f\n", i, rate)
	}
	return &fstest.MapFile{Data: []byte(b.String())}
}

// A training log is held against the step that is predicted for the job, and a slow one is a warning.
func TestTrainingAgainstPrediction(t *testing.T) {
	job := Job{Cluster: "dgx-h100", Model: "gpt2"}
	step, err := Step{Job: job}.Run(t.Context(), Env{})
	if err != nil {
		t.Fatal(err)
	}
	rate := step.Rows[0].TokensPerS
	for name, c := range map[string]struct {
		text *fstest.MapFile
		want string
		sev  finding.Severity
	}{
		"as predicted":     {trainingLog(rate), "training-as-predicted", finding.Note},
		"20 times as slow": {trainingLog(rate / 20), "training-slow", finding.Warn},
		"20 times as fast": {trainingLog(rate * 20), "training-fast", finding.Note},
		"another job": {&fstest.MapFile{
			Data: append([]byte("x on NVIDIA A100-SXM4-80GB: tensor parallel size 2\n"), trainingLog(rate).Data...),
		}, "training-other", finding.Warn},
	} {
		env := Env{Files: fstest.MapFS{"train.log": c.text}}
		d, err := Doctor{Sources: []string{"train.log"}, Against: &job}.Run(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		if f := d.Findings[0]; f.ID != c.want || f.Severity != c.sev || d.Predicted == nil ||
			d.Healthy != (c.want == "training-as-predicted") {
			t.Errorf("%s: %s %v: %s, healthy %t", name, f.ID, f.Severity, f.Title, d.Healthy)
		}
	}
	named := Env{Files: fstest.MapFS{"train.log": trainingLog(rate / 20)}} // as the page asks
	d, err := Doctor{Sources: []string{"train.log"}, On: job.Cluster, Of: job.Model}.Run(t.Context(), named)
	if err != nil || d.Findings[0].ID != "training-slow" {
		t.Errorf("by c and m alone: %+v, %v", d, err)
	}
	env := Env{Files: fstest.MapFS{"a.log": {Data: []byte("nothing of a training\n")}}}
	if _, err := (Doctor{Sources: []string{"a.log"}, Against: &job}).Run(t.Context(), env); err == nil {
		t.Error("a job was named that nothing is held against; expected an error that says so")
	}
	env.Files.(fstest.MapFS)["a.log"].Data = nil
	if _, err := (Doctor{Sources: []string{"a.log"}, Against: &job}).Run(t.Context(), env); err == nil ||
		!strings.Contains(err.Error(), "the inputs are empty") {
		t.Errorf("of an empty log: %v", err)
	}
}

// stepLines are lines of a step as frameworks print them: the step, its time in s, tokens/s of all GPUs and of each,
// samples/s, the batch.
var stepLines = map[string]string{
	"Megatron-LM": "iteration %8[1]d/ 500 | consumed samples: 99 | elapsed time per iteration (ms): %.1[7]f | learning " +
		"rate: 1.5E-06 | global batch size: %[6]d | lm loss: 1.19E+01 |",
	"nanotron": "[INFO|DP=0|TP=0|n7]: iteration: %[1]d / 500 | time_per_iteration_ms: %.1[7]f | tokens_per_sec: %.0[3]f " +
		"| " +
		"tokens_per_sec_per_gpu: %.0[4]f | lm_loss: 9.63 | lr: 1e-05",
	"torchtitan": "[rank0]:[titan] 2026-02-24 19:46:17,508 - root - INFO - step: %2[1]d  loss:  7.62  memory: " +
		"66.91GiB(37.51%%)  tps: %.0[4]f",
	"DeepSpeed": "[INFO] [timer.py:260:stop] epoch=0/micro_step=%[1]d/global_step=%[1]d, CurrSamplesPerSec=%.4[5]f, " +
		"MemAllocated=4.32GB",
	"NeMo": "Training epoch 0, iteration %[1]d/499 | lr: 6.8e-06 | global_batch_size: %[6]d | global_step: %[1]d | " +
		"reduced_train_loss: 11.96 | train_step_timing in s: %.4[2]f",
	"MaxText": "completed step: %[1]d, seconds: %.4[2]f, Tokens/s/device: %.2[4]f, loss: 7.1",
	"Hugging Face": "{'loss': 1.2, 'grad_norm': 3.4, 'learning_rate': 1e-05, 'epoch': 0.01}\n  3%%|▎         | " +
		"%[1]d/500 [05:%02[1]d<2:45:17,  %.2[2]fs/it]",
	"a loop of one's own": "step %5[1]d | loss: 6.112 | lr 6.0e-04 | dt: %.2[7]fms | tok/sec: %.2[3]f",
}

// A log of each framework is judged by what it prints: at a half and a fifth of the expected rate it is slow, at
// four fifths and all of it is not.
func TestTrainingOfFrameworks(t *testing.T) {
	job := Job{Cluster: "dgx-h100", Model: "llama2-7b", Global: 64}
	step, err := Step{Job: job}.Run(t.Context(), Env{})
	if err != nil {
		t.Fatal(err)
	}
	row := &step.Rows[0]
	for name, line := range stepLines {
		for _, factor := range []float64{0.2, 0.5, 0.8, 1} {
			took := row.Step.Seconds() / factor
			var b strings.Builder
			for i := range 40 {
				text := fmt.Sprintf(line+"%[8]s", i+1, took, row.TokensPerS*factor, row.PerGPU*factor, 64/took, 64, 1e3*took, "")
				b.WriteString(text + "\n")
			}
			env := Env{Files: fstest.MapFS{"train.log": {Data: []byte(b.String())}}}
			d, err := Doctor{Sources: []string{"train.log"}, Against: &job}.Run(t.Context(), env)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			want := "training-as-predicted"
			if factor <= 0.5 {
				want = "training-slow"
			}
			if f := d.Findings[0]; f.ID != want {
				t.Errorf("%s at %g of the rate: %s: %s, want %s", name, factor, f.ID, f.Title, want)
			}
		}
	}
}
