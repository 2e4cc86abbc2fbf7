package step_test

import (
	"testing"

	"pgregory.net/rapid"

	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/workload"
)

// Every rank is in one group of a kind, whatever the order; ranks of a group differ in what the
// group is for and in nothing else.
func TestGroupsPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(name string) int { return rapid.SampledFrom([]int{1, 2, 3, 4}).Draw(t, name) }
		s := workload.Split{
			TP: pick("tp"), CP: pick("cp"), DP: pick("dp"), PP: pick("pp"), ZeRO: 1,
			Order: rapid.SampledFrom([]workload.Order{"", workload.TensorDataPipeline, workload.TensorPipelineData}).Draw(t,
				"order"),
		}
		same := s.DP * s.CP
		var divisors []int
		for n := 1; n <= same; n++ {
			if same%n == 0 && (n%s.CP == 0 || s.CP%n == 0) {
				divisors = append(divisors, n)
			}
		}
		s.Shard, s.EP = rapid.SampledFrom(divisors).Draw(t, "shard"), rapid.SampledFrom(divisors).Draw(t, "ep")
		s, err := s.On(s.Ranks())
		if err != nil {
			t.Fatal(err)
		}
		layout := make(nccl.Layout, s.Ranks())
		f := step.NewFabric(nil, layout, s, nccl.Newest)
		_, cp, dp, pp := s.Strides()
		digits := func(r int) [4]int { return [4]int{r % s.TP, r / cp % s.CP, r / dp % s.DP, r / pp % s.PP} }
		for g, free := range map[step.Group][4]bool{
			step.Tensor: {true}, step.Context: {false, true}, step.Data: {false, true, true}, step.Shards: {false, true, true},
			step.Copies: {false, true, true}, step.Experts: {false, true, true},
		} {
			seen := map[int]bool{}
			for _, group := range f.Members(g) {
				first := digits(group[0])
				for _, r := range group {
					if seen[r] || r >= s.Ranks() {
						t.Fatalf("%s %s: rank %d is in two groups of %s, or in none", s, s.Order, r, g)
					}
					seen[r] = true
					for i, d := range digits(r) {
						if d != first[i] && !free[i] {
							t.Fatalf("%s %s: ranks %d and %d are in one %s group", s, s.Order, group[0], r, g)
						}
					}
				}
			}
			if len(seen) != s.Ranks() {
				t.Fatalf("%s %s: %d of %d ranks are in %s groups", s, s.Order, len(seen), s.Ranks(), g)
			}
		}
	})
}

// Where groups sit is said in words; with stages beside each other messages stay in the node, and
// gradients cross.
func TestGroupsInWords(t *testing.T) {
	p, _ := prepared(t, "dgx-h100", "h100", "llama2-13b", "tp=2,pp=4,zero=1,shard=2", 4, 8, 1, 64)
	want := map[workload.Order][]string{
		workload.TensorDataPipeline: {
			"tensor 16 groups of 2, each in a node: ranks 0, 1", "data 8 groups of 4, each in a node: ranks 0, 2, 4, 6",
			"shard 16 groups of 2, each in a node: ranks 0, 2",
			"replica 16 groups of 2, each in a node: ranks 0, 4",
			"pipeline 24 pairs of neighbours, over 2 nodes, 8 concurrent on a node: ranks 0, 8",
		},
		workload.TensorPipelineData: {
			"tensor 16 groups of 2, each in a node: ranks 0, 1",
			"data 8 groups of 4, over 4 nodes, 8 concurrent on a node: ranks 0, 8, 16, 24",
			"shard 16 groups of 2, over 2 nodes, 8 concurrent on a node: ranks 0, 8",
			"replica 16 groups of 2, over 2 nodes, 8 concurrent on a node: ranks 0, 16",
			"pipeline 24 pairs of neighbours, each in a node: ranks 0, 2",
		},
	}
	for order, lines := range want {
		s := p.Job().Split
		s.Order = order
		got := p.Fabric().With(s).Groups()
		if len(got) != len(lines) {
			t.Fatalf("%s: %v", order, got)
		}
		for i, g := range got {
			if text := g.Group.String() + " " + g.String(); text != lines[i] {
				t.Errorf("%s: %q; expected %q", order, text, lines[i])
			}
		}
	}
}
