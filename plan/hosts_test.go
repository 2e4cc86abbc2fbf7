package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/input/clusterfile"
	"busbar.dev/nccl"
	"busbar.dev/plan"
	"busbar.dev/step"
	"busbar.dev/workload"
)

// leafSpine is nodes of one GPU behind leaves with a quarter of their rate upwards.
func leafSpine(t testing.TB, nodes, each int) *cluster.Cluster {
	t.Helper()
	f, err := clusterfile.Read("c", strings.NewReader(fmt.Sprintf(`
types:
  node:
    gpus: 1 x A100-SXM4-40GB
    nics: 1 x 100GbE roce
nodes:
  - count: %d
    type: node
network:
  nodes_per_leaf: %d
  oversubscription: 4
`, nodes, each)))
	if err != nil {
		t.Fatal(err)
	}
	c := cluster.Join(f)
	hardware.Complete(c)
	return c
}

func onHosts(c *cluster.Cluster, hosts ...int) nccl.Layout {
	var l nccl.Layout
	for _, h := range hosts {
		for _, g := range c.TypeOf(h).Of(cluster.GPU) {
			l = append(l, nccl.Rank{Host: h, GPU: g})
		}
	}
	return l
}

func hostsIn(l nccl.Layout) []int {
	var list []int
	for _, r := range l {
		if len(list) == 0 || list[len(list)-1] != r.Host {
			list = append(list, r.Host)
		}
	}
	return list
}

func orderQuery(t testing.TB, c *cluster.Cluster) *plan.Query {
	t.Helper()
	model, _ := hardware.GPUByName("a100-40")
	g, err := step.NewGPU(model, step.Default())
	if err != nil {
		t.Fatal(err)
	}
	return &plan.Query{Cluster: c, Version: nccl.Newest, GPU: g}
}

func orderJob(t testing.TB, split string, ranks int) *workload.Job {
	t.Helper()
	m, err := workload.Find("gpt2-xl")
	if err != nil {
		t.Fatal(err)
	}
	s, err := workload.ParseSplit(split)
	if err == nil {
		s, err = s.On(ranks)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &workload.Job{
		Model: m, Split: s, Seq: 1024, MicroBatch: 1, GlobalBatch: 96, Precision: "bf16", Recompute: workload.None,
		Kernels: workload.Fused,
	}
}

func TestNear(t *testing.T) {
	c := leafSpine(t, 12, 4)
	for _, tt := range []struct{ given, want []int }{
		{[]int{0, 1, 2, 3, 4}, []int{0, 1, 2, 3, 4}},
		{[]int{0, 4, 1, 5, 2, 6}, []int{0, 1, 2, 4, 5, 6}},
		{[]int{11, 0, 10, 3, 2, 8}, []int{11, 10, 8, 0, 3, 2}},
	} {
		if got := hostsIn(plan.NetworkOrder(c, onHosts(c, tt.given...))); !slices.Equal(got, tt.want) {
			t.Errorf("%v: %v; want %v", tt.given, got, tt.want)
		}
	}
}

// Whatever the order of hosts, near keeps them all and meets every leaf once.
func TestNearMeetsLeavesOnce(t *testing.T) {
	c := leafSpine(t, 16, 4)
	rapid.Check(t, func(t *rapid.T) {
		all := make([]int, 16)
		for i := range all {
			all[i] = i
		}
		given := rapid.Permutation(all).Draw(t, "hosts")[:rapid.IntRange(1, 16).Draw(t, "n")]
		got := hostsIn(plan.NetworkOrder(c, onHosts(c, given...)))
		if !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(given))) {
			t.Fatalf("%v became %v", given, got)
		}
		seen := map[int]bool{}
		for i, h := range got {
			if i > 0 && got[i-1]/4 == h/4 {
				continue
			}
			if seen[h/4] {
				t.Fatalf("%v: leaf %d is met twice in %v", given, h/4, got)
			}
			seen[h/4] = true
		}
	})
}

// Hosts that come from the leaves in turn are put together, and a step is shorter; hosts that are together stay.
func TestArrange(t *testing.T) {
	c := leafSpine(t, 8, 4)
	q := orderQuery(t, c)
	o, err := plan.Arrange(q, onHosts(c, 0, 4, 1, 5, 2, 6, 3, 7), orderJob(t, "dp=8", 8))
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{0, 1, 2, 3, 4, 5, 6, 7}; !slices.Equal(hostsIn(o.Layout), want) || o.Step > 0.6*o.Given {
		t.Errorf("%v in %v s instead of %v s; want %v in six tenths of the time at most", hostsIn(o.Layout), o.Step, o.Given,
			want)
	}
	given := onHosts(c, 4, 5, 6, 7, 0, 1, 2, 3)
	if o, err = plan.Arrange(q, given, orderJob(t, "dp=8", 8)); err != nil || !slices.Equal(o.Layout, given) ||
		o.Step != o.Given {
		t.Errorf("%v (%v); want the order as it was", hostsIn(o.Layout), err)
	}
}

// Three hosts of one leaf and five of another, four replicas a stage: whatever leaf is met first, the groups of four
// cannot both stay below a leaf, and the order that is found is no slower than the one by the network.
func TestArrangeUneven(t *testing.T) {
	c := leafSpine(t, 16, 8)
	q := orderQuery(t, c)
	j := orderJob(t, "dp=4,pp=2", 8)
	given := onHosts(c, 0, 8, 1, 9, 2, 10, 11, 12)
	o, err := plan.Arrange(q, given, j)
	if err != nil {
		t.Fatal(err)
	}
	byNetwork, err := step.Step(j, q.GPU, step.NewFabric(c, plan.NetworkOrder(c, given), j.Split, q.Version))
	if err != nil {
		t.Fatal(err)
	}
	if o.Step > byNetwork.Step || o.Step >= o.Given {
		t.Errorf("%v: %v s; by the network %v s, as given %v s", hostsIn(o.Layout), o.Step, byNetwork.Step, o.Given)
	}
}
