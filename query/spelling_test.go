package query

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"busbar.dev/measure"
)

// TestUnflagged holds texts to what is the question's own: its flags become names, those of commands and of other
// programs stay.
func TestUnflagged(t *testing.T) {
	params := Params(Step{})
	for _, c := range []struct{ text, want, first string }{
		{"--global-batch 0: expected 1 or more", "global-batch 0: expected 1 or more", "global-batch"},
		{
			"no cluster; expected -c CLUSTER, such as -c dgx-h100:4 (busbar list presets lists them)",
			"no cluster; expected cluster, such as cluster dgx-h100:4 (busbar list presets lists them)", "cluster",
		},
		{
			"give it (--gpu a100-80; `busbar list hardware gpu` lists them)",
			"give it (gpu a100-80; `busbar list hardware gpu` lists them)", "gpu",
		},
		{
			"busbar map --gpu h100 x.txt -o site.yaml says it, then -c site.yaml",
			"busbar map --gpu h100 x.txt -o site.yaml says it, then cluster site.yaml", "cluster",
		},
		{"Megatron-LM's flag is --mtp-num-layers 2", "Megatron-LM's flag is --mtp-num-layers 2", ""},
		{"from -1 to a-c, --gpus and --precision", "from -1 to a-c, --gpus and precision", "precision"},
		{"zero=3 in --parallel, --recompute full.", "zero=3 in parallel, recompute full.", "parallel"},
		{
			"no NIC (--nic 10GbE gives one); nvidia-smi topo -m says otherwise",
			"no NIC (nic 10GbE gives one); nvidia-smi topo -m says otherwise", "nic",
		},
		{"-", "-", ""},
		{"--", "--", ""},
		{"", "", ""},
	} {
		if got, first := unflagged(c.text, params); got != c.want || first != c.first {
			t.Errorf("%q: %q about %q, want %q about %q", c.text, got, first, c.want, c.first)
		}
	}
}

// TestFieldErrors holds one wrong question of each kind to both spellings, and to the parameter that it is about.
func TestFieldErrors(t *testing.T) {
	job := Job{Cluster: "dgx-h100:2", Model: "llama3-8b"}
	with := func(change func(*Job)) Job { j := job; change(&j); return j }
	for _, c := range []struct {
		question any
		field    string
	}{
		{Predict{Cluster: "dgx-h100:2", Size: "1X"}, "size"},
		{Predict{Cluster: "dgx-h100:2", Min: "1G", Max: "1M"}, "minbytes"},
		{Predict{Cluster: "dgx-h100:2", Op: "all_or_nothing"}, "op"},
		{Predict{Cluster: "dgx-h100:2", Dtype: "int3"}, "dtype"},
		{Predict{Cluster: "dgx-h100:2", Proto: "zip"}, "proto"},
		{Predict{Cluster: "dgx-h100:2", Links: true}, "links"},
		{Step{Job: Job{Model: "llama3-8b"}}, "cluster"},
		{Step{Job: with(func(j *Job) { j.Global = -4 })}, "global-batch"},
		{Step{Job: with(func(j *Job) { j.Recompute = "some" })}, "recompute"},
		{Step{Job: with(func(j *Job) { j.Parallel = "tp=x" })}, "parallel"},
		{Step{Job: with(func(j *Job) { j.NIC = "fast" })}, "nic"},
		{Step{Job: with(func(j *Job) { j.Layout, j.Compare = "1x8", "1x8,2x8" })}, "layout"},
		{Scale{Job: with(func(j *Job) { j.Parallel = "dp=2" })}, "parallel"},
		{Envelope{Job: job, MFU: pointer(2.0)}, "mfu"},
		{Need{Job: with(func(j *Job) { j.Bucket = "7" })}, "bucket"},
		{Plan{Cluster: "dgx-h100:2", Model: "llama3-8b", GPUs: 12}, "gpus"},
		{Place{Job: job, Nodes: -1}, "nodes"},
		{Sched{Op: "nothing"}, "op"},
		{Doctor{FailOn: "fatal", Sources: []string{"-"}}, "fail-on"},
		{Diff{Old: "x", New: "x", Alpha: pointer(7.0)}, "alpha"},
		{Goodput{Job: job, Failures: Failures{MTBF: "1y/rack"}}, "mtbf"},
	} {
		run := reflect.ValueOf(c.question).MethodByName("Run")
		ask := func(env Env) error {
			err, _ := run.Call([]reflect.Value{reflect.ValueOf(t.Context()), reflect.ValueOf(env)})[1].Interface().(error)
			return err
		}
		err, flags := ask(Env{}), ask(Env{Flags: true})
		var field *FieldError
		if !errors.As(err, &field) || field.Field != c.field {
			t.Errorf("%T: %v is about %v, want %s", c.question, err, field, c.field)
			continue
		}
		params := Params(c.question)
		p := params[slices.IndexFunc(params, func(p Param) bool { return p.Name == c.field })]
		if strings.Contains(err.Error(), "--"+p.Name) || !strings.Contains(err.Error(), p.Name) {
			t.Errorf("%T: %v", c.question, err)
		}
		if text := flags.Error(); !strings.Contains(text, "--"+p.Name) &&
			(p.Short == "" || !strings.Contains(text, "-"+p.Short)) {
			t.Errorf("%T with Flags: %v", c.question, flags)
		}
		if !errors.As(flags, &field) || field.Field != c.field {
			t.Errorf("%T with Flags: %v is about %v", c.question, flags, field)
		}
	}
}

// TestNotesInDocuments holds a document to the notes that its question gives, by the names of parameters.
func TestNotesInDocuments(t *testing.T) {
	var told []string
	doc, err := Plan{Cluster: "dgx-h100:2", Model: "gpt2", MaxNodes: 9}.Run(t.Context(), Env{
		Flags: true, Note: func(text string) { told = append(told, text) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(told, func(s string) bool { return strings.Contains(s, "--max-nodes 9: there are 2 nodes") }) {
		t.Errorf("told %q", told)
	}
	if !slices.ContainsFunc(doc.Notes,
		func(s string) bool { return strings.Contains(s, "max-nodes 9: there are 2 nodes") }) {
		t.Errorf("the document has %q", doc.Notes)
	}
}

// TestNotedDocuments holds documents to one list of notes: a second of the same name in an embedded struct would hide
// both.
func TestNotedDocuments(t *testing.T) {
	for _, d := range []any{
		PredictDoc{},
		StepDoc{},
		PlanDoc{},
		PlaceDoc{},
		MapDoc{},
		AuditDoc{},
		PathDoc{},
		DoctorDoc{},
		DoctorBenchDoc{},
		ExplainDoc{},
		JobsDoc{},
		TraceDoc{},
		NeedDoc{},
		ScaleDoc{},
		EnvelopeDoc{},
		GoodputDoc{},
		ExpertsDoc{},
		SuggestDoc{},
		CalibrateDoc{},
		SchedDoc{},
		BenchDoc{},
		BenchStepDoc{},
		HangDoc{},
		measure.Check{},
		BenchPairsDoc{},
		DiffDoc{},
		ValidateDoc{},
	} {
		if _, ok := reflect.TypeOf(d).FieldByName("Notes"); !ok {
			t.Errorf("%T has no Notes, or two", d)
		}
	}
}

func pointer[T any](x T) *T { return &x }
