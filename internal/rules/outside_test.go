package rules

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// outside is what somebody writes who imports busbar: a question, and one call deeper each of what it stands on.
const outside = `package main

import (
	"context"
	"fmt"
	"log"

	"MODULE/coll"
	"MODULE/hardware"
	"MODULE/nccl"
	"MODULE/plan"
	"MODULE/predict"
	"MODULE/query"
	"MODULE/schedule"
	"MODULE/unit"
)

func main() {
	doc, err := query.Predict{Cluster: "dgx-h100:4", Op: "all_reduce", Size: "1G"}.Run(context.Background(), query.Env{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("query:", doc.Rows[0].Algo, doc.Rows[0].Time, doc.Rows[0].Limit.Kind)

	cl, err := hardware.Preset("dgx-h100", 4)
	if err != nil {
		log.Fatal(err)
	}
	ranks, err := nccl.Block(cl, 4, 8)
	if err != nil {
		log.Fatal(err)
	}
	p, err := predict.New(cl, ranks, nccl.Newest, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	a, err := p.Ask(predict.Query{Kind: coll.AllReduce, Sizes: []unit.Bytes{unit.GiB}, Algos: []string{predict.Auto}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("predict:", a.Rows[0].Algo, a.Rows[0].Time)

	b, err := schedule.Find("ring")
	if err != nil {
		log.Fatal(err)
	}
	s, err := b.Build(coll.AllReduce, schedule.Params{Ranks: 4, Channels: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("schedule:", s.Ranks)
	fmt.Println("plan:", len(plan.NetworkOrder(cl, ranks)))
}
`

// TestOutsideProgram builds and runs a program outside of the tree that imports the module.
func TestOutsideProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(mod), "module "+module, "module outside.example/program", 1) +
		"\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + root + "\n"
	for name, data := range map[string]string{
		"go.mod": text, "go.sum": string(sum), "main.go": strings.ReplaceAll(outside, "MODULE", module),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "run", "-mod=mod", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=mod")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"query: ", "predict: ", "schedule: 4", "plan: 32"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	t.Logf("%s", out)
}
