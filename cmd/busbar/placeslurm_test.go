//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/eventually"
)

// tree is free nodes by leaf, with so many leaves below a spine, and a job of so many nodes.
type tree struct {
	free   []int
	per, n int
}

// lines are the tree's lines of topology.conf, and its nodes as a hostlist. Names begin with t.
func (x tree) lines(t string) (conf, nodes string) {
	var b strings.Builder
	var all, spines []string
	for i, n := range x.free {
		list := fmt.Sprintf("%sl%dn[0-%d]", t, i, n-1)
		fmt.Fprintf(&b, "SwitchName=%sl%d Nodes=%s\n", t, i, list)
		all = append(all, list)
		if i%x.per == 0 {
			spines = append(spines, fmt.Sprintf("%ss%d", t, i/x.per))
			fmt.Fprintf(&b, "SwitchName=%s Switches=%sl[%d-%d]\n", spines[len(spines)-1], t, i, min(i+x.per, len(x.free))-1)
		}
	}
	if len(spines) > 1 {
		fmt.Fprintf(&b, "SwitchName=%score Switches=%s\n", t, strings.Join(spines, ","))
	}
	return b.String(), strings.Join(all, ",")
}

// byLeaf is how many of a hostlist's nodes each leaf has.
func (x tree) byLeaf(t *testing.T, prefix, list string) []int {
	t.Helper()
	names, err := cluster.ParseHosts(list)
	if err != nil {
		t.Fatal(err)
	}
	counts := make([]int, len(x.free))
	for _, n := range names {
		var leaf, k int
		if _, err := fmt.Sscanf(n, prefix+"l%dn%d", &leaf, &k); err != nil {
			t.Fatalf("%s of %s: %v", n, list, err)
		}
		counts[leaf]++
	}
	return counts
}

// A real Slurm controller with topology/tree takes the nodes that place says it would.
func TestSlurmPlacement(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"slurmctld", "sbatch", "munged"} {
		needsTool(t, tool, "slurm-wlm (and munge)")
	}
	built(t)
	trees := []tree{
		{[]int{4, 4, 4}, 3, 4},
		{[]int{5, 4, 3}, 3, 4},
		{[]int{3, 3, 2}, 3, 4},
		{[]int{2, 3, 3, 8}, 2, 12},
		{[]int{3, 3, 2, 3}, 2, 5},
		{[]int{6, 1, 3, 3}, 2, 7},
		{[]int{1, 2, 3, 4, 5, 6}, 3, 11},
	}
	var topology, conf strings.Builder
	conf.WriteString("TopologyPlugin=topology/tree\nSuspendProgram=/bin/true\nResumeProgram=/bin/true\nSuspendTime=600\n")
	for i, x := range trees {
		lines, nodes := x.lines(fmt.Sprintf("t%d", i))
		topology.WriteString(lines)
		fmt.Fprintf(&conf, "NodeName=%s CPUs=1 Gres=gpu:1 State=CLOUD\nPartitionName=p%d Nodes=%s State=UP\n", nodes, i,
			nodes)
	}
	net := hosts(t, 1)
	c := startController(t, net, conf.String(), topology.String())
	for i, x := range trees {
		slurm := c.wouldTake(t, fmt.Sprintf("p%d", i), x.n)
		lines, nodes := x.lines(fmt.Sprintf("t%d", i))
		ours := placeSays(t, lines, nodes, x.n)
		prefix := fmt.Sprintf("t%d", i)
		if got, want := x.byLeaf(t, prefix, ours), x.byLeaf(t, prefix, slurm); !slices.Equal(got, want) {
			t.Errorf("%d of %v, %d leaves a spine: place says %v (%s), Slurm takes %v (%s)", x.n, x.free, x.per, got, ours, want,
				slurm)
		}
		request := placeWrites(t, lines, nodes, x.n, "slurm")
		asked := regexp.MustCompile(`--nodelist=(\S+)`).FindStringSubmatch(request)
		if got := c.accepts(t, fmt.Sprintf("p%d", i), request); asked == nil ||
			!slices.Equal(sortedHosts(t, got), sortedHosts(t, asked[1])) {
			t.Errorf("Slurm takes %q for\n%s", got, request)
		}
	}
}

// blocks are free nodes by base block, the sizes that Slurm plans in, and a job of so many nodes.
type blocks struct {
	free  []int
	sizes string
	n     int
}

// TestSlurmBlocks compares with topology/block, one controller a case: a file has one set of sizes.
func TestSlurmBlocks(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"slurmctld", "sbatch", "munged"} {
		needsTool(t, tool, "slurm-wlm (and munge)")
	}
	version, _ := exec.Command("slurmctld", "-V").Output()
	if strings.TrimSpace(string(version)) < "slurm-wlm 23.11" {
		t.Skipf("%s has no topology/block; it came with Slurm 23.11", strings.TrimSpace(string(version)))
	}
	built(t)
	for _, x := range []blocks{
		{[]int{4, 4, 4, 4}, "4,8", 4},
		{[]int{4, 2, 3, 4}, "4,8", 2},
		{[]int{4, 2, 3, 4}, "4,8", 5},
		{[]int{3, 1, 2, 3}, "4,8", 6},
		{[]int{1, 1, 1, 1}, "4,8,16", 4},
		{[]int{3, 3, 3, 3}, "4,8,16", 9},
		{[]int{2, 4, 4, 2, 4, 4}, "4", 10},
		{[]int{4, 4, 1, 4, 3, 2, 4, 4}, "4,8,16,32", 10},
		{[]int{4, 4, 1, 4, 3, 2, 4, 4}, "4,16", 6},
		{[]int{2, 2, 3, 3, 1, 4, 4, 4}, "4,8,32", 13},
	} {
		t.Run(fmt.Sprintf("%d of %v in %s", x.n, x.free, x.sizes), func(t *testing.T) {
			t.Parallel()
			var topology, conf strings.Builder
			var all []string
			for i, n := range x.free {
				// Nodes of a block that are not free are declared and in no partition.
				fmt.Fprintf(&topology, "BlockName=l%d Nodes=tl%dn[0-3]\n", i, i)
				fmt.Fprintf(&conf, "NodeName=tl%dn[0-3] CPUs=1 State=CLOUD\n", i)
				all = append(all, fmt.Sprintf("tl%dn[0-%d]", i, n-1))
			}
			nodes := strings.Join(all, ",")
			fmt.Fprintf(&topology, "BlockSizes=%s\n", x.sizes)
			fmt.Fprintf(&conf, "TopologyPlugin=topology/block\nSuspendProgram=/bin/true\nResumeProgram=/bin/true\n"+
				"SuspendTime=600\nPartitionName=p Nodes=%s State=UP\n", nodes)
			c := startController(t, hosts(t, 1), conf.String(), topology.String())
			want := make([]int, len(x.free))
			if slurm := c.wouldTake(t, "p", x.n); slurm != "" {
				want = tree{free: x.free}.byLeaf(t, "t", slurm)
			}
			got := make([]int, len(x.free))
			if ours := placeSays(t, topology.String(), nodes, x.n); ours != "" {
				got = tree{free: x.free}.byLeaf(t, "t", ours)
			}
			if !slices.Equal(got, want) {
				t.Errorf("place says %v, Slurm takes %v", got, want)
			}
		})
	}
}

var (
	onNodes = regexp.MustCompile(`on nodes (\S+)`)
	refused = regexp.MustCompile(`(?i)requested (node|topology) configuration is not available|allocation failure`)
)

// wouldTake asks the controller where a job of n nodes would go; "" is nowhere.
func (c *slurmCluster) wouldTake(t *testing.T, partition string, n int) string {
	t.Helper()
	var out []byte
	eventually.Within(eventually.Limit, func() bool {
		cmd := c.x.Command(limit(t), 0, "sbatch", "--test-only", "-p", partition, "-N", fmt.Sprint(n), "--exclusive",
			"--wrap", "true")
		cmd.Env = append(os.Environ(), "SLURM_CONF="+c.conf)
		out, _ = cmd.CombinedOutput()
		return onNodes.Match(out) || refused.Match(out)
	})
	if m := onNodes.FindSubmatch(out); m != nil {
		return string(m[1])
	}
	if !refused.Match(out) {
		t.Fatalf("sbatch --test-only: %s", out)
	}
	return ""
}

func sortedHosts(t *testing.T, list string) []string {
	t.Helper()
	names, err := cluster.ParseHosts(list)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(slices.Values(names))
}

// accepts gives the controller a job with the lines that place wrote, and says which nodes it would take.
func (c *slurmCluster) accepts(t *testing.T, partition, lines string) string {
	t.Helper()
	file := filepath.Join(c.dir, "job.sh")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+lines+"true\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := c.x.Command(limit(t), 0, "sbatch", "--test-only", "-p", partition, file)
	cmd.Env = append(os.Environ(), "SLURM_CONF="+c.conf)
	out, err := cmd.CombinedOutput()
	m := onNodes.FindSubmatch(out)
	if m == nil {
		t.Fatalf("sbatch --test-only with\n%s: %v: %s", lines, err, out)
	}
	return string(m[1])
}

// placeSays is what place takes for Slurm's choice on a topology.conf; "" where the job would wait.
func placeSays(t *testing.T, topology, nodes string, n int) string {
	t.Helper()
	var doc struct {
		Scheduler struct{ Hosts string } // null where the job would wait
	}
	if err := json.Unmarshal([]byte(placeWrites(t, topology, nodes, n, "json")), &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Scheduler.Hosts
}

// placeWrites is what place prints in a form for a job of n nodes on a topology.conf.
func placeWrites(t *testing.T, topology, nodes string, n int, form string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "topology.conf")
	if err := os.WriteFile(file, []byte(topology), 0o644); err != nil {
		t.Fatal(err)
	}
	site := filepath.Join(dir, "site.yaml")
	var out, errs bytes.Buffer
	if code := run(t.Context(), nil, &out, &errs, []string{"map", file, nodes + "=dgx-h100", "-o", site}); code != 0 {
		t.Fatalf("map: %s", errs.String())
	}
	if code := run(t.Context(), nil, &out, &errs, []string{
		"place", "-c", site, "-m", "gpt2", "-l", fmt.Sprintf("%dx1", n), "--free", nodes, "-o", form + "=-",
	}); code != 0 {
		t.Fatalf("place: %s", errs.String())
	}
	return out.String()
}
