package query

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// PlanTie is the plans that cannot be told from the first: they differ by less than predictions of settings of one job do from
// what is measured. What else speaks for some of them is in For.
type PlanTie struct {
	Plans  []int     `json:"plans"`  // their ranks, from 1
	Margin float64   `json:"margin"` // settings whose objectives are within this factor are not told apart
	Order  string    `json:"order"`  // why the first is first
	For    []PlanFor `json:"for"`
}

// PlanFor is what speaks for a plan of a tie.
type PlanFor struct {
	Rank   int    `json:"rank"`
	Kind   string `json:"kind"` // memory, simplicity
	Reason string `json:"reason"`
}

// worthRoom is the share of a GPU's memory by which a plan must leave more free than the first for that to speak for it.
const worthRoom = 0.03

// tie finds the plans that cannot be told from the first; nil where the first is alone.
func (x *planned) tie() *PlanTie {
	least := x.fastest()
	t := &PlanTie{Margin: step.TieMargin, Order: planOrder}
	for i := range x.answer.Plans {
		if x.answer.Plans[i].Value <= least*step.TieMargin {
			t.Plans = append(t.Plans, i+1)
		}
	}
	if len(t.Plans) < 2 {
		return nil
	}
	memory := func(i int) unit.Volume { return x.answer.Plans[i].Result.Memory.Total() }
	kinds := func(i int) []string { return parallelKinds(&x.answer.Plans[i].Job) }
	card := unit.Volume(x.query.GPU.Model.Memory)
	roomy, simple := 0, 0
	for _, rank := range t.Plans {
		if i := rank - 1; memory(i) < memory(roomy)-card*worthRoom {
			roomy = i
		}
		if i := rank - 1; len(kinds(i)) < len(kinds(simple)) {
			simple = i
		}
	}
	list := cmp.Or(strings.Join(kinds(simple), ", "), "data parallelism alone")
	free := card - memory(roomy)
	t.For = []PlanFor{
		{simple + 1, "simplicity", "fewest settings to get right: " + list + x.butBehind(simple)},
		{roomy + 1, "memory", fmt.Sprintf("most memory left, %.1f of %.0f GiB", free.GiB(), card.GiB()) + x.butBehind(roomy)},
	}
	return t
}

// butBehind says why a plan that something speaks for is not the first; "" for the first.
func (x *planned) butBehind(i int) string {
	worse := x.answer.Plans[i].Value/x.answer.Plans[0].Value - 1
	switch {
	case i == 0:
		return ""
	case worse < 0.0005:
		return "; it comes after plan 1 by the order above"
	}
	return fmt.Sprintf("; it is not the first because it is %.1f%% %s", 100*worse, x.goal.worse())
}

// parallelKinds are the settings of a job beyond data parallelism as its framework has it.
func parallelKinds(j *workload.Job) []string {
	var list []string
	s := &j.Split
	for _, d := range []struct {
		name string
		n    int
	}{{"tp", s.TP}, {"pp", s.PP}, {"vpp", s.Chunks}, {"cp", s.CP}, {"ep", s.EP}} {
		if d.n > 1 {
			list = append(list, fmt.Sprintf("%s=%d", d.name, d.n))
		}
	}
	usual := 1
	if j.Framework != nil && !slices.Contains(j.Framework.ZeRO, 0) { // what runs without sharding has to be told to shard
		usual = max(1, j.Framework.DefaultZeRO(*s))
	}
	if s.ZeRO > usual {
		list = append(list, fmt.Sprintf("zero=%d", s.ZeRO))
	}
	if s.Shard > 0 && s.ZeRO > 0 && s.Shard < s.DP*s.CP {
		list = append(list, fmt.Sprintf("shard=%d", s.Shard))
	}
	if j.Recompute != "" && j.Recompute != workload.None {
		list = append(list, "recompute "+string(j.Recompute))
	}
	if j.Offloads() {
		list = append(list, "offload "+string(j.Offload))
	}
	if j.Compresses() {
		list = append(list, "gradients as "+string(j.Compress))
	}
	return list
}
