package query

import (
	"strings"
	"testing"

	"busbar.dev/cluster"
)

// "Because it was so slow we had to use Megatron-Deepspeed for training BLOOM-176B instead of the much easier to use
// DeepSpeed ZeRO": over Omni-Path, tensor and pipeline parallelism give at least twice the rate of ZeRO-3.
func TestBloomOnOmniPath(t *testing.T) {
	rate := func(framework, parallel string) float64 {
		q := Step{Job: Job{
			Cluster: "jean-zay-a100:48", Model: "bloom-176b", Framework: framework, Parallel: Parallel(parallel),
			Recompute: "full",
		}}
		doc, err := q.Run(t.Context(), Env{})
		if err != nil {
			t.Fatal(err)
		}
		return doc.Rows[0].TokensPerS
	}
	if zero, megatron := rate("deepspeed", "zero=3"), rate("megatron-deepspeed", "tp=4,pp=12,zero=1"); megatron < 2*zero {
		t.Errorf("%.0f tokens a second by tp=4,pp=12 and %.0f by zero=3; the document could not use ZeRO there", megatron,
			zero)
	}
}

// "The GPUs on 11 nodes have 80GB RAM, while those on the remaining 46 nodes have 40GB RAM": two presets are one
// cluster on one fat tree, in which every node has its port and a collective runs over both kinds.
func TestBaskervilleWhole(t *testing.T) {
	c, err := LoadCluster(t.Context(), Env{}, "b[00-45]=baskerville", "b[46-56]=baskerville-80")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Hosts) != 57 || len(c.Types) != 2 || len(c.Warnings) > 0 {
		t.Errorf("%d hosts of %d types, %v; want 57 of 2", len(c.Hosts), len(c.Types), c.Warnings)
	}
	routes, leaves := cluster.NewRoutes(c), map[int]int{}
	for h := range c.Hosts {
		leaf, _ := routes.Leaf(h, c.TypeOf(h).Of(cluster.NIC)[0])
		leaves[leaf]++
	}
	if len(leaves) != 3 || leaves[-1] > 0 {
		t.Errorf("hosts by leaf %v; want 20, 20 and 17", leaves)
	}
	for _, s := range c.Network.Sides() {
		up, _ := s.Up.Rate()
		if down, _ := s.Hosts.Rate(); up < down {
			t.Errorf("%+v: less goes up than its hosts send", s)
		}
	}
	doc, err := Predict{Cluster: "site", Hosts: "b[44-47]", Size: "1GB"}.Run(t.Context(),
		Env{Clusters: map[string]*cluster.Cluster{"site": c}})
	if err != nil || doc.Rows[0].Ranks != 16 {
		t.Errorf("%v, %+v; want 16 ranks on nodes of both kinds", err, doc)
	}
}

// Presets of different fabrics keep their own, under names of their own; nobody says how they are joined.
func TestTwoFabrics(t *testing.T) {
	c, err := LoadCluster(t.Context(), Env{}, "a[1-30]=baskerville", "b[1-40]=dgx-h100")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0].Text, "2 networks that no source joins") {
		t.Errorf("%v; want one warning about two networks", c.Warnings)
	}
	fabrics := map[string]int{}
	routes := cluster.NewRoutes(c)
	for h := range c.Hosts {
		leaf, _ := routes.Leaf(h, c.TypeOf(h).Of(cluster.NIC)[0])
		fabric, _, _ := strings.Cut(c.Network.Switches[leaf].Name, "-")
		fabrics[fabric]++
	}
	if fabrics["baskerville"] != 30 || fabrics["superpod"] != 40 {
		t.Errorf("hosts by fabric %v; want 30 and 40", fabrics)
	}
}
