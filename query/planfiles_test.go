package query

import (
	"slices"
	"strings"
	"testing"

	"busbar.dev/launch"
)

// TestPlanFilesChosen checks that one machine gets the files that start a plan without a scheduler, and that every
// other kind can be had by its name.
func TestPlanFilesChosen(t *testing.T) {
	ask := func(q Plan) *PlanFiles {
		t.Helper()
		q.Model, q.Global, q.Top, q.Emit, q.Framework = "gpt2-large", 64, 1, "run", "ddp"
		d, err := q.Run(t.Context(), Env{})
		if err != nil {
			t.Fatal(err)
		}
		return d.Emitted
	}
	byHand := []string{
		"nccl.env", "torchrun.sh", "ddp.sh", "train.py", "model.py", "hooks.py", "mesh.py", "README", "plan.json",
	}
	one := ask(Plan{Cluster: "4xa6000"})
	if !slices.Equal(one.Files, byHand) {
		t.Errorf("one machine: %v; expected %v", one.Files, byHand)
	}
	if !slices.ContainsFunc(one.Left, func(l launch.Left) bool { return strings.Contains(l.Reason, "--files all") }) {
		t.Errorf("one machine: nothing says how to get the others: %v", one.Left)
	}
	some := map[string]string{
		"slurm": "job.sbatch", "kubernetes": "job.yaml", "mpi": "hostfile", "elastic": "elastic.sh", "tuner": "tuner.tab",
		"profiler": "busbar_profiler.c",
	}
	of := func(d *PlanFiles) (names []string) {
		names = append(names, d.Files...)
		for _, l := range d.Left {
			names = append(names, l.Name)
		}
		return names
	}
	all := of(ask(Plan{Cluster: "4xa6000", Files: []string{"all"}}))
	for _, kind := range launch.Kinds() {
		if d := of(ask(Plan{Cluster: "4xa6000", Files: []string{kind}})); some[kind] == "" ||
			!slices.Contains(d, some[kind]) || !slices.Contains(all, some[kind]) || len(d) >= len(all) {
			t.Errorf("--files %s: %v; expected %s, and fewer than all", kind, d, some[kind])
		}
	}
	if d := ask(Plan{Cluster: "4xa6000", Hosts: "atlas"}); !slices.Contains(d.Files, "job.sbatch") {
		t.Errorf("a host that was named: %v; expected all files", d.Files)
	}
	if d := ask(Plan{Cluster: "4xa6000", Tuner: true}); !slices.Contains(of(d), "tuner.tab") {
		t.Errorf("a plan for the tuner plugin: %v; expected its table", d.Files)
	}
	if d := ask(Plan{Cluster: "dgx-h100:1"}); !slices.Contains(d.Files, "job.sbatch") {
		t.Errorf("one node of a cluster: %v; expected all files", d.Files)
	}
	two := ask(Plan{Cluster: "dgx-h100:2"})
	if !slices.Contains(two.Files, "job.sbatch") || !slices.Contains(two.Files, "job.yaml") {
		t.Errorf("two nodes: %v; expected all files", two.Files)
	}
	for _, l := range two.Left {
		if l.Name == "jobset.yaml" && !strings.Contains(l.Reason, "the same 8 leaf switches (rails)") {
			t.Errorf("two nodes on eight rails: no jobset.yaml: %s", l.Reason)
		}
	}
	if d := ask(Plan{Cluster: "dgx-h100:2", Files: []string{"none"}}); !slices.Equal(d.Files, byHand) {
		t.Errorf("two nodes with --files none: %v; expected %v", d.Files, byHand)
	}
	if _, err := (Plan{Cluster: "4xa6000", Model: "gpt2", Emit: "run", Files: []string{"pbs"}}).Run(t.Context(),
		Env{}); err == nil || !strings.Contains(err.Error(), "expected some of slurm, kubernetes") {
		t.Errorf("an unknown kind: %v", err)
	}
}
