package query_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing/fstest"

	"busbar.dev/query"
)

// The shortest way to an answer: one question, one call.
func Example() {
	doc, err := query.Predict{Cluster: "dgx-h100:4", Op: "all_reduce", Size: "1G"}.Run(context.Background(), query.Env{})
	if err != nil {
		log.Fatal(err)
	}
	row := doc.Rows[0]
	fmt.Println(row.Ranks, "ranks,", row.Algo, "by", row.Proto+", limited by", row.Limit.Kind)
	// Output: 32 ranks, ring by simple, limited by nic
}

// Layouts side by side: the reference cluster, whose nodes have four GPUs and one NIC.
func ExamplePredict_compare() {
	doc, err := query.Predict{
		Cluster: "baskerville", Compare: "1x4,2x2,4x1", Size: "1.32GB", Dtype: "bfloat16",
	}.Run(context.Background(), query.Env{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("fastest:", doc.Compare[0].Winner)
	// Output: fastest: 1x4
}

// What a description of a cluster amounts to, and what will slow jobs on it.
func ExampleMap() {
	doc, err := query.Map{Sources: []string{"baskerville:2"}}.Run(context.Background(), query.Env{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(doc.Summary.Nodes, "nodes,", doc.Summary.GPUs, "GPUs,", doc.Summary.NICs, "NICs")
	fmt.Println("first finding:", doc.Audit[0].ID)
	// Output:
	// 2 nodes, 8 GPUs, 2 NICs
	// first finding: nic-shared
}

// Questions read files of any file system; the machine's own where none is given.
func ExampleEnv_files() {
	env := query.
		Env{Files: fstest.MapFS{"site.yaml": {Data: []byte("nodes:\n  - hosts: gpu[01-04]\n    type: dgx-h100\n")}}}
	doc, err := query.Map{Sources: []string{"site.yaml"}}.Run(context.Background(), env)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(doc.Summary.GPUs, "GPUs")
	_, err = query.Map{Sources: []string{"/etc/hostname"}}.Run(context.Background(), env)
	fmt.Println(err != nil, errors.Is(err, query.ErrCannot))
	// Output:
	// 32 GPUs
	// true false
}

// How data travels between two GPUs.
func ExamplePath() {
	doc, err := query.Path{
		Sources: []string{"dgx-h100:2"}, Path: []string{"node0/gpu0,node1/gpu0"},
	}.Run(context.Background(), query.Env{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(doc.Paths[0].Reach, "over", len(doc.Paths[0].Hops), "hops")
	// Output: leaf over 6 hops
}
