package truth

import (
	"encoding/json"
	"testing"

	"busbar.dev/result"
	"busbar.dev/step"
)

// Every mechanism can be left out of every run; each changes what it is about and nothing else, and the runs themselves stay.
func TestMechanismsLeaveOut(t *testing.T) {
	list := runs(t, step.Default(), 0)
	whole, _ := PredictRuns(list, step.Default())
	names := map[string]bool{}
	for _, m := range Mechanisms() {
		if m.Name == "" || m.Meaning == "" || names[m.Name] {
			t.Errorf("mechanism %q: %q", m.Name, m.Meaning)
		}
		names[m.Name] = true
		rows, left := PredictRuns(Without(list, &m), step.Default())
		if len(rows)+len(left) < len(list) {
			t.Errorf("%s: %d rows, %d left of %d runs", m.Name, len(rows), len(left), len(list))
		}
		for _, r := range rows {
			if !(r.Predicted > 0) || r.Limit() == "" {
				t.Errorf("%s: %s predicted at %v s, limited by %q", m.Name, r.ID, r.Predicted, r.Limit())
			}
		}
	}
	again, _ := PredictRuns(list, step.Default())
	for i := range whole {
		if whole[i].Predicted != again[i].Predicted {
			t.Errorf("%s: %v s before mechanisms were left out, %v after", whole[i].ID, whole[i].Predicted, again[i].Predicted)
		}
	}
}

func TestPublishers(t *testing.T) {
	for source, want := range map[string]string{
		"https://github.com/mlcommons/training_results_v5.0 NVIDIA/results": "MLPerf NVIDIA",
		"https://github.com/NVIDIA/Megatron-LM README":                      "github.com/NVIDIA/Megatron-LM",
	} {
		if got := (&Training{Source: source}).Publisher(); got != want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
	for id, want := range map[string]string{"aic2-h100-2x8": "aic", "ociv3-a100": "oci", "nccl2409-x": "nccl", "42-x": "42"} {
		if got := publisherOf(&result.Sweep{ID: id}); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
}

// Tables that people transcribe have numbers as words and words as numbers.
func TestLooseValues(t *testing.T) {
	var to struct {
		Zero  *int    `json:"zero"`
		Count int64   `json:"count"`
		Rate  float64 `json:"rate"`
		Name  string  `json:"name"`
		On    bool    `json:"on"`
		Off   bool    `json:"off"`
		One   bool    `json:"one"`
		Inner struct {
			Seq int `json:"seq"`
		} `json:"inner"`
		Gone struct{ X int } `json:"gone"`
	}
	line := `{"zero":"ZeRO-3","count":"1,024 GPUs","rate":true,"name":[2.5,"a",false],"on":"yes","off":"None","one":1,"inner":{"seq":"8192 tokens"},"gone":7}`
	if err := unmarshalLoose([]byte(line), &to); err != nil {
		t.Fatal(err)
	}
	if to.Zero == nil || *to.Zero != 3 || to.Count != 1024 || to.Rate != 1 || to.Name != "2.5, a, false" || !to.On || to.Off || !to.One || to.Inner.Seq != 8192 {
		text, _ := json.Marshal(to)
		t.Errorf("read as %s", text)
	}
	if err := unmarshalLoose([]byte(`{"count":"none"}`), &to); err != nil || to.Count != 0 {
		t.Errorf("a count without a number: %v, %d", err, to.Count)
	}
}
