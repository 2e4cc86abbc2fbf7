//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/hardware"
	"busbar.dev/input/clusterfile"
	"busbar.dev/lab"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/query"
	"busbar.dev/result"
	"busbar.dev/unit"
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
		file: "types:\n  node: {gpus: 1 x A100-SXM4-40GB, nics: 1 x 100GbE roce}\nnodes:\n  - {hosts: 'n[01-12]', " +
			"type: node}\nnetwork: {nodes_per_leaf: 4, oversubscription: 8}\n",
		topology: "SwitchName=a Nodes=n[01-04]\nSwitchName=b Nodes=n[05-08]\nSwitchName=c Nodes=n[09-12]\nSwitchName=core " +
			"Switches=a,b,c\n",
	},
	{
		// The second leaf has four nodes free, which is the tightest fit, and NICs of a quarter of the rate.
		name: "a leaf of slower NICs", free: "n[01-05,07-10,13-15]",
		file: "types:\n  node: {gpus: 1 x A100-SXM4-40GB, nics: 1 x 100GbE roce}\n  slow: {gpus: 1 x A100-SXM4-40GB, " +
			"nics: 1 x 25GbE roce}\nnodes:\n  - {hosts: 'n[01-06]', type: node}\n  - {hosts: 'n[07-12]', type: slow}\n  - " +
			"{hosts: 'n[13-18]', type: node}\nnetwork: {nodes_per_leaf: 6, oversubscription: 8}\n",
		topology: "SwitchName=a Nodes=n[01-05]\nSwitchName=b Nodes=n[07-10]\nSwitchName=c Nodes=n[13-15]\nSwitchName=core " +
			"Switches=a,b,c\n",
	},
}

// Of twelve free nodes below three leaves, a job of four is measured on the best, on the worst and on Slurm's own
// choice: real traffic has the order and about the ratio that place predicts.
func TestPlaceInLab(t *testing.T) {
	if !quiet() {
		t.Skip("judges what it measures, for minutes; make test-quiet runs it")
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
	printedBy(t, &doc, program, "place", "-c", file, "-m", "gpt2-large", "--nodes", "4", "--free", x.free, "--scheduler",
		slurm,
		"--json")
	t.Logf("Slurm takes %s, place %s; the worst is %s", slurm, doc.Best.Hosts, doc.Worst.Hosts)
	if same := doc.Scheduler.Step <= doc.Best.Step*1.001; same != x.slurmIsBest {
		t.Errorf("Slurm's choice %s is the best: %v", slurm, same)
	}
	cl := readSite(t, file)
	p, err := lab.New(cl, lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := upLab(t, p, program)
	var measured, predicted [3]float64
	for i, hosts := range []string{doc.Best.Hosts, doc.Worst.Hosts, slurm} {
		at := hostsOf(t, cl, hosts)
		measured[i], predicted[i] = timedInLab(t, l, program, at, "1M", "--algo", "ring"), ringOfNCCL(t, cl, at, p.Scale)
		slower, expected := measured[i]/measured[0], predicted[i]/predicted[0]
		t.Logf("%-24s measured %7.1f ms: %.2f times the best's; predicted %.2f", hosts, measured[i]/1e3, slower, expected)
		if math.Abs(expected/slower-1) > 0.25 {
			t.Errorf("%s takes %.2f times as long as the best, predicted %.2f", hosts, slower, expected)
		}
	}
}

// racksLabs are two racks of four nodes, whose uplinks carry a part of what the nodes send, and what helps most where
// hosts alternate between the racks.
var racksLabs = []struct {
	oversubscription int
	best             string
}{{4, "--hosts n[1-8]"}, {16, "--hosts n[1-8] and HOOK=rack in ddp.sh of busbar plan --emit"}}

// What predict advises for hosts that alternate between two racks, their order and a sum by racks, is in the order of
// what both gain. On a quiet machine real traffic in a lab gains within 15% of what is predicted.
func TestRacksInLab(t *testing.T) {
	for _, x := range racksLabs {
		file := filepath.Join(t.TempDir(), "site.yaml")
		site := fmt.Sprintf("types:\n  node: {gpus: 1 x A100-SXM4-40GB, nics: 1 x 100GbE roce}\nnodes:\n  - {hosts: "+
			"'n[1-8]', "+
			"type: node}\nnetwork: {nodes_per_leaf: 4, oversubscription: %d}\n", x.oversubscription)
		if err := os.WriteFile(file, []byte(site), 0o644); err != nil {
			t.Fatal(err)
		}
		mixed := []int{0, 4, 1, 5, 2, 6, 3, 7}
		q := query.Predict{Cluster: file, Hosts: "n[1,5,2,6,3,7,4,8]", Size: "400M"}
		doc, err := q.Run(t.Context(), query.Env{})
		if err != nil {
			t.Fatal(err)
		}
		gains := map[string]float64{}
		for _, a := range doc.Advice {
			gains[a.Setting] = a.Gain
		}
		order, racks := gains[racksLabs[0].best], gains[racksLabs[1].best]
		if order < 2 || racks < 2 || doc.Advice[0].Setting != x.best {
			t.Errorf("%d:1: %+v; expected both changes, %q first", x.oversubscription, doc.Advice, x.best)
		}
		if !quiet() {
			continue
		}
		program, cl := built(t), readSite(t, file)
		p, err := lab.New(cl, lab.Options{Scale: lab.Scale{Num: 1, Den: 800}}) // which two busy cores carry
		if err != nil {
			t.Fatal(err)
		}
		l := upLab(t, p, program)
		given := timedInLab(t, l, program, mixed, "2M", "--algo", "ring")
		slices.Sort(mixed)
		for _, y := range []struct {
			what      string
			took      float64
			predicted float64
		}{
			{"in the order of racks", timedInLab(t, l, program, mixed, "2M", "--algo", "ring"), order},
			{"in two phases", timedInLab(t, l, program, mixed, "2M", "--algo", "hierarchical", "--groups", "4"), racks},
		} {
			gain := given / y.took
			t.Logf("%d:1 %-24s %6.1f ms instead of %6.1f: %.2f times as fast, predicted %.2f", x.oversubscription, y.what,
				y.took/1e3, given/1e3, gain, y.predicted)
			if math.Abs(y.predicted/gain-1) > 0.15 {
				t.Errorf("%d:1 %s: %.2f times as fast, predicted %.2f", x.oversubscription, y.what, gain, y.predicted)
			}
		}
	}
}

// upLab starts a lab.
func upLab(t *testing.T, p *lab.Plan, program string) *lab.Lab {
	t.Helper()
	folder := lab.Folder(t.TempDir())
	holder := lab.Config{Folder: folder, Name: "place", Plan: p, Program: program, Args: []string{"busbar", "lab", "hold"}}
	if _, err := lab.Start(t.Context(), holder); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Down("place") })
	l, err := folder.Open("place")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// timedInLab is what an all-reduce of a size takes among nodes of a lab, in µs.
func timedInLab(t *testing.T, l *lab.Lab, program string, nodes []int, size string, words ...string) float64 {
	t.Helper()
	kept := filepath.Join(t.TempDir(), "ring.jsonl")
	all := l.State.Plan.Slots(len(l.State.Plan.Nodes), 1)
	job := lab.Job{Lab: l, Stdout: io.Discard, Stderr: os.Stderr}
	for _, n := range nodes {
		job.Slots = append(job.Slots, all[n])
	}
	words = append([]string{"busbar", "bench", "-b", size, "-e", size, "--iters", "9", "-o", kept}, words...)
	code, err := job.Run(t.Context(), lab.Program{Path: program, Args: words, Env: os.Environ(), Dir: "/"})
	if err != nil || code != 0 {
		t.Fatalf("exit code %d, %v", code, err)
	}
	f, err := os.Open(kept)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := result.Read(kept, f)
	if err != nil {
		t.Fatal(err)
	}
	return list.Rows()[0].Time.Median.Micros()
}

// ringOfNCCL is what NCCL's ring is predicted to take on the cluster, with as many more bytes as its links are faster.
func ringOfNCCL(t *testing.T, cl *cluster.Cluster, hosts []int, scale lab.Scale) float64 {
	t.Helper()
	var l nccl.Layout
	for _, h := range hosts {
		l = append(l, nccl.Rank{Host: h, GPU: cl.TypeOf(h).Of(cluster.GPU)[0]})
	}
	q, err := predict.New(cl, l, nccl.Newest, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	size := unit.Bytes(float64(unit.MiB) / scale.Value())
	a, err := q.Ask(predict.Query{
		Kind: coll.AllReduce, Type: coll.Float, Sizes: []unit.Bytes{size}, Algos: []string{"ring"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a.Rows[0].Time.Micros()
}

// hostsOf are the hosts of a hostlist in their order.
func hostsOf(t *testing.T, cl *cluster.Cluster, list string) (at []int) {
	t.Helper()
	names, err := cluster.ParseHosts(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		at = append(at, slices.IndexFunc(cl.Hosts, func(h cluster.Host) bool { return cluster.SameHost(h.Name, n) }))
	}
	return at
}

func readSite(t *testing.T, file string) *cluster.Cluster {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	x, err := clusterfile.Read(file, f)
	if err != nil {
		t.Fatal(err)
	}
	cl := cluster.Join(x)
	hardware.Complete(cl)
	return cl
}

// slurm is what a real controller takes.
func (x placeLab) slurm(t *testing.T) string {
	for _, tool := range []string{"slurmctld", "sbatch", "munged"} {
		needsTool(t, tool, "slurm-wlm (and munge)")
	}
	conf := fmt.Sprintf("TopologyPlugin=topology/tree\nSuspendProgram=/bin/true\nResumeProgram=/bin/true\n"+
		"SuspendTime=600\nNodeName=%s CPUs=1 State=CLOUD\nPartitionName=all Nodes=%s\n", x.free, x.free)
	return startController(t, hosts(t, 1), conf, x.topology).wouldTake(t, "all", 4)
}

// printedBy runs the program and reads the document that it prints, whatever it finds.
func printedBy(t *testing.T, doc any, program string, words ...string) {
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
