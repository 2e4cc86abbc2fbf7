//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// placeLab is a site of three leaves with twelve free nodes, as a cluster file and as Slurm knows it.
type placeLab struct {
	name, file, free string
	topology         string
	slurmIsBest      bool
}

var placeLabs = []placeLab{
	{
		name: "three equal leaves", slurmIsBest: true, free: "n[01-12]",
		file:     "types:\n  node: {gpus: 1 x A100-SXM4-40GB, nics: 1 x 100GbE roce}\nnodes:\n  - {hosts: 'n[01-12]', type: node}\nnetwork: {nodes_per_leaf: 4, oversubscription: 8}\n",
		topology: "SwitchName=a Nodes=n[01-04]\nSwitchName=b Nodes=n[05-08]\nSwitchName=c Nodes=n[09-12]\nSwitchName=core Switches=a,b,c\n",
	},
	{
		// The second leaf has four nodes free, which is the tightest fit, and NICs of a quarter of the rate.
		name: "a leaf of slower NICs", free: "n[01-05,07-10,13-15]",
		file:     "types:\n  node: {gpus: 1 x A100-SXM4-40GB, nics: 1 x 100GbE roce}\n  slow: {gpus: 1 x A100-SXM4-40GB, nics: 1 x 25GbE roce}\nnodes:\n  - {hosts: 'n[01-06]', type: node}\n  - {hosts: 'n[07-12]', type: slow}\n  - {hosts: 'n[13-18]', type: node}\nnetwork: {nodes_per_leaf: 6, oversubscription: 8}\n",
		topology: "SwitchName=a Nodes=n[01-05]\nSwitchName=b Nodes=n[07-10]\nSwitchName=c Nodes=n[13-15]\nSwitchName=core Switches=a,b,c\n",
	},
}

// Of twelve free nodes below three leaves, a job of four is measured on the best, on the worst and on Slurm's own choice:
// real traffic has the order and about the ratio that place predicts.
func TestPlaceInLab(t *testing.T) {
	if !quiet() {
		t.Skip("judges what it measures, for minutes; make test-quiet runs it, lab_place.txtar is the short form")
	}
	program := built(t)
	for _, x := range placeLabs {
		t.Run(x.name, func(t *testing.T) { x.test(t, program) })
	}
}

func (x placeLab) test(t *testing.T, program string) {
	file := filepath.Join(t.TempDir(), "site.yaml")
	if err := os.WriteFile(file, []byte(x.file), 0o644); err != nil {
		t.Fatal(err)
	}
	slurm := x.slurm(t)
	var doc struct {
		Best, Worst, Scheduler struct {
			Hosts string
			Step  float64 `json:"step_s"`
			Comm  float64 `json:"exposed_comm_s"`
		}
	}
	ask(t, &doc, program, "place", "-c", file, "-m", "gpt2-large", "--nodes", "4", "--free", x.free, "--scheduler", slurm, "--json")
	t.Logf("Slurm takes %s, place %s; the worst is %s", slurm, doc.Best.Hosts, doc.Worst.Hosts)
	if same := doc.Scheduler.Step <= doc.Best.Step*1.001; same != x.slurmIsBest {
		t.Errorf("Slurm's choice %s is the best: %v", slurm, same)
	}
	var lab struct {
		Rows []struct {
			Way      string
			Gain     float64
			Measured float64 `json:"measured_us"`
			Cluster  float64 `json:"cluster_gain"`
		}
	}
	words := []string{"lab", "check", file, "--place", doc.Best.Hosts, "--place", doc.Worst.Hosts, "--place", slurm, "--sizes", "1M", "--iters", "5", "--quick", "--max-worst", "10", "--max-median", "10", "--json"}
	ask(t, &lab, program, words...)
	for i, name := range []string{"best", "worst", "Slurm's"} {
		r := lab.Rows[i]
		t.Logf("%-8s %-24s measured %7.1f ms: %.2f times the best's; predicted %.2f", name, r.Way, r.Measured/1e3, 1/r.Gain, 1/r.Cluster)
		if math.Abs(r.Gain/r.Cluster-1) > 0.25 {
			t.Errorf("%s: %.2f times as fast as the best, predicted %.2f", r.Way, r.Gain, r.Cluster)
		}
	}
}

// slurm is what a real controller takes.
func (x placeLab) slurm(t *testing.T) string {
	for _, tool := range []string{"slurmctld", "sbatch", "munged"} {
		needsTool(t, tool, "slurm-wlm (and munge)")
	}
	conf := fmt.Sprintf("TopologyPlugin=topology/tree\nSuspendProgram=/bin/true\nResumeProgram=/bin/true\nSuspendTime=600\nNodeName=%s CPUs=1 State=CLOUD\nPartitionName=all Nodes=%s\n", x.free, x.free)
	return startController(t, hosts(t, 1), conf, x.topology).wouldTake(t, "all", 4)
}

// ask runs the program and reads the document that it prints, whatever it finds.
func ask(t *testing.T, doc any, program string, words ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, words...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && out.Len() == 0 {
		t.Fatalf("busbar %s: %v\n%s", strings.Join(words, " "), err, errs.String())
	}
	if err := json.Unmarshal(out.Bytes(), doc); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
}
