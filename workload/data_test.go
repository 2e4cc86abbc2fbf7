package workload

import (
	"regexp"
	"strings"
	"testing"

	"busbar.dev/internal/csvtable"
)

// TestModelTable reads the catalogue: csvtable refuses unknown and missing columns, names that stand there
// twice and empty sources; here every row has an architecture and dimensions that its blocks need.
func TestModelTable(t *testing.T) {
	list, err := csvtable.Read[modelRow](modelsCSV)
	if err != nil {
		t.Fatal(err)
	}
	used := make(map[string]bool)
	for _, r := range list {
		family, _, _ := strings.Cut(r.Architecture, " ")
		used[family] = true
		if architectures[family] == nil && partRows()[family+"/layer"] == nil {
			t.Errorf("%s: no architecture %q", r.Name, r.Architecture)
			continue
		}
		if family != "resnet" && family != "vgg16" {
			if err := r.Check(); err != nil {
				t.Errorf("%s: %v", r.Name, err)
			}
		}
		if (r.Patch > 0) != (family == "vit" || family == "dit") ||
			(r.Stages != stages{}) != (family == "resnet") || r.WordWidth > 0 && family != "opt" ||
			(r.Latent != Latent{}) != (family == "deepseek") {
			t.Errorf("%s: a column of another architecture, or one of its own is empty", r.Name)
		}
	}
	for name := range architectures {
		if !used[name] {
			t.Errorf("architecture %s: no model has it", name)
		}
	}
}

// Every name that parts.csv counts with is a dimension, or is set by the words of some model or by the program.
func TestPartNames(t *testing.T) {
	known := map[string]bool{
		"q": true, "kv": true, "inner": true, "ssm_dim": true, "state": true, "groups": true, "ssm_heads": true,
		"attends": true, "scans": true, "sparse": true, "sees": true, "patch": true, "words": true, "q_lora_rank": true,
		"kv_lora_rank": true, "qk_nope_head_dim": true, "qk_rope_head_dim": true, "v_head_dim": true, "scan_heads": true,
		"scan_dim": true,
	}
	dims := Dims{}
	for name := range dims.byName() {
		known[name] = true
	}
	take := func(words string) {
		for _, word := range strings.Fields(words)[1:] {
			name, _, _ := strings.Cut(word, "=")
			known[strings.TrimRight(name, ":?")] = true
		}
	}
	for _, k := range configKinds() {
		take(k.Design)
	}
	for _, r := range rows() {
		take(r.Architecture)
	}
	name := regexp.MustCompile(`[a-z][a-z0-9_]*`)
	for _, list := range partRows() {
		for _, r := range list {
			text := r.In + " " + r.Out + " " + strings.Join(r.When, " ")
			for _, word := range r.More {
				if key, value, ok := strings.Cut(word, "="); ok && key != "suffix" {
					text += " " + value
				}
			}
			for _, n := range name.FindAllString(text, -1) {
				if !known[n] {
					t.Errorf("%s: nothing sets %s", r.Path, n)
				}
			}
		}
	}
}
