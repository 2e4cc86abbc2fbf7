package query_test

import (
	"context"
	"fmt"
	"log"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/query"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// What will slow jobs down on a cluster.
func ExampleAudit() {
	doc, err := query.Audit{Sources: []string{"baskerville:2"}}.Run(context.Background(), query.Env{})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range doc.Audit {
		fmt.Println(f.Severity, f.ID)
	}
	fmt.Println("wrong:", doc.Wrong())
	// Output:
	// warn nic-shared
	// warn nic-other-socket
	// warn asymmetry-nic
	// note nic-far
	// wrong: true
}

// What changed between two measurements.
func ExampleDiff() {
	doc, err := query.Diff{
		Old: "../docs/examples/before.jsonl", New: "../docs/examples/after.jsonl",
	}.Run(context.Background(), query.Env{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("slower:", doc.Wrong())
	// Output: slower: true
}

// Collectives measured between ranks of this process, over plain memory.
func ExampleBench() {
	doc, err := query.Bench{
		Min: "1KiB", Max: "1KiB", Check: true,
	}.Run(context.Background(), query.Env{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(doc.Op, "of", doc.Rows[0].Size, "bytes:", doc.Rows[0].Wrong, "wrong")
	// Output: all_reduce of 1024 bytes: 0 wrong
}

// Values instead of texts.
func ExamplePredict_typed() {
	size := 64 * unit.MiB
	doc, err := query.Predict{
		Cluster: "dgx-h100:2", Op: query.Op(coll.AllGather.String()), Size: query.Size(size.Exact()),
		Dtype: query.Dtype(coll.BFloat16.String()),
	}.Run(context.Background(), query.Env{})
	if err != nil {
		log.Fatal(err)
	}
	for _, row := range doc.Rows {
		fmt.Println(row.Size.Exact(), row.Algo, row.Proto)
	}
	// Output:
	// 64MiB ring simple
}

// A job by the constants of package workload, on a cluster that is a value.
func ExampleEnv_clusters() {
	ctx := context.Background()
	site, err := query.LoadCluster(ctx, query.Env{}, "dgx-h100:4")
	if err != nil {
		log.Fatal(err)
	}
	job := query.Job{
		Cluster: "site", Layout: query.LayoutOf(2, 8), Model: "llama3-8b",
		Parallel: "tp=2,zero=1", Recompute: workload.Selective,
	}
	doc, err := query.Step{Job: job}.Run(ctx, query.Env{Clusters: map[string]*cluster.Cluster{"site": site}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(doc.Rows[0].Ranks, "GPUs,", doc.Rows[0].Job.Parallel)
	// Output: 16 GPUs, dp=8,tp=2,pp=1,zero=1,sp=1
}

// Which of the free nodes to take.
func ExamplePlace() {
	job := query.Job{Cluster: "dgx-h100:64", Model: "llama3-8b", Parallel: "zero=3"}
	doc, err := query.Place{Job: job, Nodes: 4, Free: "node[0-1,30-33,62-63]"}.Run(context.Background(), query.Env{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(doc.Rows[0].Hosts)
	// Output: node[0-1,30-31]
}

// Who holds a job up.
func ExampleHang() {
	doc, err := query.Hang{Sources: []string{"../docs/examples/hang"}}.Run(context.Background(), query.Env{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(doc.State, doc.Kind)
	// Output: hung late-rank
}

// A measured sweep against what is expected.
func ExampleDoctorBench() {
	doc, err := query.DoctorBench{
		Result: "../docs/examples/two-nodes.log", Cluster: "dgx-h100:2",
	}.Run(context.Background(), query.Env{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("wrong:", doc.Wrong())
	// Output: wrong: false
}
