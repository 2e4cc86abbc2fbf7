package query_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"

	"busbar.dev/cluster"
	"busbar.dev/finding"
	"busbar.dev/query"
)

// Logs from a reader: the name - reads Env.Stdin.
func ExampleDoctor() {
	logs, err := os.Open("../docs/examples/job.log")
	if err != nil {
		log.Fatal(err)
	}
	defer logs.Close()
	doc, err := query.Doctor{Sources: []string{"-"}}.Run(context.Background(), query.Env{Stdin: logs})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("wrong:", doc.Wrong())
	for _, f := range doc.Findings {
		if f.ExplainedBy == "" && f.Severity > finding.Note {
			fmt.Println(f.Severity, f.ID)
		}
	}
	// Output:
	// wrong: true
	// error wrong-interface
}

// Bad questions are told from those that could not be answered.
func ExampleCannot() {
	ask := func(ctx context.Context, cluster string, env query.Env) {
		_, err := query.Predict{Cluster: cluster, Size: "1M"}.Run(ctx, env)
		fmt.Println(query.Cannot(err), errors.Is(err, fs.ErrNotExist), errors.Is(err, context.Canceled))
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	ask(context.Background(), "site.yaml", query.Env{}) // there is no such file
	// no cluster, and Env does not read the machine
	ask(context.Background(), "", query.Env{})
	ask(context.Background(), "dgx-h100:64", query.Env{Limits: cluster.Limits{GPUs: 16}}) // too large for this program
	ask(over, "dgx-h100:2", query.Env{})                                                  // nobody waits any more
	// Output:
	// false true false
	// false false false
	// true false false
	// true false true
}

// Progress is told what is being done; the empty text ends it.
func ExampleEnv_progress() {
	env := query.Env{
		Progress: func(text string) { fmt.Printf("%q\n", text) },
		Steps:    func(done, total int64) { fmt.Println(done, "of", total) },
	}
	if _, err := (query.Predict{Cluster: "dgx-h100:2", Compare: "1x8,2x8", Size: "1M"}).Run(context.Background(),
		env); err != nil {
		log.Fatal(err)
	}
	// Output:
	// "predicting"
	// 0 of 2
	// 1 of 2
	// 2 of 2
	// ""
}

// A document that was read from JSON is the document: package report prints the same of it.
func ExamplePredictDoc_json() {
	doc, err := query.Predict{Cluster: "dgx-h100:2", Size: "1M"}.Run(context.Background(), query.Env{})
	if err != nil {
		log.Fatal(err)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		log.Fatal(err)
	}
	var back query.PredictDoc
	if err := json.Unmarshal(text, &back); err != nil {
		log.Fatal(err)
	}
	fmt.Println(back.Rows[0].Time == doc.Rows[0].Time)
	// Output: true
}

// The files of a plan, written: plan.json comes last, and what an earlier plan left there goes.
func ExamplePlanFiles_Write() {
	dir, err := os.MkdirTemp("", "plan")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	q := query.Plan{
		Cluster: "dgx-h100:1", Model: "llama2-7b", Global: 64, Top: 1, Parallel: "zero=3", Emit: filepath.Join(dir, "run1"),
	}
	doc, err := q.Run(context.Background(), query.Env{})
	if err != nil {
		log.Fatal(err)
	}
	if err := doc.Emitted.Write(false); err != nil {
		log.Fatal(err)
	}
	_, err = os.Stat(filepath.Join(dir, "run1", "plan.json"))
	fmt.Println(err, doc.Emitted.Files[len(doc.Emitted.Files)-1])
	// Output: <nil> plan.json
}
