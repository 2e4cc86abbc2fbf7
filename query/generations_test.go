package query

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// TestGenerations swaps a GPU for the next one in every input and asks the same questions: answers differ in their
// figures and not in their fields, and findings are of the same kinds. What goes by a GPU's name rather than by what
// the catalogue says of it shows here.
func TestGenerations(t *testing.T) {
	texts := map[string]string{
		"site.yaml": "types:\n  box:\n    gpus: 8 x B200\n    nics: 8 x 400Gb/s infiniband\nnodes:\n" +
			"  - hosts: a[1-2]\n    type: box\n",
		"cards.yaml": "types:\n  box:\n    gpus: 4 x B200\nnodes:\n  - hosts: a1\n    type: box\n",
		"job.txt": "Training hangs on 4 nodes of 8x B200 with 8x 400G InfiniBand.\n" +
			"node0:1:1 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.0.0.2<1> failed : Software caused " +
			"connection abort\n",
		"slow.txt": "all_reduce is slow on 2 nodes of 8 x B200 SXM: 40 GB/s.\nGPU Direct RDMA Disabled for HCA 0 'mlx5_0'\n",
		"list.txt": "GPU 0: NVIDIA B200 (UUID: GPU-1)\nGPU 1: NVIDIA B200 (UUID: GPU-2)\n",
	}
	ask := func(t *testing.T, old, now string) map[string]map[string]bool {
		swap := func(s string) string {
			return strings.NewReplacer(old, now, strings.ToLower(old), strings.ToLower(now)).Replace(s)
		}
		files := fstest.MapFS{}
		for name, text := range texts {
			files[name] = &fstest.MapFile{Data: []byte(swap(text))}
		}
		env := Env{Files: files}
		job := Job{Model: "llama2-7b", Parallel: "zero=3", Micro: 1}
		shapes := map[string]map[string]bool{}
		for _, c := range []string{
			"dgx-b200:2", "aws-p6-b200:2", "gb200-nvl72", "gb200-nvl72:2", "site.yaml", "cards.yaml", "list.txt", "b200",
		} {
			c = swap(c)
			job.Cluster = c
			shapes["map "+c] = shapeOf(t)(Map{Sources: []string{c}}.Run(context.Background(), env))
			shapes["predict "+c] = shapeOf(t)(Predict{Cluster: c, Size: "64M"}.Run(context.Background(), env))
			shapes["step "+c] = shapeOf(t)(Step{Job: job}.Run(context.Background(), env))
		}
		for _, f := range []string{"job.txt", "slow.txt"} {
			shapes["doctor "+f] = shapeOf(t)(Doctor{Sources: []string{f}}.Run(context.Background(), env))
		}
		return shapes
	}
	before, after := ask(t, "B200", "B200"), ask(t, "B200", "B300")
	near := func(field string) bool { // which depends on how far times are apart
		return strings.Contains(field, ".branches[]") || strings.Contains(field, ".advice[]")
	}
	for name, was := range before {
		now := strings.NewReplacer("b200", "b300").Replace(name)
		is := after[now]
		for field := range was {
			if !is[field] && !near(field) {
				t.Errorf("%s has %s; %s has not", name, field, now)
			}
		}
		for field := range is {
			if !was[field] && !near(field) {
				t.Errorf("%s has %s; %s has not", now, field, name)
			}
		}
	}
}

// shapeOf gives the fields of a document, with the names of findings, or that there is none.
func shapeOf(t *testing.T) func(doc any, err error) map[string]bool {
	return func(doc any, err error) map[string]bool {
		fields := map[string]bool{}
		if err != nil {
			fields["an error"] = true
			return fields
		}
		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		addShape(fields, "", v)
		return fields
	}
}

// addShape adds the fields of a value below a path; lists are of one kind.
func addShape(fields map[string]bool, path string, v any) {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			if k == "id" {
				fields[fmt.Sprint(path, " ", e)] = true
			}
			if k != "count" { // of boxes that stand for one switch, above one
				addShape(fields, path+"."+k, e)
			}
		}
	case []any:
		for _, e := range x {
			addShape(fields, path+"[]", e)
		}
	default:
		fields[path] = true
	}
}
