package main

import (
	"encoding/json"
	"testing"
)

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
	if to.Zero == nil || *to.Zero != 3 || to.Count != 1024 || to.Rate != 1 || to.Name != "2.5, a, false" || !to.On ||
		to.Off || !to.One || to.Inner.Seq != 8192 {
		text, _ := json.Marshal(to)
		t.Errorf("read as %s", text)
	}
	if err := unmarshalLoose([]byte(`{"count":"none"}`), &to); err != nil || to.Count != 0 {
		t.Errorf("a count without a number: %v, %d", err, to.Count)
	}
}
